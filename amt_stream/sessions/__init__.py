"""Sessions: logs of measurements, recordings, events, results, reports, comparisons.

`__init__.pyi` lists the public names, which are imported on first use. This room may import `core`,
`dsp`, `meters`, `engine` and `offline`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
