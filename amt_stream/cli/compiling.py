"""What is said of a start that compiles."""

import multiprocessing
from functools import cache

from amt_stream.cli.messages import say
from amt_stream.core.compiling import compiling


@cache
def say_when_compiling() -> None:
    """From here on; processes of --jobs would all say the same."""
    if multiprocessing.parent_process() is None:
        compiling.have_said(say)
