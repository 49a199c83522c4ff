"""Prepares the sound of one microphone for a model."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.core.words import counted
from amt_stream.dsp.functional.input_gate import SILENCE, scale_and_check
from amt_stream.dsp.scales import P0
from amt_stream.engine.calibration_in_use import CalibrationInUse
from amt_stream.engine.channels import EARS, Columns, number_of
from amt_stream.engine.converter_ends import suspect_from
from amt_stream.engine.history import Level
from amt_stream.engine.microphone_correction import NO_LIMIT, Corrected, corrections_of
from amt_stream.engine.offset import follow_of
from amt_stream.engine.ready_model import ReadyModel
from amt_stream.meters.calibration import Calibration, with_corrections
from amt_stream.meters.source_description import InputGain, SourceDescription

LOWEST_DB = -100.0
FULL_SCALE_SINE = 0.5**0.5
"""RMS of a full-scale sine."""

LAST = 2**62
"""Index of a frame after all others."""


class MicrophoneInput(Resumable):
    """Removes the offset, applies calibration, gain and response correction, measures the level.

    columns: its channels in a block, `channels` of them
    places: their places among `measured` channels, of which calibrations may be given for each
    description: what the source knows of its sound; by default computed sound
    offset: slow mean of each channel, which is removed if the description says so
    calibrated: whether the level is known or not needed
    level: gives the level of each ear at frames, each that of its block; one ear counts as both
    """

    kept: ClassVar[tuple[str, ...]] = ("zeros_run", "_level_db", "_energy", "_memory", "began_at")
    kept += ("offset",)

    level: Level

    def __init__(
        self,
        columns: Columns,
        offered: int,
        calibration: Calibration | Sequence[Calibration],
        gain_db: float,
        places: Sequence[int] = (),
        measured: int = 0,
        description: SourceDescription | None = None,
    ) -> None:
        self.columns, self.channels = columns, number_of(columns, offered)
        self._places, self._measured = places, measured
        self._about = description or SourceDescription.of_signal(offered)
        self._suspect_from = suspect_from(self._about)
        self.offset, self._follow = np.zeros(self.channels), 0.0
        self.in_use, self.gain_db = CalibrationInUse(self.own(calibration)), gain_db
        self.zeros_run = 0
        self._corrected: Corrected | None = None

    def enter(self, ready: ReadyModel, into: NDArray[np.float32]) -> None:
        """Feed a model from the next sample on; `into` (ear, time) is its input."""
        self._ready = ready
        follows = self._about.has_offset and ready.in_pascal
        self._follow = follow_of(ready.clock.fs) if follows else 0.0
        self.write_to(into)
        self._energy = np.zeros((ready.rows, 1))
        self._set_scale()

    def write_to(self, into: NDArray[np.float32]) -> None:
        """Write the input of the next blocks to `into` (ear, time)."""
        self._input = into

    def begin(self) -> None:
        """Begin from silence at the first sample."""
        self.level = _BlockLevel(np.zeros((max(2, self._ready.rows), 1)), 1, 1.0, 0, 1)

    def recalibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None,
        gain_db: float | None,
        keep_corrections: bool,
    ) -> None:
        """Change calibration and gain from here on; None leaves them."""
        if calibration is not None:
            given = self.own(calibration)
            if keep_corrections:
                before = [one.correction for one in self.calibration]
                given = tuple(with_corrections(given, before))
            self.in_use.give(given)
        if gain_db is not None:
            self.gain_db = gain_db
        self._set_scale()

    def own(self, calibration: Calibration | Sequence[Calibration]) -> tuple[Calibration, ...]:
        """The calibration of its channels, from one for all or one for each measured channel.

        Raises ValueError for another number of them.
        """
        given = each_ear(calibration)
        if self._places and len(given) == self._measured:
            return tuple(given[place] for place in self._places)
        if len(given) not in (1, max(EARS, self.channels)):
            raise ValueError(
                f"{counted(len(given), 'calibration')} given: give one, or one for each "
                f"{'ear' if self.channels <= EARS else 'channel'}"
            )
        return given

    def know_gain(self, gain: InputGain) -> bool:
        """Take the gain of its input; True if the calibration holds no longer, or again."""
        before = self.in_use.why
        self.in_use.know_gain(gain)
        self._set_scale()
        return bool(before) != bool(self.in_use.why)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """The calibration of both ears or of each; uncalibrated while it does not hold."""
        return self.in_use.now

    @property
    def began_at(self) -> str:
        """The input gain for which a calibration without one holds, as text."""
        return self.in_use.began_at

    @began_at.setter
    def began_at(self, given: str) -> None:
        self.in_use.began_at = given
        self._set_scale()

    @property
    def form(self) -> str:
        """The calibration and gain, in words."""
        words = "; ".join(f"{c} ({c.full_scale_db_spl!r})" for c in self.in_use.given)
        return f"{words}, {self.gain_db:+g} dB" if self.gain_db else words

    @property
    def has_offset(self) -> bool:
        """Whether the source's samples may have an offset."""
        return self._about.has_offset

    @property
    def gain(self) -> float:
        """The gain before the model, as a factor."""
        return float(10.0 ** (self.gain_db / 20.0))

    @property
    def silent(self) -> bool:
        """Whether there were only exact zeros for more than a second [any-thread]."""
        return self.zeros_run > self._ready.clock.fs

    @property
    def _level_db(self) -> NDArray[np.float32]:
        """Level of each ear in the last block, one as both (ear, 1)."""
        return self.level(np.array([LAST]))

    @_level_db.setter
    def _level_db(self, given: NDArray[np.float32]) -> None:
        self.level = lambda index: np.repeat(given, len(index), axis=1)

    @property
    def _memory(self) -> dict[str, NDArray[np.float64]]:
        """The state of the response correction, if any."""
        return {} if self._corrected is None else self._corrected.memory

    @_memory.setter
    def _memory(self, given: dict[str, NDArray[np.float64]]) -> None:
        if self._corrected is not None:
            self._corrected.memory = given

    def be_silent(self) -> None:
        """Reset the response correction to silence."""
        if self._corrected is not None:
            self._corrected.reset()

    def fill(self, count: int) -> None:
        """Fill `count` missing samples with zeros, or the decay of the response correction."""
        self._input[:, :count] = 0.0
        if self._corrected is not None:
            self._corrected.fill(self._input[:, :count], self._scale)

    def _set_scale(self) -> None:
        """Set the model's input value of a full-scale sample, per ear."""
        ready = self._ready
        wanted = corrections_of(self.calibration, self.channels)
        if wanted != (() if self._corrected is None else self._corrected.corrections):
            self._corrected = Corrected(wanted, ready.clock.fs) if wanted else None
        self._scale_and_check = scale_and_check if self._corrected is None else self._corrected
        self.calibrated = not ready.in_pascal or all(c.calibrated for c in self.calibration)
        if ready.in_pascal:
            scale, self._reference = pascal_per_ear(self.calibration)[: ready.rows], P0
        else:
            scale, self._reference = np.ones((1, 1), np.float32), FULL_SCALE_SINE
        self._scale = np.float32(self.gain) * scale

    def feed(self, part: NDArray[np.float32]) -> int:
        """Take samples (time, channel) of a block, or whole blocks, mono to both ears.

        Returns their classification.
        """
        if len(part) > self._ready.block:
            self._energy = np.zeros((self._ready.rows, len(part) // self._ready.block))
        what = self._run(part, self._suspect_from)
        self.zeros_run = self.zeros_run + len(part) if what == SILENCE else 0
        return what

    def feed_checked(self, part: NDArray[np.float32]) -> None:
        """Take samples in which invalid ones were replaced by zeros."""
        self._run(part, NO_LIMIT)

    def _run(self, part: NDArray[np.float32], limit: np.float32) -> int:
        offset, follow = self.offset, self._follow
        given = part, self._scale, limit, offset, follow, self._input, self._energy
        return self._scale_and_check(*given)

    def take_level(self, count: int, first: int) -> None:
        """Set the level of the last blocks, of which `count` samples were sound.

        first: index of their first frame
        """
        energy, self._energy = self._energy, np.zeros((self._ready.rows, 1))
        self.level = _BlockLevel(energy, count, self._reference, first, self._ready.frames)


class _BlockLevel:
    """Level of blocks, computed when needed from their `energy` (row, block).

    One row counts as two. The blocks have `count` samples in all, and each has `frames` frames;
    `first` is the index of the first one.
    """

    def __init__(
        self, energy: NDArray[np.float64], count: int, reference: float, first: int, frames: int
    ) -> None:
        self._energy, self._count, self._reference = energy, count, reference
        self._first, self._frames = first, frames

    def __call__(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """The level at frames (n,) in dB (row, n), at least LOWEST_DB."""
        blocks = self._energy.shape[1]
        mean_square = self._energy / (self._count / blocks) / self._reference**2
        level = np.maximum(10.0 * np.log10(np.maximum(mean_square, 1e-20)), LOWEST_DB)
        rows = np.empty((max(2, len(level)), len(index)), np.float32)
        if blocks > 1:
            level = level[:, np.clip((index - self._first) // self._frames, 0, blocks - 1)]
        rows[:] = level
        return rows


def each_ear(calibration: Calibration | Sequence[Calibration]) -> tuple[Calibration, ...]:
    """The calibration for both ears, or one for each ear or channel, as a tuple."""
    if isinstance(calibration, Calibration):
        return (calibration,)
    given = tuple(calibration) if isinstance(calibration, Sequence) else (calibration,)
    for one in given:
        if not isinstance(one, Calibration):
            raise TypeError(f"the calibration is {one!r}: give a Calibration, or one for each ear")
    if not given:
        raise ValueError("0 calibrations given: give one, or one for each ear")
    return given


def pascal_per_ear(calibration: Calibration | Sequence[Calibration]) -> NDArray[np.float32]:
    """Pascal per full scale `(1 or 2, 1)`, for both ears or each."""
    return np.array([[c.pascal_per_unit] for c in each_ear(calibration)], np.float32)
