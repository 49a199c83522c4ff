"""Files, settings, errors, safe text, clock and processes, used by every other room.

This room knows nothing about audio and imports no other room. No module here needs torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
