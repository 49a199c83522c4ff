"""Readings of each model: its columns, and what they are counted from."""
