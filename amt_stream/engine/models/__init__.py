"""Models that run on the sound, and the rows of their batches."""
