"""Models: named chains of stages.

`__init__.pyi` lists the public names. Each is imported on first use, so that only the kernels of
that model load.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
