"""The last snapshot of a session, from which another run goes on.

A file of numbers, words and arrays by name: a line that says so, the SHA-256 of all that follows, a
line of JSON, and the arrays' bytes one after another. Nothing in it is ever executed or unpickled.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.saved_state import SavedState, state_under, under
from amt_stream.sessions.files import SessionError, as_session_error, drafted

SNAPSHOT = "snapshot.state"
DRAFT = f".{SNAPSHOT}"
FIRST_LINE = b"amt_stream state 1\n"
LARGEST = 1 << 26
"""Bytes of a snapshot; five models with rolling windows of a day have 20 MB."""

KINDS = ("|b1", "|u1", "<i4", "<i8", "<f4", "<f8")
"""Numbers of arrays, little-endian whatever the computer is."""


@dataclass(frozen=True)
class Saved:
    """A measurement at one sample: `engine` and `rows` are what they say of their states.

    run: of the session, counted from 1; sample: of its input
    settings: what it was measured with, as data for JSON
    written_to: of the sample counts of rows the last that runs before this one have written, where
        it went on from one that came further than its snapshot; -1 for none
    """

    run: int
    sample: int
    settings: JsonMap
    engine: SavedState
    rows: SavedState
    written_to: int = -1

    def refuse_other(self, settings: Mapping[str, object]) -> None:
        """Raise SessionError where it was measured with other settings than these."""
        was, now = (_flat(json.loads(json.dumps(one))) for one in (self.settings, settings))
        for name in [*was, *now]:
            if was.get(name) != now.get(name):
                raise SessionError(
                    f"{name} was {was.get(name)!r:.80} and is {now.get(name)!r:.80}: go on with "
                    "the same, or without --restore, as another run"
                )


def _flat(value: object, name: str = "") -> JsonDict:
    """The values in tables and lists of data by their dotted name."""
    if isinstance(value, list):
        value = {str(k): one for k, one in enumerate(value, 1)}
    if not isinstance(value, dict):
        return {name: value}
    inner = [_flat(one, f"{name}.{key}" if name else key) for key, one in value.items()]
    return {key: one for flat in inner for key, one in flat.items()}


def write_snapshot(folder: Path, saved: Saved) -> None:
    """Put a snapshot in the place of the one before, whole or not at all; raises OSError."""
    state = {"run": saved.run, "sample": saved.sample, "settings": json.dumps(saved.settings)}
    state |= (
        {"written_to": saved.written_to} | under("engine", saved.engine) | under("rows", saved.rows)
    )
    with drafted(folder / DRAFT, _in_bytes(state)) as draft:
        draft.replace(folder / SNAPSHOT)


def read_snapshot(folder: Path) -> Saved | None:
    """The last snapshot; None where there is none. Raises SessionError for what is none."""
    path = folder / SNAPSHOT
    with as_session_error(path, "read"):
        if not os.path.lexists(path):
            return None
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise SessionError(f"{path} is no snapshot: that is a file of up to {LARGEST} bytes")
        data = path.read_bytes()
    try:
        state = of_bytes(data)
        run: Any = state["run"]
        sample: Any = state["sample"]
        written_to: Any = state["written_to"]
        settings: Any = json.loads(str(state["settings"]))
        counts = run, sample, written_to
        if not (all(isinstance(one, int) for one in counts) and isinstance(settings, dict)):
            raise TypeError("it does not say what was measured")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise SessionError(
            f"{path} is damaged, or no snapshot ({why}): without --restore another run begins"
        ) from error
    engine, rows = state_under(state, "engine"), state_under(state, "rows")
    return Saved(run, sample, settings, engine, rows, written_to)


def forget_snapshot(folder: Path) -> None:
    """Remove the snapshot of a run that is not gone on with; raises SessionError."""
    with as_session_error(folder / SNAPSHOT, "removed"):
        (folder / SNAPSHOT).unlink(missing_ok=True)


def _in_bytes(state: Mapping[str, object]) -> bytes:
    """A state as the bytes of a file."""
    numbers: dict[str, object] = {}
    arrays: list[tuple[str, str, list[int]]] = []
    content = []
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            kind = value.dtype.newbyteorder("<").str
            arrays.append((name, kind, list(value.shape)))
            content.append(value.astype(kind, copy=False).tobytes())
        else:
            numbers[name] = value
    head = json.dumps({"numbers": numbers, "arrays": arrays}, separators=(",", ":")) + "\n"
    body = b"".join([head.encode(), *content])
    return FIRST_LINE + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def of_bytes(data: bytes) -> SavedState:
    """The state that `_in_bytes` made these bytes of; raises ValueError, TypeError or KeyError."""
    first, digest, rest = data.split(b"\n", 2)
    if first + b"\n" != FIRST_LINE:
        raise ValueError("its first line is another")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("its digest is another")
    head, _, content = rest.partition(b"\n")
    given = json.loads(head)
    state: SavedState = {}
    for name, value in given["numbers"].items():
        if not isinstance(value, str | float | int | None):
            raise TypeError(f"{name!r:.40} is no number")
        state[name] = value
    at = 0
    for name, kind, shape in given["arrays"]:
        if kind not in KINDS or not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
            raise ValueError(f"{name!r:.40} is no array")
        dtype, count = np.dtype(kind), math.prod(shape)
        size = count * dtype.itemsize
        if at + size > len(content):
            raise ValueError(f"{name!r:.40} is longer than the file")
        found = np.frombuffer(content, dtype, count, at).reshape(shape)
        state[str(name)] = found.astype(dtype.newbyteorder("="))
        at += size
    if at != len(content):
        raise ValueError("it is longer than its arrays")
    return state
