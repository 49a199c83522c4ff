"""Stages, one file per place on the auditory path.

The public names stand in `__init__.pyi`. A name is imported when it is first used, with the kernels
of its stage alone. `from amt_stream.dsp.stages import *` imports all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
