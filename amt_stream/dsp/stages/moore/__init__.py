"""Stages of Glasberg and Moore (2002) and Moore et al. (2016)."""
