"""Streaming auditory models: stateful block-processing stages, a live engine, loudness meters.

The public names and their types stand in `__init__.pyi`, one line each. A name is imported when it
is first used, so that `import amt_stream` stays free of torch.
"""

from typing import Any

import lazy_loader

from amt_stream.core.importing import uncollected

__version__ = "0.2.0"

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with uncollected():
        return _imported(name)
