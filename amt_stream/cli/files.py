"""Files that a command writes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import Mistake


@contextlib.contextmanager
def atomic_text_file(target: Path) -> Iterator[TextIO]:
    """A text file that gets its name once it is complete; nothing half written stays."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            draft.open("w", encoding="utf-8", newline="\n") as stream,
            ending.undoing(draft.unlink),
        ):
            yield stream
        draft.replace(target)
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {error.strerror}") from error
    finally:
        # Where there is no such folder there is no draft either.
        with contextlib.suppress(OSError):
            draft.unlink()
