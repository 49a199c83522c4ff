"""The desktop window of the meter: it shows a running engine and does no signal processing.

The terminal uses the modules of this package that need no Qt, so nothing is imported here.
"""
