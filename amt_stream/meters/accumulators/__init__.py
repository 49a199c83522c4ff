"""Meters: what accumulates over frames, without torch and without threads.

The names stand in `__init__.pyi`, and are imported when they are first used: some have compiled
loops.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
