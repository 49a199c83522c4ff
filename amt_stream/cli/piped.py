"""Sounds that come through a pipe, for commands that read a sound more than once."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import Mistake, say
from amt_stream.core.files import is_pipe, why

STANDARD_INPUT = "standard input"


@contextlib.contextmanager
def pipes_as_files(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """For each name of a pipe, "-" or a path, a file with its content, removed at the end.

    Raises Mistake if a pipe cannot be read, or its content not be written.
    """
    piped = [name for name in dict.fromkeys(names) if name == "-" or (name and is_pipe(Path(name)))]
    if not piped:
        yield {}
        return
    folder = tempfile.TemporaryDirectory(prefix="amt_stream.")
    with folder as top, ending.undoing(folder.cleanup):
        yield {name: _copied(name, Path(top) / str(n)) for n, name in enumerate(piped)}


def _copied(name: str, folder: Path) -> str:
    shown = STANDARD_INPUT if name == "-" else name
    if name == "-" and sys.stdin is None:
        raise Mistake(f"{shown} is closed: give it a pipe or a file")
    say(f"{shown} is read to its end first")
    target = folder / Path(shown).name
    try:
        folder.mkdir()
        with target.open("wb") as copy:
            if name == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with Path(name).open("rb") as stream:
                    shutil.copyfileobj(stream, copy)
    except OSError as error:
        raise Mistake(f"{shown} cannot be copied to {target}: {why(error)}") from error
    return str(target)
