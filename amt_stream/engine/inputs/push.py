"""A source that the program feeds itself."""

import threading
from typing import Self

import numpy as np

from amt_stream.engine import sources
from amt_stream.meters.calibration import Calibration


class PushSource(sources.Source):
    """Audio that a program pushes, block by block, from any of its threads.

        source = PushSource(48000, channels=2)
        with Engine(source, Moore2016(fs=48000), sinks=[print]) as engine:
            with source:
                source.push(block)
            engine.wait()

    Blocks may have any length; they follow one another in the order of the calls. The end of the
    with statement calls `close`.

    live: `push` returns at once, and samples that do not fit into the engine's ring (`ring_s`) are
        lost, counted, and marked GAP and OVERLOAD. A block that is more than 0.1 s later than
        earlier ones, by the sample count, is marked OVERLOAD. If not live, `push` waits for room,
        and nothing is lost or late
    calibration: as for Engine
    """

    def __init__(
        self,
        fs: int,
        channels: int,
        name: str = "pushed sound",
        *,
        live: bool = True,
        calibration: Calibration | None = None,
    ) -> None:
        self.fs, self.channels, self.name = fs, channels, name
        self.live, self.calibration = live, calibration
        sources.refuse_no_source(self)
        self._lock = threading.Lock()
        self._deliver: sources.Deliver | None = None
        self._refusal = "is not started: start its Engine before pushing"
        self._closed = self._started = False

    def push(self, block: np.ndarray, lost: int = 0) -> None:
        """Push samples `(time, channel)`, or `(time,)` of one channel; copies them [any-thread].

        Fractions of full scale, or integers of 16 or 32 bits, which are scaled. `lost` samples are
        missing before them: time goes on and is marked GAP. The engine's samples and lost samples
        add up to those pushed, including `lost`.

        Raises SourceError before the engine has started, after it has stopped, and after `close`;
        TypeError or ValueError for an invalid block.
        """
        samples, missing = sources.as_block(np.asarray(block), self.channels), sources.as_lost(lost)
        with self._lock:
            if self._deliver is None:
                raise sources.SourceError(f"{self.name} {self._refusal}")
            self._deliver(samples, missing)

    def close(self) -> None:
        """End the source; the engine ends after processing what was pushed [any-thread]."""
        with self._lock:
            self._closed = True
            if self._deliver is not None:
                self._deliver(None)
            self._deliver, self._refusal = None, "is closed: make a new PushSource to push again"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def start(self, deliver: sources.Deliver) -> None:
        with self._lock:
            if self._started:
                raise RuntimeError(f"the source {self.name} was started before: make a new one")
            self._started = True
            if self._closed:
                deliver(None)
            else:
                self._deliver = deliver

    def stop(self) -> None:
        with self._lock:
            if self._deliver is not None:
                self._deliver, self._refusal = None, "takes no more sound: its engine has ended"
