"""Rows while they are measured."""

import math
import threading
from collections.abc import Callable
from typing import TextIO

from amt_stream.engine.frames import Frames
from amt_stream.outputs.rows import Writer, picked, rows
from amt_stream.outputs.words import fault_words


class LiveRows:
    """A sink that writes the frame at every `step_ms`, with its marks, and flushes.

    `begin` gives the writer; it is asked when there is something to write, and not before.
    `done` is set after `duration` seconds of sound, or when the stream takes no more: `error` then
    says why.
    """

    def __init__(
        self,
        stream: TextIO,
        begin: Callable[[], Writer],
        step_ms: int,
        duration: float | None = None,
    ) -> None:
        self.done = threading.Event()
        self.error: OSError | None = None
        self._stream, self._begin, self._step_ms = stream, begin, step_ms
        self._writer: Writer | None = None
        self._duration = math.inf if duration is None else duration

    def __call__(self, frames: Frames) -> None:
        if self.done.is_set():
            return
        chosen = picked(frames.time_s, self._step_ms)
        chosen = chosen[frames.time_s[chosen] <= self._duration]
        loudness = rows(frames.time_s[chosen], frames.values.stl[chosen], frames.values.ltl[chosen])
        calibration = "calibrated" if frames.calibrated else "uncalibrated"
        faults = [" ".join(fault_words(int(frames.fault[i]))) for i in chosen]
        marked = [
            (*row, fault, bool(frames.settling[i]), calibration)
            for i, fault, row in zip(chosen, faults, loudness, strict=True)
        ]
        try:
            if marked:
                if self._writer is None:
                    self._writer = self._begin()
                self._writer.write(marked)
                self._stream.flush()
        except OSError as error:
            self.error = error
            self.done.set()
        if frames.time_s[-1] >= self._duration:
            self.done.set()
