"""Standard output with distinct errors."""

import codecs
import contextlib
import errno
import io
import os
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TextIO


class OutputFailed(OSError):
    """Standard output cannot be written: the disk is full, the reader has left, or it is closed."""


OTHERWISE = str.maketrans(dict(zip("\u2264\u2265\u2248", ("<=", ">=", "~"), strict=True)))
"""Signs before numbers, as they are written where the encoding lacks them."""


def _in_other_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end].translate(OTHERWISE)
    return signs.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("amt_stream.signs", _in_other_signs)


def write_all(stream: TextIO | None) -> None:
    """Have a stream write characters outside its encoding as other signs or as escapes."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="amt_stream.signs")


class OutputStream:
    """A text stream that raises OutputFailed instead of the OSError of the stream inside.

    None stands for a closed stream. Characters outside its encoding are written by `write_all`.
    """

    def __init__(self, stream: TextIO | None) -> None:
        write_all(stream)
        self._stream = _Closed() if stream is None else stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _output_errors():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        with _output_errors():
            self._stream.writelines(lines)

    def flush(self) -> None:
        with _output_errors():
            self._stream.flush()


class _Closed(io.TextIOBase):
    """A stream that cannot be written."""

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed")


def draws(stream: TextIO) -> bool:
    """Whether a stream is a terminal with cursor control."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror) from error
