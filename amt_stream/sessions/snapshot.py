"""The last snapshot of a session, from which another run continues.

The file has a line of identification, the SHA-256 of the rest, a JSON line, and the bytes of
arrays. Nothing in it is ever executed or unpickled.
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
"""Largest snapshot in bytes; five models with rolling windows of a day need 20 MB."""

KINDS = ("|b1", "|u1", "<i4", "<i8", "<f4", "<f8")
"""Types of arrays, little-endian on every computer."""


@dataclass(frozen=True)
class Saved:
    """The states of engine and rows at one sample.

    run: run of the session, counted from 1
    sample: sample of the input
    settings: settings of the measurement, as data for JSON
    written_to: sample of the last row written by the runs that this one continues, if they came
        further than their snapshot; else -1
    """

    run: int
    sample: int
    settings: JsonMap
    engine: SavedState
    rows: SavedState
    written_to: int = -1

    def refuse_other(self, settings: Mapping[str, object]) -> None:
        """Raise SessionError if its settings are not these."""
        was, now = (_flat(json.loads(json.dumps(one))) for one in (self.settings, settings))
        for name in [*was, *now]:
            if was.get(name) != now.get(name):
                raise SessionError(
                    f"{name} was {was.get(name)!r:.80} and is {now.get(name)!r:.80}: continue with "
                    "the same, or leave out --restore to begin another run"
                )


def _flat(value: object, name: str = "") -> JsonDict:
    """The values of nested data by dotted name."""
    if isinstance(value, list):
        value = {str(k): one for k, one in enumerate(value, 1)}
    if not isinstance(value, dict):
        return {name: value}
    inner = [_flat(one, f"{name}.{key}" if name else key) for key, one in value.items()]
    return {key: one for flat in inner for key, one in flat.items()}


def write_snapshot(folder: Path, saved: Saved) -> None:
    """Replace the snapshot atomically. Raises OSError."""
    state = {"run": saved.run, "sample": saved.sample, "settings": json.dumps(saved.settings)}
    state |= (
        {"written_to": saved.written_to} | under("engine", saved.engine) | under("rows", saved.rows)
    )
    with drafted(folder / DRAFT, _in_bytes(state)) as draft:
        draft.replace(folder / SNAPSHOT)


def read_snapshot(folder: Path) -> Saved | None:
    """The last snapshot, or None. Raises SessionError if it is invalid."""
    path = folder / SNAPSHOT
    with as_session_error(path, "read"):
        if not os.path.lexists(path):
            return None
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise SessionError(f"{path} is not a snapshot: that is a file of up to {LARGEST} bytes")
        data = path.read_bytes()
    try:
        state = of_bytes(data)
        run: Any = state["run"]
        sample: Any = state["sample"]
        written_to: Any = state["written_to"]
        settings: Any = json.loads(str(state["settings"]))
        counts = run, sample, written_to
        if not (all(isinstance(one, int) for one in counts) and isinstance(settings, dict)):
            raise TypeError("it has no settings")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise SessionError(
            f"{path} is damaged or not a snapshot ({why}): leave out --restore to begin another run"
        ) from error
    engine, rows = state_under(state, "engine"), state_under(state, "rows")
    return Saved(run, sample, settings, engine, rows, written_to)


def forget_snapshot(folder: Path) -> None:
    """Remove the snapshot of a run that is not continued. Raises SessionError."""
    with as_session_error(folder / SNAPSHOT, "removed"):
        (folder / SNAPSHOT).unlink(missing_ok=True)


def _in_bytes(state: Mapping[str, object]) -> bytes:
    """A state as bytes of a file."""
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
    """Read the bytes of `_in_bytes`. Raises ValueError, TypeError or KeyError."""
    first, digest, rest = data.split(b"\n", 2)
    if first + b"\n" != FIRST_LINE:
        raise ValueError("its first line is wrong")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("its digest is wrong")
    head, _, content = rest.partition(b"\n")
    given = json.loads(head)
    state: SavedState = {}
    for name, value in given["numbers"].items():
        if not isinstance(value, str | float | int | None):
            raise TypeError(f"{name!r:.40} is not a number")
        state[name] = value
    at = 0
    for name, kind, shape in given["arrays"]:
        if kind not in KINDS or not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
            raise ValueError(f"{name!r:.40} is not an array")
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
