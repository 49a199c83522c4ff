"""What a command says to a person, and how it tells that something is wrong."""

import contextlib
import re
import sys

from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import sentence


class Mistake(Refusal):
    """Something asked of a command that cannot be done."""


class WrongUsage(Mistake):
    """Options that do not go together."""

    status = 2


def say(message: object) -> None:
    """One line to standard error."""
    # Where nobody can be told, the exit status still tells.
    with contextlib.suppress(OSError):
        print(f"amt-stream: {sentence(message)}", file=sys.stderr, flush=True)


def matter(note: str) -> str:
    """A note without its numbers, so that one that counts is not said anew with each count."""
    return _NUMBER.sub("", note)


_NUMBER = re.compile(r"[\d.,]+")
