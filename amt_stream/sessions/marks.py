"""Marks that other processes add to a running log."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from amt_stream.core.files import NotThatFile, small_content
from amt_stream.sessions.chain import is_locked
from amt_stream.sessions.files import SessionError, as_session_error, drafted, give_name

PATIENCE_S = 5.0
PREFIX, SUFFIX = ".mark-", ".json"
LONGEST = 1 << 16
LONGEST_TEXT = 5000
"""Longest text in characters; JSON needs at most 12 bytes for each."""


def mark(folder: str | Path, text: str) -> None:
    """Add a mark to a running log, and wait until its meter has written it.

    Raises SessionError if no meter writes the log, if it does not accept the mark within 5 s, or if
    the text is empty or too long.
    """
    folder = Path(folder)
    if not is_locked(folder):
        raise SessionError(f"no meter writes {folder}: marks need a running log")
    if not text.strip():
        raise SessionError("the mark has no text: describe what happened")
    if len(text) > LONGEST_TEXT:
        raise SessionError(f"the mark has {len(text)} characters: give at most {LONGEST_TEXT}")
    data = json.dumps({"text": text}).encode()
    name = f"{time.time_ns()}-{os.getpid()}"
    path = folder / f"{PREFIX}{name}{SUFFIX}"
    with (
        as_session_error(path, "written"),
        drafted(folder / f".draft-{name}", data, 0o600) as draft,
    ):
        give_name(draft, path)
    give_up = time.monotonic() + PATIENCE_S
    while path.exists():
        if time.monotonic() > give_up:
            path.unlink(missing_ok=True)
            raise SessionError(f"the meter that writes {folder} did not accept the mark")
        time.sleep(0.02)


def marks_in(folder: Path) -> Iterator[str]:
    """Take the texts of waiting marks, the oldest first. Raises OSError."""
    for path in _waiting(folder):
        try:
            text = json.loads(small_content(path, LONGEST))["text"]
        except (NotThatFile, KeyError, TypeError, ValueError, RecursionError):
            text = None
        path.unlink(missing_ok=True)
        if isinstance(text, str):
            yield text


def forget_marks(folder: Path) -> None:
    """Remove marks that were not taken before the log ended."""
    with contextlib.suppress(OSError):
        for path in _waiting(folder):
            path.unlink(missing_ok=True)


def _waiting(folder: Path) -> list[Path]:
    names = (name for name in os.listdir(folder) if name.startswith(PREFIX))  # noqa: PTH208
    return [folder / name for name in sorted(names) if not (folder / name).is_dir()]
