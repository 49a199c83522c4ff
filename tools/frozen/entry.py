"""Where both frozen programs begin: `amt-monitor`, the window, and `amt-stream`, the command."""

import sys
from multiprocessing import freeze_support
from pathlib import Path

from amt_stream.core.processes import be_interpreter


def main() -> int:
    freeze_support()
    be_interpreter()
    from amt_stream import cli

    is_command = Path(sys.executable).stem == "amt-stream"
    return cli.main() if is_command else cli.main_window()


if __name__ == "__main__":
    sys.exit(main())
