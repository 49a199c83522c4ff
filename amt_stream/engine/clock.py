"""The computer's clocks, and the UTC of samples that is drawn from them."""

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
    """What the clocks say at one moment, in seconds.

    day: since 1970, as far as the computer knows
    running: of `time.monotonic`, which halts while the computer sleeps
    since_boot: of `since_boot_s`, with that sleep
    """

    day: float
    running: float
    since_boot: float


def clocks() -> Clocks | None:
    """All of them at once; None where the thread was held between two of them."""
    before = time.monotonic()
    day, since_boot = time.time(), since_boot_s()
    running = time.monotonic()
    return Clocks(day, running, since_boot) if running - before < HELD_S else None


@thread_checked
class UtcScale:
    """UTC of samples, which never runs backwards.

    It follows a clock that is set forward at once, as that of a station that starts with a wrong
    time. Where the clock is set back, it goes on as before, slower by 500 ppm until the clock has
    caught up: so it is `ahead_s` of it for long, and that is told.

    look: gives the clocks, or None where it cannot at the moment
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
        """What happened to the clock since this was asked last, in a sentence [model-thread]."""
        now = self._look()
        if now is None:
            return ""
        offset, slept = now.day - now.since_boot, now.since_boot - now.running
        moved_s, slept_s = offset - self._offset, slept - self._slept
        self._offset, self._slept = offset, slept
        set_s = moved_s if abs(moved_s) > STEP_S else 0.0
        self.ahead_s = max(0.0, self.ahead_s - set_s)
        told = [f"the computer slept for {slept_s:.1f} s"] if slept_s > STEP_S else []
        if set_s:
            way = "forward" if set_s > 0 else "back"
            told.append(f"the computer's clock was set {way} by {abs(set_s):.1f} s")
        caught_up = self._waits and not self.ahead_s
        self._waits = self.ahead_s > 0
        if not (told or caught_up):
            return ""
        then = "UTC follows the clock"
        if self._waits:
            then = f"UTC goes on as before, {self.ahead_s:.1f} s ahead of the clock"
        return f"{' and '.join(told)}: {then}" if told else then

    def epoch(self, began_s: float, audio_s: float) -> float:
        """UTC of sample 0, as best known when `audio_s` has been heard [model-thread].

        It follows the drift of the sound card, by which `began_s` changes: when sample 0 came, or
        would have come promptly, by `since_boot_s`.
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
