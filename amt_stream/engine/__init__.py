"""The live path: sources, ring, engine, frames, history and health.

The public names stand in `__init__.pyi`. A name is imported when it is first used, so that listing
devices needs no torch and reading a file no PortAudio.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
