"""`python -m amt_stream.cli` is `amt-stream`."""

import sys

from amt_stream.cli import main

if __name__ == "__main__":
    sys.exit(main())
