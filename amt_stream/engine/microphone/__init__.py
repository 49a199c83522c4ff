"""The sound of one microphone: its channels, gaps, offset, correction and calibration."""
