"""Listens to a source for the tone of a sound calibrator."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from amt_stream.engine.sources import Block, DeviceLost, Source
from amt_stream.meters.calibrator import ToneVerdict, ToneWatch
from amt_stream.meters.frames import Fault

Piece = tuple[Block, int, int]
"""Samples (time, channel), number of samples missing before them, and `Fault` bits."""

TURN_S = 0.2
LEVEL_S = 0.1
LOWEST_DB = -120.0


def live_sound(source: Source, left_s: Callable[[], float]) -> Iterator[Piece]:
    """Yield what a live source delivers, until `left_s` returns 0.

    Raises the source's error, and DeviceLost if it delivers nothing.
    """
    inbox: queue.SimpleQueue[tuple[Block | None, int, int]] = queue.SimpleQueue()

    def deliver(block: Block | None, lost: int = 0, flags: int = 0) -> None:
        inbox.put((None if block is None else block.copy(), lost, flags))

    source.start(deliver)
    try:
        last_at = time.monotonic()
        while (left := left_s()) > 0:
            try:
                came, lost, flags = inbox.get(timeout=min(left, TURN_S))
            except queue.Empty:
                if time.monotonic() - last_at > source.stall_s:
                    raise DeviceLost(f"{source.name!r} delivers nothing") from None
                continue
            last_at = time.monotonic()
            if came is None:
                raise source.error or DeviceLost(f"{source.name!r} ended")
            yield came, lost, flags
    finally:
        source.stop()


def unbroken(sound: Iterable[Piece]) -> Iterator[tuple[Block, bool]]:
    """Join pieces into blocks without gaps, each with whether samples are missing before it."""
    held: list[Block] = []
    missing = False
    for block, lost, flags in sound:
        if lost:
            held.clear()
            missing = True
        held.append(block)
        if flags & Fault.STALL:  # the next block says whether samples are missing
            continue
        yield np.concatenate(held), missing
        held.clear()
        missing = False


@dataclass(frozen=True)
class ToneReading:
    """The latest reading.

    state: "opening", "listening", "lost", or "ended" for good
    words: why the source has ended or is lost
    levels_db: RMS and peak of each channel re full scale; a full-scale sine is 0 in both
    verdict: on the calibrator's tone; None before the first
    of: the channel and frequency of the verdict
    """

    state: str
    words: str = ""
    levels_db: tuple[tuple[float, float], ...] = ()
    verdict: ToneVerdict | None = None
    of: tuple[int, float] | None = None


class CalibratorListener:
    """Listens to one channel of a source for a calibrator's tone, in its own thread.

    open_source: called in that thread, because it may take time
    channel: counted from 1 among the source's channels

    The thread raises nothing: `reading` says why it ended. `stop` waits at most 2 s for the source.
    """

    def __init__(
        self, open_source: Callable[[], Source], channel: int = 1, frequency: float = 1000.0
    ) -> None:
        self.source: Source | None = None
        self._open, self._wanted = open_source, (channel, frequency)
        self._reading = ToneReading("opening")
        self._over = threading.Event()
        # A daemon, so that a sound system that hangs does not block the program's exit.
        self._thread = threading.Thread(target=self._run, name="calibrator", daemon=True)
        self._thread.start()

    def listen_to(self, channel: int, frequency: float) -> None:
        """Switch to another channel or tone, and start over [any-thread]."""
        self._wanted = channel, frequency

    @property
    def reading(self) -> ToneReading:
        """The latest reading [any-thread]."""
        reading, source = self._reading, self.source
        gone = source is not None and source.state in ("lost", "stalled", "silent")
        if reading.state == "listening" and source is not None and gone:
            return ToneReading("lost", source.note or f"{source.name} delivers nothing")
        return reading if reading.of == self._wanted else replace(reading, verdict=None)

    def stop(self) -> None:
        """Stop the source [any-thread]."""
        self._over.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        try:
            source = self.source = self._open()
            self._listen(source)
        except Exception as error:
            self._reading = ToneReading("ended", str(error) or type(error).__name__)
        else:
            self._reading = ToneReading("ended")

    def _listen(self, source: Source) -> None:
        if self._over.is_set():
            return
        wanted, watch = None, None
        levels: tuple[tuple[float, float], ...] = ()
        seen = np.zeros((0, source.channels), np.float32)
        for block, missing in unbroken(live_sound(source, lambda: float(not self._over.is_set()))):
            if watch is None or wanted != self._wanted:
                wanted = self._wanted
                watch = ToneWatch(source.fs, wanted[1], clips_at=source.description.clips_at)
            elif missing:
                watch.interrupt()
            watch.push(block[:, wanted[0] - 1])
            seen = np.concatenate([seen, block])
            if len(seen) >= LEVEL_S * source.fs:
                levels, seen = _levels(seen), seen[:0]
            self._reading = ToneReading("listening", "", levels, watch.verdict, wanted)


def _levels(sound: Block) -> tuple[tuple[float, float], ...]:
    sane = np.nan_to_num(sound.astype(np.float64))
    rms, peak = np.sqrt(2 * np.mean(sane**2, axis=0)), np.abs(sane).max(axis=0)
    db = 20 * np.log10(np.maximum([rms, peak], 10 ** (LOWEST_DB / 20)))
    return tuple((float(a), float(b)) for a, b in db.T)
