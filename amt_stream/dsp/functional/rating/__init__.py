"""Tones, impulses and A-weighted levels, of which a rating level is made."""
