"""Meters: readings and statistics of frames, as rows of columns.

Frames, accumulators, rows, limits, calibration, presets and the catalog of models. No threads and
no devices. This room may import `core` and `dsp`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
