"""Recordings of spans of sound with their measurement, as 24-bit FLAC, and their thread."""

import io
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from amt_stream.core.job_thread import JobThread
from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import runs_as
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import utc_text
from amt_stream.sessions.events.memory import SampleSpan
from amt_stream.sessions.files import PRIVATE, drafted, give_name, new_name
from amt_stream.sessions.flac import In24Bits

MOST_CELLS = 500_000
"""Largest trace in the comments of a file; those of FLAC are limited to 16 MiB."""


MOST_WAIT = 4
"""Largest number of files that wait for a slow disk, with their sound in memory."""


class WriterThread(JobThread[Path]):
    """`put` queues a function that writes a file; the future has its path or its OSError."""

    _closed = False

    def put(self, function: Callable[[], Path]) -> Future[Path]:
        """[any-thread]"""
        if not self._closed and self.waiting < MOST_WAIT:
            return super().put(function)
        why = "the measurement has ended" if self._closed else "its disk does not respond"
        refused: Future[Path] = Future()
        refused.set_exception(OSError(None, why))
        return refused

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits and end; returns False if the disk did not write it in that time."""
        self._closed = True
        return super().close(timeout)

    _run = runs_as("writer-thread")(JobThread._run)


def write_recording(
    folder: Path, name: str, stretch: SampleSpan, about: Mapping[str, object], trace: Rows | None
) -> Path:
    """Write a new file in the folder atomically. Raises OSError.

    about: data for its comment besides those of the sound itself: `sample` and `utc` of the begin,
        the number of samples, `gaps` (positions and lengths, silent in the file), and the number of
        samples `cut` at full scale
    trace: rows of that time
    """
    cut = invalid = 0
    exact = True
    for block in stretch.blocks():
        held = In24Bits(block)
        cut, invalid, exact = cut + held.cut, invalid + held.invalid, exact and held.exact
    utc = utc_text(stretch.utc)
    comment = {
        **about,
        "sample": stretch.start,
        "samples": len(stretch),
        "utc": utc,
        "gaps": [list(gap) for gap in stretch.gaps],
        "cut": cut,
        "invalid": invalid,
        "exact": exact,
        "trace": _trace_data(trace),
    }
    data = _flac(stretch, {"comment": json.dumps(comment), "date": utc, "title": name})
    folder.mkdir(0o700, parents=True, exist_ok=True)
    # 2026-11-22T14:15:02.345Z without characters that some systems refuse.
    stem = f"{utc.translate({ord(one): None for one in '-:'})}-{name}"
    path = new_name(folder, stem, ".flac")
    with drafted(folder / f".{path.name}.{os.getpid()}", data, PRIVATE) as draft:
        give_name(draft, path)
    return path


def _flac(stretch: SampleSpan, notes: Mapping[str, str]) -> bytes:
    import soundfile

    stream = io.BytesIO()
    try:
        with soundfile.SoundFile(
            stream, "w", stretch.fs, stretch.channels, subtype="PCM_24", format="FLAC"
        ) as file:
            for key, text in {**notes, "software": "amt_stream"}.items():
                setattr(file, key, text)
            for block in stretch.blocks():
                file.write(In24Bits(block).samples << 8)
    except soundfile.LibsndfileError as error:
        raise OSError(None, f"no sound can be written: {error}") from error
    return stream.getvalue()


def _trace_data(trace: Rows | None) -> JsonDict:
    """Rows as data; if there are too many, only every second one or fewer."""
    if trace is None or not len(trace):
        return {"columns": [], "rows": []}
    every = 1 + len(trace) * len(trace.columns) // MOST_CELLS
    some = trace if every == 1 else trace.where(slice(None, None, every))
    return {"columns": list(some.columns), "rows": [list(row) for row in some.tuples()]}
