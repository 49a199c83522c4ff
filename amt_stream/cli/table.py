"""The rows that a command writes: the same of a file and of sound that comes live."""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amt_stream import rows
from amt_stream.calibration import Calibration
from amt_stream.cli.messages import Mistake
from amt_stream.measuring import described, readings_of
from amt_stream.presets import Preset

if TYPE_CHECKING:
    from amt_stream.streaming import Stage


@dataclass(frozen=True)
class Sound:
    """What is measured: its name, rate in hertz, channels, counted from 1, and calibration.

    `more` is what else a header tells of it.
    """

    name: str
    fs: int
    channels: tuple[int, ...]
    calibration: Sequence[Calibration]
    duration_s: float | None
    more: Mapping[str, Any]

    @property
    def told(self) -> dict[str, Any]:
        """As a header tells it."""
        return {
            "name": self.name,
            "fs": self.fs,
            "channels": list(self.channels),
            "duration_s": None if self.duration_s is None else round(self.duration_s, 6),
            **self.more,
        }


class Table:
    """The rows of a preset's models, with their header and their summary."""

    def __init__(
        self,
        args: argparse.Namespace,
        preset: Preset,
        models: "Mapping[str, Stage]",
        sound: Sound,
        step_ms: int,
    ) -> None:
        self.sound = sound
        programme = args.target_lufs, args.dual_mono
        self._models = described(preset, *programme)
        duration_s = getattr(args, "duration", None)
        ends = [t for t in (args.to_s, duration_s) if t is not None]
        try:
            readings = readings_of(preset, models, len(sound.channels), *programme)
            if args.columns is not None:
                rows.choose(readings, args.columns)
            self.rows = rows.JoinedRows(
                readings,
                step_ms,
                sound.fs,
                from_s=args.from_s,
                to_s=min(ends, default=math.inf),
                duration_s=sound.duration_s,
            )
        except ValueError as error:
            raise Mistake(error) from error

    def header(self, **more: Any) -> dict[str, Any]:
        given = self._models, self.sound.calibration, self.sound.told
        return rows.header(self.rows, *given, **more)

    def summary(self) -> dict[str, Any]:
        return rows.summary(self.rows, self._models, self.sound.calibration, self.sound.told)
