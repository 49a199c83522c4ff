"""Whole files and arrays: measure, analyze, split over processes, self-test, benchmark.

No threads of its own and no devices. May import `core`, `dsp`, `meters` and `engine`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
