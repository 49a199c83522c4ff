"""What the whole window uses: the theme, widgets, numbers, background work, stored settings."""
