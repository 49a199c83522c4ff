"""`python -m tests.native.without_torch ARGS`: the command where neither PyTorch nor numba is."""

import importlib.util
import sys
from importlib.abc import MetaPathFinder

from amt_stream.core.importing import HEAVY


class Hidden(MetaPathFinder):
    """Finds none of these packages, as if they were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return


def hide():
    sys.meta_path.insert(0, Hidden())
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: (
        None if name.partition(".")[0] in HEAVY else find(name, package)
    )


if __name__ == "__main__":
    hide()
    from amt_stream.cli import main

    sys.argv[0] = "amt-stream"
    sys.exit(main())
