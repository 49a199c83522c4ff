"""Batches of sound files: what is read, what is written, how far it is."""
