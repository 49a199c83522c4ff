"""The saved position and state of an engine, and the time since it was saved."""

import time
from collections.abc import Mapping
from pathlib import Path

from amt_stream import __version__
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.measurement import Measurement

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNKNOWN_S = 1.5
"""Assumed duration of an unknown interruption: longer than any gap that is filled."""


def boot() -> str:
    """An identifier of the computer's present boot; "" if unknown."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class ClockReading(Resumable):
    """A moment by wall clock (seconds since 1970) and by time since boot."""

    kept = ("utc", "boot", "boot_s")

    def __init__(self, ago_s: float = 0.0, utc: float | None = None) -> None:
        """`ago_s` seconds before now; `utc` overrides the wall clock's reading."""
        self.utc = time.time() - ago_s if utc is None else utc
        self.boot, self.boot_s = boot(), since_boot_s() - ago_s

    def until(self, now: "ClockReading") -> float | None:
        """Seconds from this moment to another; None if no clock can tell.

        The wall clock, which may have been set, is used only if the computer was restarted.
        """
        same = self.boot and self.boot == now.boot
        seconds = now.boot_s - self.boot_s if same else now.utc - self.utc
        return seconds if seconds > 0 else None

    def samples_until(self, now: "ClockReading", fs: int) -> tuple[int, str]:
        """Number of samples missed between two moments, and why, in words."""
        seconds = self.until(now)
        if seconds is None:
            return round(UNKNOWN_S * fs), "it was interrupted for an unknown time"
        return round(seconds * fs), "it was interrupted"


class Standing(Resumable):
    """Saved state of an engine: its models' states, and when that was.

    epoch: UTC of the first sample
    """

    kept = ("version", "fs", "epoch", "moment", "models")

    def __init__(self, fs: int, models: Mapping[str, Measurement]) -> None:
        self.version, self.fs, self.models = __version__, int(fs), dict(models)
        self.epoch, self.moment = 0.0, ClockReading()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Raises Unfitting for the state of another version, rate or model."""
        for name, mine in (("version", self.version), ("fs", self.fs)):
            was = state.get(name)
            if was != mine:
                raise Unfitting(f"the {name} was {was!r:.40}, and is {mine!r}: go on with the same")
        super().load_state_dict(state)
        if len({one.position for one in self.models.values()}) > 1:
            raise Unfitting("the models of the state are at different samples")
