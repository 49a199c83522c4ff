"""The computer's clocks, and the UTC of samples derived from them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from amt_stream.core.made_once import made_once
from amt_stream.core.saved_state import Resumable
from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.thread_check import thread_checked

SLEW = 500e-6
HASTE = 0.05
NEAR_S = 0.02
STEP_S = 0.5
HELD_S = 0.001

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNKNOWN_S = 1.5
"""Assumed duration of an unknown interruption: longer than any gap that is filled."""


@made_once
def boot() -> str:
    """An identifier of the computer's present boot, or of this process if the system has none."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return f"process {uuid4()}"


class ClockReading(Resumable):
    """A moment by wall clock (seconds since 1970) and by time since boot."""

    kept = ("utc", "boot", "boot_s")

    def __init__(self, ago_s: float = 0.0, utc: float | None = None) -> None:
        """`ago_s` seconds before now; `utc` overrides the wall clock's reading."""
        self.utc = time.time() - ago_s if utc is None else utc
        self.boot, self.boot_s = boot(), since_boot_s() - ago_s

    def same_boot(self, other: "ClockReading") -> bool:
        """Whether the computer ran without interruption between the two moments."""
        return self.boot == other.boot

    def until(self, now: "ClockReading") -> float | None:
        """Seconds from this moment to another; None if no clock can tell.

        The wall clock, which may have been set, is used only if the computer was restarted.
        """
        seconds = now.boot_s - self.boot_s if self.same_boot(now) else now.utc - self.utc
        return seconds if seconds > 0 else None

    def samples_until(self, now: "ClockReading", fs: int) -> tuple[int, str]:
        """Number of samples missed between two moments, and why, in words."""
        seconds = self.until(now)
        if seconds is None:
            return round(UNKNOWN_S * fs), "it was interrupted for an unknown time"
        return round(seconds * fs), "it was interrupted"


class Clocks(NamedTuple):
    """Readings of the clocks at one moment, in seconds.

    day: since 1970, according to the computer
    running: `time.monotonic`, which stops while the computer sleeps
    since_boot: `since_boot_s`, including sleep
    """

    day: float
    running: float
    since_boot: float


def clocks() -> Clocks | None:
    """All clocks at once; None if the thread was interrupted between two readings."""
    before = time.monotonic()
    day, since_boot = time.time(), since_boot_s()
    running = time.monotonic()
    return Clocks(day, running, since_boot) if running - before < HELD_S else None


@thread_checked
class UtcScale:
    """UTC of samples, which never runs backwards.

    If the clock is set forward, UTC follows at once (a station may start with a wrong time). If it
    is set back, UTC runs 500 ppm slower until the clock has caught up; meanwhile it is `ahead_s`
    ahead.

    look: reads the clocks; None if they cannot be read at the moment
    """

    def __init__(self, look: Callable[[], Clocks | None] = clocks) -> None:
        self.ahead_s = 0.0
        self._waits = False
        self._look = look
        while (now := look()) is None:
            pass
        self._offset, self._slept = now.day - now.since_boot, now.since_boot - now.running
        self._epoch: float | None = None
        self._epoch_at = 0.0

    def change(self) -> str:
        """What happened to the clock since the last call, as a sentence or "" [model-thread]."""
        now = self._look()
        if now is None:
            return ""
        offset, slept = now.day - now.since_boot, now.since_boot - now.running
        moved_s, slept_s = offset - self._offset, slept - self._slept
        self._offset, self._slept = offset, slept
        set_s = moved_s if abs(moved_s) > STEP_S else 0.0
        self.ahead_s = max(0.0, self.ahead_s - set_s)
        parts = [f"the computer slept for {slept_s:.1f} s"] if slept_s > STEP_S else []
        if set_s:
            way = "forward" if set_s > 0 else "back"
            parts.append(f"the computer's clock was set {way} by {abs(set_s):.1f} s")
        caught_up = self._waits and not self.ahead_s
        self._waits = self.ahead_s > 0
        if not (parts or caught_up):
            return ""
        then = "UTC follows the clock"
        if self._waits:
            then = f"UTC goes on as before, {self.ahead_s:.1f} s ahead of the clock"
        return f"{' and '.join(parts)}: {then}" if parts else then

    def epoch(self, began_s: float, audio_s: float) -> float:
        """Best estimate of the UTC of sample 0 after `audio_s` seconds of audio [model-thread].

        began_s: when sample 0 came, or would have come without delay, by `since_boot_s`; it
            follows the drift of the sound card
        """
        if self._epoch is None:
            self._epoch, self._epoch_at = self._offset + began_s, audio_s
        passed_s = max(0.0, audio_s - self._epoch_at)
        self._epoch_at = max(self._epoch_at, audio_s)
        self.ahead_s = max(0.0, self.ahead_s - SLEW * passed_s)
        wanted = self._offset + self.ahead_s + began_s - self._epoch
        if wanted > STEP_S:
            self._epoch += wanted
        elif wanted > -NEAR_S:
            self._epoch += min(SLEW * passed_s, max(-SLEW * passed_s, wanted))
        else:
            self._epoch += max(-HASTE * passed_s, wanted)
        return self._epoch
