"""Checks of tones, impulses and the rating level."""
