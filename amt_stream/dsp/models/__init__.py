"""Models: chains of stages under one name.

The public names stand in `__init__.pyi`. A name is imported when it is first used, so that a model
brings its own kernels only.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
