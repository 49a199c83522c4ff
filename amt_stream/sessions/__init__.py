"""Sessions: logs of measurements, recordings, events, results, reports, comparisons.

The public names stand in `__init__.pyi`, and are imported when they are first used. May import
`core`, `dsp`, `meters`, `engine` and `offline`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
