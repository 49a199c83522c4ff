"""Service: send rows of a measurement over transports, and accept commands.

`__init__.pyi` lists the public names, which are imported on first use. This room may import all
others except `cli` and the window.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
