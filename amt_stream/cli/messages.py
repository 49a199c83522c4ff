"""Messages of a command, and its errors."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence

from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import sentence


class Mistake(Refusal):
    """A command cannot do what was asked."""


class WrongUsage(Mistake):
    """Options contradict each other, or need others."""

    status = 2


def say(message: object) -> None:
    """Print one line to standard error."""
    # If standard error is closed, the exit status remains.
    with contextlib.suppress(OSError):
        print(f"amt-stream: {sentence(message)}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def warnings_said() -> Iterator[None]:
    """Say what the library warns of, each sentence once, when the block ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught):
                say(text)


def text_table(rows: Sequence[Sequence[str]], right: Callable[[int], bool]) -> list[str]:
    """Rows of cells as lines with their columns aligned.

    right: whether the cells of a column, by its number from 0, end at the same place
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(wide) if right(k) else cell.ljust(wide)
            for k, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def matter(note: str) -> str:
    """A note without its numbers, so that a count in it does not make it a new note."""
    return _NUMBER.sub("", note)


_NUMBER = re.compile(r"[\d.,]+")
