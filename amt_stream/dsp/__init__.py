"""Signal processing: filter design, kernels, streaming stages and the models made of them.

Pure functions of samples and state, from published papers, on CPU or GPU. Stages and models are
exported by `amt_stream`. May import `core`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
