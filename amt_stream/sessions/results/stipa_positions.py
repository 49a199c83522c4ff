"""Measurements of the STI at several positions, with their mean and the lowest."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from amt_stream.core.errors import Refusal
from amt_stream.core.files import small_text, whole_text_file, why
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.accumulators.sti import category, sti
from amt_stream.meters.accumulators.stipa import WORDS, Reason, StiResult, reason_words
from amt_stream.meters.rows.words import NO_READING

INTERRUPTED = "the signal was interrupted: this computer was too slow to play it"
FORM = "amt_stream STI positions"


class NoPositions(Refusal, ValueError):
    """A file that has no positions; the message says why."""


@dataclass(frozen=True)
class StiPosition:
    """The STI at a position; values and levels by octave from 125 Hz.

    name: of the position
    utc: when it was measured
    m: modulation transfer values (7, 2), as measured
    level_db: (7,) of the signal with the noise that was there, None in silence; in dB SPL if it is
        calibrated
    seconds: how long it was measured
    sd: standard deviation of the STI
    noise_db: (7,) of noise that was measured apart and is added by calculation, or None
    reasons: why it is not valid, as sentences
    """

    name: str
    utc: str
    m: list[list[float]]
    level_db: list[float | None]
    calibrated: bool
    seconds: float
    sd: float
    noise_db: list[float] | None
    reasons: list[str]

    @classmethod
    def of(
        cls,
        name: str,
        utc: str,
        result: StiResult,
        calibrated: bool,
        noise_db: list[float] | None,
        interrupted: bool = False,
    ) -> Self:
        """The position of a measurement; `interrupted` where the signal had a pause."""
        why_not = reason_words(result.reasons) + [INTERRUPTED] * interrupted
        values = np.round(result.m, 5).tolist()
        levels = [None if math.isnan(one) else round(float(one), 3) for one in result.level_db]
        seconds = round(result.seconds, 1)
        return cls(
            name, utc, values, levels, calibrated, seconds, round(result.sd, 4), noise_db, why_not
        )

    @property
    def indices(self) -> tuple[float, list[float]]:
        """STI, and modulation transfer indices (7,), with the noise that is added."""
        level_db = [-math.inf if one is None else one for one in self.level_db]
        value, mti = sti(self.m, level_db if self.calibrated else None, self.noise_db)
        return value, [float(one) for one in mti]

    @property
    def sti(self) -> float:
        """The speech transmission index."""
        return self.indices[0]

    @property
    def no_signal(self) -> bool:
        """Whether the test signal was not there."""
        return WORDS[Reason.NO_SIGNAL] in self.reasons

    @property
    def octaves(self) -> list[tuple[str, ...]]:
        """m1, m2, MTI and level in text by octave."""
        _, mti = self.indices
        return [
            (NO_READING,) * 4
            if level is None
            else (*(f"{value:.2f}" for value in (*m, index)), f"{level:.1f}")
            for m, index, level in zip(self.m, mti, self.level_db, strict=True)
        ]

    @property
    def words(self) -> str:
        """The result in one line."""
        if self.no_signal:
            return "no signal"
        value = self.sti
        return f"STI {value:.2f} ± {max(self.sd, 0.001):.3f}, category {category(value)}"

    @property
    def basis(self) -> str:
        """What the result takes into account."""
        if not self.calibrated:
            return "not calibrated: without masking by level and threshold of hearing"
        added = "" if self.noise_db is None else ", with the noise that was measured apart"
        return f"calibrated: with masking by level and threshold of hearing{added}"

    def to_dict(self) -> JsonDict:
        value, mti = self.indices
        letter = None if self.no_signal else category(value)
        return {
            **asdict(self),
            "sti": None if self.no_signal else round(value, 4),
            "category": letter,
            "mti": [round(one, 4) for one in mti],
            "valid": not self.reasons,
        }


class Overall(NamedTuple):
    """Of the valid positions: their number, mean and lowest STI, and where that is."""

    number: int
    mean: float
    lowest: float
    where: str


def overall(positions: list[StiPosition]) -> Overall | None:
    """Mean and lowest of the valid positions; None without one."""
    valid = [one for one in positions if not one.reasons]
    if not valid:
        return None
    lowest = min(valid, key=lambda one: one.sti)
    mean = sum(one.sti for one in valid) / len(valid)
    return Overall(len(valid), mean, lowest.sti, lowest.name)


def read_positions(path: Path) -> list[StiPosition]:
    """The positions in a file. Raises NoPositions if it has none."""
    try:
        content = json.loads(small_text(path))
        if content["form"] != FORM:
            raise KeyError(content["form"])
        known = StiPosition.__dataclass_fields__
        return [
            StiPosition(**{k: v for k, v in one.items() if k in known})
            for one in content["positions"]
        ]
    except OSError as error:
        raise NoPositions(f"{path} cannot be read: {why(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NoPositions(
            f"{path} has no positions of `amt-stream stipa --save`: give such a file, or a new name"
        ) from error


def with_position(before: list[StiPosition], position: StiPosition) -> list[StiPosition]:
    """These and one more, in place of one of the same name."""
    return [one for one in before if one.name != position.name] + [position]


def save_position(path: Path, position: StiPosition) -> list[StiPosition]:
    """Add a position to a file, in place of one of the same name; gives all of them.

    Raises NoPositions for a file of something else.
    """
    before = read_positions(path) if path.exists() else []
    positions = with_position(before, position)
    content = {"form": FORM, "positions": [one.to_dict() for one in positions]}
    with whole_text_file(path) as file:
        file.write(json.dumps(content, indent=1) + "\n")
    return positions
