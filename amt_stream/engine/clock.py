"""The computer's clocks, and the UTC of samples derived from them."""

import time
from collections.abc import Callable
from typing import NamedTuple

from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.thread_check import thread_checked

SLEW = 500e-6
HASTE = 0.05
NEAR_S = 0.02
STEP_S = 0.5
HELD_S = 0.001


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
