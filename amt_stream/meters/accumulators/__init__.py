"""Meters: statistics that accumulate over frames, without torch and threads.

`__init__.pyi` lists the names, which are imported on first use, as some have compiled loops.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
