"""Files, settings, errors, safe text, clock and processes: what every room needs.

It knows nothing of sound and imports no other room; no module here needs torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
