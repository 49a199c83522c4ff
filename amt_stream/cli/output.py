"""Standard output, whose failures cannot be taken for those of anything else."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, TextIO


class OutputFailed(OSError):
    """Standard output takes no more: its disk is full, its reader has left."""


class Output:
    """A text stream that raises OutputFailed where the one inside raises OSError."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _told_apart():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        with _told_apart():
            self._stream.writelines(lines)

    def flush(self) -> None:
        with _told_apart():
            self._stream.flush()


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror) from error
