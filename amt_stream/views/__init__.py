"""What screens show, decided once for the window and the terminal; no Qt.

This room may import `core`, `dsp`, `meters`, `engine`, `offline` and `sessions`.
"""
