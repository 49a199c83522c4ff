"""Models as machine code without Python: C libraries, WebAssembly, and plug-ins made of them.

`__init__.pyi` lists the public names. Each is imported on first use; `NativeModel` imports neither
torch nor numba.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
