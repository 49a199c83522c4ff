"""What a row of readings is, whatever it is written as."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from amt_stream import __version__
from amt_stream.calibration import COVERAGE, Calibration, uncertainty_of
from amt_stream.rows.words import fault_words
from amt_stream.scales import sone_to_phon

SCHEMA = 1
COLUMNS = ("time_s", "stl_sone", "ltl_sone", "stl_phon", "ltl_phon")
EDGES = ("stl_low", "stl_high", "ltl_low", "ltl_high")
"""Outputs of a model that is told the uncertainty of the level."""

BAND_COLUMNS = tuple(f"{edge}_{unit}" for unit in ("sone", "phon") for edge in EDGES)
"""Columns of theirs, after COLUMNS."""

MARKS = ("fault", "settling", "calibration")
"""Columns that live rows have besides."""

CALIBRATED = ("uncalibrated", "calibrated")

Row = tuple[Any, ...]


class Writer(Protocol):
    """Writes rows to a text stream; what the rows are about goes first."""

    def __init__(
        self, stream: TextIO, about: Mapping[str, Any], columns: Sequence[str] = COLUMNS
    ) -> None: ...

    def write(self, rows: Iterable[Row]) -> None: ...


def header(
    model_settings: Mapping[str, str], calibration: Sequence[Calibration], **more: Any
) -> dict[str, Any]:
    """What has to be known to read the numbers; two calibrations are those of left and right."""
    told = [str(c) for c in calibration]
    one = told[0] if len(set(told)) == 1 else f"left {told[0]}; right {told[-1]}"
    return {
        "schema": SCHEMA,
        "amt_stream": __version__,
        **model_settings,
        "calibration": one,
        **uncertainty(calibration),
        **more,
    }


def uncertainty(calibration: Sequence[Calibration]) -> dict[str, Any]:
    """The level's uncertainty and its parts, of the ear where it is larger; {} if not known."""
    level_db = uncertainty_of(calibration)
    if level_db is None:
        return {}
    larger = next(c for c in calibration if c.uncertainty_db == level_db)
    return {
        "uncertainty_db": round(level_db, 4),
        "uncertainty_k": COVERAGE,
        "calibration_uncertainty_db": larger.calibration_uncertainty_db,
        "microphone_uncertainty_db": larger.microphone_uncertainty_db,
    }


def seven_digits(value: float | None) -> float | None:
    """A reading as it is written; None where there is none, as of silence in decibels."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None


def marks(fault: int, settling: bool, calibrated: bool) -> Row:
    """MARKS of a frame."""
    return " ".join(fault_words(fault)), settling, CALIBRATED[calibrated]


def rows(
    time_s: NDArray[np.float64],
    stl: NDArray[np.floating],
    ltl: NDArray[np.floating],
    *edges: NDArray[np.floating],
) -> Iterable[Row]:
    """COLUMNS of each frame, and with `edges` BAND_COLUMNS: milliseconds exactly, seven digits."""
    numbers = [stl, ltl, sone_to_phon(stl), sone_to_phon(ltl), *edges, *map(sone_to_phon, edges)]
    digits = [[float(f"{v:.7g}") for v in column.tolist()] for column in numbers]
    return zip(np.round(time_s, 3).tolist(), *digits, strict=True)
