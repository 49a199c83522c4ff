"""What a command says to a person, and how it tells that something is wrong."""

import contextlib
import re
import sys
from collections.abc import Mapping

from amt_stream.plain import sentence
from amt_stream.refusal import Refusal


class Mistake(Refusal):
    """Something asked of a command that cannot be done."""


class WrongUsage(Mistake):
    """Options that do not go together."""

    status = 2


def refuse_without(main: object, remedy: str, typed: Mapping[str, object]) -> None:
    """Raise WrongUsage for options that are typed, by name, where the one they belong to is not.

    remedy: what they are of, and what to add
    """
    for name, value in typed.items():
        if value is not None and main is None:
            raise WrongUsage(f"{name} is of {remedy}")


def say(message: object) -> None:
    """One line to standard error."""
    # Where nobody can be told, the exit status still tells.
    with contextlib.suppress(OSError):
        print(f"amt-stream: {sentence(message)}", file=sys.stderr, flush=True)


def matter(note: str) -> str:
    """A note without its numbers, so that one that counts is not said anew with each count."""
    return _NUMBER.sub("", note)


_NUMBER = re.compile(r"[\d.,]+")
