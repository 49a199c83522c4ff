"""Service: a measurement on the wire: rows go out over transports, commands come in.

The public names stand in `__init__.pyi`, and are imported when they are first used. May import all
rooms but `cli` and the window.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
