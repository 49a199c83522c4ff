"""Sound that a program hands in itself."""

import threading
from types import TracebackType
from typing import Self

import numpy as np

from amt_stream.engine.sources import (
    Deliver,
    Source,
    SourceError,
    as_block,
    as_lost,
    refuse_no_source,
)
from amt_stream.meters.calibration import Calibration


class PushSource(Source):
    """Sound that a program pushes, block after block, from any of its threads.

        source = PushSource(48000, channels=2)
        with Engine(source, Moore2016(fs=48000), sinks=[print]) as engine:
            with source:
                source.push(block)
            engine.wait()

    The blocks may be of any length, and follow one another in the order of the calls. The end of
    the with statement is `close`: there is no more.

    live: `push` returns at once, and what the engine's ring (`ring_s`) has no room for is lost:
        counted and marked GAP and OVERLOAD. A block that comes later than those before it by more
        than 0.1 s, by the sample count, is marked OVERLOAD. Otherwise `push` waits for room
        instead, and nothing is lost or late
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
        refuse_no_source(self)
        self._lock = threading.Lock()
        self._deliver: Deliver | None = None
        self._refusal = "is not started: start its Engine before pushing"
        self._closed = self._started = False

    def push(self, block: np.ndarray, lost: int = 0) -> None:
        """Hand in samples `(time, channel)`, or `(time,)` of one channel [any-thread].

        They are fractions of full scale, or integers of 16 or 32 bits, which are taken by their
        full scale. `lost` samples are known to be missing before them: time goes on and is marked
        GAP. The samples heard and lost are together those pushed, `lost` included. The block is
        copied.

        Raises SourceError before the engine has started, once it has stopped, and after `close`;
        TypeError or ValueError for what is no block.
        """
        samples, missing = as_block(np.asarray(block), self.channels), as_lost(lost)
        with self._lock:
            if self._deliver is None:
                raise SourceError(f"{self.name} {self._refusal}")
            self._deliver(samples, missing)

    def close(self) -> None:
        """There is no more: the engine ends when it has heard what was pushed [any-thread]."""
        with self._lock:
            self._closed = True
            if self._deliver is not None:
                self._deliver(None)
            self._deliver, self._refusal = None, "is closed: make a new PushSource to push again"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, deliver: Deliver) -> None:
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
