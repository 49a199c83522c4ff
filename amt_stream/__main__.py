"""`python -m amt_stream` is the `amt-stream` command."""

import sys

from amt_stream.cli import main

if __name__ == "__main__":
    sys.exit(main())
