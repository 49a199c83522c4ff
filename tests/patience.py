"""How long tests wait for events."""

PATIENCE_S = 60.0
"""Real time in which a broken test ends."""
