"""The desktop window of the meter: it shows a running engine and does no signal processing."""
