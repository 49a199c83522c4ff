"""Standard output, whose failures cannot be taken for those of anything else."""

import contextlib
import errno
import io
import os
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TextIO


class OutputFailed(OSError):
    """Standard output takes no more: its disk is full, its reader has left, it is closed."""


class OutputStream:
    """A text stream that raises OutputFailed where the one inside raises OSError.

    None stands for one that is closed. What its encoding lacks is written as its number.
    """

    def __init__(self, stream: TextIO | None) -> None:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        self._stream = _Closed() if stream is None else stream

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


class _Closed(io.TextIOBase):
    """A stream that nothing can be written to."""

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed")


def draws(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can be drawn on."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror) from error
