"""Measures the last seconds of sound again, with 3 dB less in each band."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore

from amt_monitor.command_run import OUTPUT, CommandRun
from amt_stream.sessions.results import ResultsError

if TYPE_CHECKING:
    from amt_stream.sessions.events import SoundKeeper

SECONDS = 5.0
"""Of sound. The standard leaves out the first 0.3 s; each second costs 11 times its measurement."""


class Effects(NamedTuple):
    """What 3 dB less in a band does, by the name of a quality (place, band).

    Places are both ears, the left one and the right one, or only both. Changes are in percent, of
    LAeq in dB; NaN where there is nothing that could change.
    """

    changes: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, text: str) -> "Effects":
        """From what `explain --format json` prints. Raises ResultsError."""
        try:
            data = json.loads(text)
            values, units = data["values"], data["units"]
            changes = {name: np.array(v, np.float64) for name, v in data["changes"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"what explain printed is invalid: {error}") from error
        for name, change in changes.items():
            if units[name] != "dB":
                change *= 100 / values[name] if values[name] else np.nan
        return cls(changes)


class EffectsRun(CommandRun):
    """Runs `amt-stream explain` on the last seconds in memory; the result is `Effects`."""

    def __init__(self, keeper: "SoundKeeper", field: str, parent: QtCore.QObject) -> None:
        super().__init__(OUTPUT, parent)
        self._keeper, self._field = keeper, field

    def command(self, folder: Path) -> Sequence[str]:
        sound = self._keeper.write_last(folder, SECONDS)
        return ["explain", str(sound), "--format", "json", "--field", self._field]

    def result(self, path: Path) -> Effects:
        return Effects.of(path.read_text(encoding="utf-8"))
