"""Readers of sound files and streams: any format, from a file or as it comes through a pipe."""
