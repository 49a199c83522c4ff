"""The live path: sources, ring buffer, engine, frames, history and health.

`__init__.pyi` lists the public names. Each is imported on first use, so that listing devices needs
no torch, and reading a file no PortAudio.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
