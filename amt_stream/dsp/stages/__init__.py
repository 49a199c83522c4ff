"""Stages, one file per place on the auditory path.

`__init__.pyi` lists the public names. Each is imported on first use, so that only the kernels of
that stage load. `from amt_stream.dsp.stages import *` imports all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
