"""Rows while they are measured."""

import math
import threading
from typing import TextIO

from amt_stream.engine.frames import Fault, Frames
from amt_stream.outputs.rows import Writer, picked, rows


class LiveRows:
    """A sink that writes the frame at every `step_ms`, with its marks, and flushes.

    `done` is set after `duration` seconds of sound, or when the stream takes no more: `error` then
    says why.
    """

    def __init__(
        self, stream: TextIO, writer: Writer, step_ms: int, duration: float | None = None
    ) -> None:
        self.done = threading.Event()
        self.error: OSError | None = None
        self._stream, self._writer, self._step_ms = stream, writer, step_ms
        self._duration = math.inf if duration is None else duration

    def __call__(self, frames: Frames) -> None:
        if self.done.is_set():
            return
        chosen = picked(frames.time_s, self._step_ms)
        chosen = chosen[frames.time_s[chosen] <= self._duration]
        loudness = rows(frames.time_s[chosen], frames.values.stl[chosen], frames.values.ltl[chosen])
        calibration = "calibrated" if frames.calibrated else "uncalibrated"
        marked = [
            (*row, fault_names(int(frames.fault[i])), bool(frames.settling[i]), calibration)
            for i, row in zip(chosen, loudness, strict=True)
        ]
        try:
            if marked:
                self._writer.write(marked)
                self._stream.flush()
        except OSError as error:
            self.error = error
            self.done.set()
        if frames.time_s[-1] >= self._duration:
            self.done.set()


def fault_names(fault: int) -> str:
    """The faults of a frame in words, empty where there is none."""
    return " ".join(str(bit.name).lower().replace("_", " ") for bit in Fault if fault & bit)
