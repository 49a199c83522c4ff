"""A source, heard for the tone of a calibrator by whoever asks now and then."""

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
"""Sound (time, channel), how many samples are missing before it, and its bits of `Fault`."""

TURN_S = 0.2
LEVEL_S = 0.1
LOWEST_DB = -120.0


def live_sound(source: Source, left_s: Callable[[], float]) -> Iterator[Piece]:
    """What a live source delivers, until nothing is left of the time for it.

    Raises what the source ended with, and DeviceLost where it delivers nothing.
    """
    inbox: queue.SimpleQueue[tuple[Block | None, int, int]] = queue.SimpleQueue()

    def deliver(block: Block | None, lost: int = 0, flags: int = 0) -> None:
        inbox.put((None if block is None else block.copy(), lost, flags))

    source.start(deliver)
    try:
        heard_at = time.monotonic()
        while (left := left_s()) > 0:
            try:
                came, lost, flags = inbox.get(timeout=min(left, TURN_S))
            except queue.Empty:
                if time.monotonic() - heard_at > source.stall_s:
                    raise DeviceLost(f"{source.name!r} delivers nothing") from None
                continue
            heard_at = time.monotonic()
            if came is None:
                raise source.error or DeviceLost(f"{source.name!r} ended")
            yield came, lost, flags
    finally:
        source.stop()


def unbroken(sound: Iterable[Piece]) -> Iterator[tuple[Block, bool]]:
    """The same in blocks with nothing missing inside, and whether something is before each."""
    held: list[Block] = []
    missing = False
    for block, lost, flags in sound:
        if lost:
            held.clear()
            missing = True
        held.append(block)
        if flags & Fault.STALL:  # it is not known yet whether samples are missing
            continue
        yield np.concatenate(held), missing
        held.clear()
        missing = False


@dataclass(frozen=True)
class ToneReading:
    """What has just been heard.

    state: "opening", "listening", "lost", or "ended" for good
    words: of a source that has ended or is lost, why
    levels_db: of each channel, rms and peak re full scale, a sine of full scale 0 in both
    verdict: on the tone of that channel and frequency, None before the first
    """

    state: str
    words: str = ""
    levels_db: tuple[tuple[float, float], ...] = ()
    verdict: ToneVerdict | None = None
    of: tuple[int, float] | None = None


class CalibratorListener:
    """Hears one channel of a source for the tone of a calibrator, in a thread of its own.

    open_source: called in that thread, as a sound system may take its time
    channel: counted from 1 among those that the source delivers

    Nothing is raised there: `heard` says why it has ended. `stop` waits for the source, 2 s at
    most.
    """

    def __init__(
        self, open_source: Callable[[], Source], channel: int = 1, frequency: float = 1000.0
    ) -> None:
        self.source: Source | None = None
        self._open, self._wanted = open_source, (channel, frequency)
        self._heard = ToneReading("opening")
        self._over = threading.Event()
        # A daemon: a sound system that hangs must not keep the program.
        self._thread = threading.Thread(target=self._run, name="calibrator", daemon=True)
        self._thread.start()

    def listen_to(self, channel: int, frequency: float) -> None:
        """Hear another channel, or another tone; what was heard of it begins anew [any-thread]."""
        self._wanted = channel, frequency

    @property
    def heard(self) -> ToneReading:
        """What has just been heard [any-thread]."""
        heard, source = self._heard, self.source
        gone = source is not None and source.state in ("lost", "stalled")
        if heard.state == "listening" and source is not None and gone:
            return ToneReading("lost", source.note or f"{source.name} delivers nothing")
        return heard if heard.of == self._wanted else replace(heard, verdict=None)

    def stop(self) -> None:
        """Let the source go [any-thread]."""
        self._over.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        try:
            source = self.source = self._open()
            self._listen(source)
        except Exception as error:
            self._heard = ToneReading("ended", str(error) or type(error).__name__)
        else:
            self._heard = ToneReading("ended")

    def _listen(self, source: Source) -> None:
        if self._over.is_set():
            return
        wanted, watch = None, None
        levels: tuple[tuple[float, float], ...] = ()
        seen = np.zeros((0, source.channels), np.float32)
        for block, missing in unbroken(live_sound(source, lambda: float(not self._over.is_set()))):
            if watch is None or wanted != self._wanted:
                wanted = self._wanted
                watch = ToneWatch(source.fs, wanted[1])
            elif missing:
                watch.interrupt()
            watch.push(block[:, wanted[0] - 1])
            seen = np.concatenate([seen, block])
            if len(seen) >= LEVEL_S * source.fs:
                levels, seen = _levels(seen), seen[:0]
            self._heard = ToneReading("listening", "", levels, watch.verdict, wanted)


def _levels(sound: Block) -> tuple[tuple[float, float], ...]:
    sane = np.nan_to_num(sound.astype(np.float64))
    rms, peak = np.sqrt(2 * np.mean(sane**2, axis=0)), np.abs(sane).max(axis=0)
    db = 20 * np.log10(np.maximum([rms, peak], 10 ** (LOWEST_DB / 20)))
    return tuple((float(a), float(b)) for a, b in db.T)
