"""Sounds that come through a pipe, for commands that read a sound more than once."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import Mistake, say
from amt_stream.core.files import is_pipe, why
from amt_stream.engine.readers.source_bytes import PIECE, PipeBytes

STANDARD_INPUT = "standard input"


@contextlib.contextmanager
def pipes_as_files(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """For "-" and each name of a pipe that is written, a file with its content.

    The files are removed at the end. Raises Mistake if one cannot be written.
    """
    piped = [name for name in dict.fromkeys(names) if name == "-" or (name and is_pipe(Path(name)))]
    if not piped:
        yield {}
        return
    folder = tempfile.TemporaryDirectory(prefix="amt_stream.")
    with folder as top, ending.undoing(folder.cleanup):
        copies = {name: _copied(name, Path(top) / str(n)) for n, name in enumerate(piped)}
        yield {name: copy for name, copy in copies.items() if copy}


def _copied(name: str, folder: Path) -> str:
    """The path of a file with the content of a pipe, or "" if no program writes into it."""
    shown = STANDARD_INPUT if name == "-" else name
    if name == "-" and sys.stdin is None:
        raise Mistake(f"{shown} is closed: give it a pipe or a file")
    target, position = folder / Path(shown).name, 0
    try:
        pipe = PipeBytes(sys.stdin.buffer) if name == "-" else PipeBytes.of_path(Path(name))
        say(f"{shown} is read to its end first")
        folder.mkdir()
        with contextlib.closing(pipe), target.open("wb") as copy:
            while data := pipe.some(position, PIECE, 1):
                copy.write(data)
                position += len(data)
                pipe.forget(position)
    except TimeoutError:
        return ""
    except OSError as error:
        raise Mistake(f"{shown} cannot be copied to {target}: {why(error)}") from error
    return str(target)
