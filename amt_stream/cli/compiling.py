"""A message when functions are being compiled."""

import multiprocessing

from amt_stream.cli.messages import say
from amt_stream.core.compiling import WORDS, compiling
from amt_stream.core.made_once import made_once


@made_once
def say_when_compiling(words: str = WORDS) -> None:
    """Announce compilations from now on, but not in the worker processes of --jobs."""
    if multiprocessing.parent_process() is None:
        compiling.have_said(say, words)
