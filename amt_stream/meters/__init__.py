"""Meters: what a measurement reads from frames, as rows of columns with statistics.

Frames, accumulators, rows, limits, calibration, presets and the catalog of models. No threads, no
devices. May import `core` and `dsp`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
