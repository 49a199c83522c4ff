"""Finds missing samples by comparing the sample count with the clock."""

import math
from statistics import median
from typing import Literal, NamedTuple

from amt_stream.meters.frames import Fault

TOLERANCE_S = 0.1
PATIENCE_S = 1.0
LATE_S = 1.0
HOLD_S = 0.15
WINDOW_S = 2.0
OFFSET_WINDOWS = 5
SLEW = 1000e-6
SANE_AGE_S = 10.0
GIVEN_S = 30.0


class BlockDecision(NamedTuple):
    """What to do with a block.

    what: "pass" it on, "hold" it back, "drop" it, or discard the stream: "stale"
    lost: samples found missing, besides those reported, before this or the first held block
    flags: bits of `Fault`
    """

    what: Literal["pass", "hold", "drop", "stale"]
    lost: int = 0
    flags: int = 0


class Continuity:
    """Counts samples that a device at `fs` lost without reporting it; pure arithmetic.

    Audio comes in bursts, so the arrival of one block says little. But the delay of the earliest
    block within some seconds, relative to the sample count, is stable and follows the device's
    clock.

    After a halt, a delay that stays larger by TOLERANCE_S means that the rest comes soon or is
    lost: blocks carry Fault.STALL, and after PATIENCE_S the time counts as lost. Audio that comes
    later in spite of that is dropped, to avoid counting it twice. If the blocks report that they
    are old, nothing was lost, but audio piles up in the system: beyond LATE_S, also if it grows in
    small steps, the stream is stale.

    After `restart` there is a new stream, without the rest of the old one. The gap between them is
    computed from the clock of the first stream, so that errors of many gaps do not add up. It holds
    the first HOLD_S for that, as the first block alone may be late.
    """

    def __init__(self, fs: int) -> None:
        self.fs = fs
        self.counted = 0
        self._usual = math.nan
        self._age = math.nan
        self._first = True
        self._begin()

    def _begin(self) -> None:
        self._offset = 0.0
        self._leasts: list[float] = []
        self._least = math.inf
        self._window_end = math.nan
        self._since = self._pending = self._grown = math.nan
        self._youngest = math.inf
        self._given_until = -math.inf
        self._dropping = False
        self._held, self._hold_end = 0, math.nan
        self._holding = not self._first

    def restart(self) -> None:
        """The stream is discarded; the next block is of a new one."""
        self._first = math.isnan(self._usual)
        self._begin()

    def missing(self, time_s: float) -> int:
        """Samples missing by a given time, if none came since the last block."""
        if math.isnan(self._usual):
            return 0
        return max(0, round((time_s - self._usual) * self.fs) - self.counted)

    def take(self, time_s: float, samples: int, lost: int = 0, age_s: float = 0.0) -> BlockDecision:
        """Judge a block that came at `time_s`, with `lost` samples known to be missing before it.

        age_s: age of its first sample according to the system
        """
        if self._holding:
            return self._hold(time_s, samples + lost)
        delay = time_s - (self.counted + samples + lost) / self.fs
        if math.isnan(self._usual):
            self._usual = delay
        if self._is_surplus(time_s, delay):
            return BlockDecision("drop")
        self.counted += samples + lost
        verdict = self._judge(time_s, self._excess(delay), age_s)
        self.counted += verdict.lost
        self._follow(time_s, delay - verdict.lost / self.fs)
        return verdict

    def _excess(self, delay: float) -> float:
        """Delay in seconds beyond that of the earliest blocks of this stream."""
        return delay - self._usual - self._offset

    def _hold(self, time_s: float, samples: int) -> BlockDecision:
        if not self._held:
            self._hold_end = time_s + HOLD_S
        self._held += samples
        self._least = min(self._least, time_s - (self.counted + self._held) / self.fs)
        if time_s < self._hold_end:
            return BlockDecision("hold")
        lost = max(0, round((self._least - self._usual) * self.fs))
        self.counted += self._held + lost
        self._least, self._holding = math.inf, False
        return BlockDecision("pass", lost)

    def _is_surplus(self, time_s: float, delay: float) -> bool:
        """Whether a block was already counted as lost."""
        excess = self._excess(delay)
        if excess < -TOLERANCE_S and time_s > self._given_until:
            self._offset += excess  # nothing was counted as lost: this is the true minimum
            self._dropping = False
        else:
            self._dropping = excess < (0.0 if self._dropping else -TOLERANCE_S)
        return self._dropping

    def _judge(self, time_s: float, excess: float, age_s: float) -> BlockDecision:
        if not abs(age_s) < SANE_AGE_S:
            age_s = 0.0
        if excess <= TOLERANCE_S:
            self._since = math.nan
            self._age = age_s if math.isnan(self._age) else self._age + 0.01 * (age_s - self._age)
            self._youngest = min(self._youngest, self._age)
            return BlockDecision("pass")
        if math.isnan(self._since):
            self._since, self._pending, self._grown = time_s, math.inf, math.inf
        self._pending = min(self._pending, excess)
        self._grown = min(self._grown, age_s - self._age)
        if time_s - self._since < PATIENCE_S:
            return BlockDecision("pass", 0, Fault.STALL)
        self._since = math.nan
        if self._grown > self._pending / 2:
            if max(self._pending, self._age + self._grown - self._youngest) > LATE_S:
                return BlockDecision("stale")
            self._offset += self._pending
            return BlockDecision("pass")
        self._given_until = time_s + GIVEN_S
        return BlockDecision("pass", round(self._pending * self.fs))

    def _follow(self, time_s: float, delay: float) -> None:
        """Follow the device's clock, from delays within one stream only."""
        if not math.isnan(self._since):
            return
        self._least = min(self._least, delay)
        if not self._leasts:
            early = min(0.0, self._excess(delay))
            self._usual += early if self._first else 0.0
            self._offset += 0.0 if self._first else early
        if math.isnan(self._window_end):
            self._window_end = time_s + WINDOW_S
        if time_s < self._window_end:
            return
        self._leasts.append(self._least)
        self._least, self._window_end = math.inf, time_s + WINDOW_S
        if len(self._leasts) == OFFSET_WINDOWS:
            self._offset = median(self._leasts) - self._usual
        elif len(self._leasts) > OFFSET_WINDOWS:
            most = SLEW * WINDOW_S
            self._usual += min(most, max(-most, self._excess(self._leasts.pop())))
