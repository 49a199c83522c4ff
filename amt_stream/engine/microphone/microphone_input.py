"""Prepares the sound of one microphone for a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.importing import refuse_without_torch
from amt_stream.core.saved_state import Resumable
from amt_stream.dsp.functional.input_gate import NO_LIMIT, SILENCE, scale_and_check
from amt_stream.dsp.scales import P0
from amt_stream.engine.history import Level
from amt_stream.engine.microphone.calibration_in_use import (
    CalibrationInUse,
    Corrections,
    corrections_of,
)
from amt_stream.engine.microphone.channels import Columns, number_of
from amt_stream.engine.microphone.converter_ends import suspect_from
from amt_stream.engine.microphone.offset import follow_of
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.source_description import InputGain, SourceDescription

if TYPE_CHECKING:
    from amt_stream.engine.microphone.microphone_correction import Corrected

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
    offset: slow mean of each channel, which is removed if the source's samples may have one
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
        about = description or SourceDescription.of_signal(offered)
        self.columns, self.channels = columns, number_of(columns, offered)
        self.in_use = CalibrationInUse(calibration, gain_db, self.channels, places, measured)
        self.has_offset, self._suspect_from = about.has_offset, suspect_from(about)
        self.offset, self._follow = np.zeros(self.channels), 0.0
        self.zeros_run = 0
        self._corrected: Corrected | None = None

    def enter(self, ready: ReadyModel, into: NDArray[np.float32]) -> None:
        """Feed a model from the next sample on; `into` (ear, time) is its input."""
        self._ready = ready
        follows = self.has_offset and ready.in_pascal
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
        self.in_use.give(calibration, gain_db, keep_corrections)
        self._set_scale()

    def know_gain(self, gain: InputGain) -> bool:
        """Take the gain of its input; True if the calibration holds no longer, or again."""
        before = self.in_use.why
        self.in_use.know_gain(gain)
        self._set_scale()
        return bool(before) != bool(self.in_use.why)

    @property
    def calibrated(self) -> bool:
        """Whether the level is known or not needed."""
        return not self._ready.in_pascal or all(one.calibrated for one in self.in_use.now)

    @property
    def began_at(self) -> str:
        """The input gain for which a calibration without one holds, as text."""
        return self.in_use.began_at

    @began_at.setter
    def began_at(self, given: str) -> None:
        self.in_use.began_at = given
        self._set_scale()

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
        ready, now = self._ready, self.in_use.now
        wanted = corrections_of(now, self.channels)
        if wanted != (() if self._corrected is None else self._corrected.corrections):
            self._corrected = _corrected(wanted, ready.clock.fs) if wanted else None
        scale = np.ones((1, 1), np.float32)
        if ready.in_pascal:
            scale = np.array([[one.pascal_per_unit] for one in now[: ready.rows]], np.float32)
        self._scale = np.float32(self.in_use.gain) * scale

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
        return (self._corrected or scale_and_check)(*given)

    def take_level(self, count: int, first: int) -> None:
        """Set the level of the last blocks, of which `count` samples were sound.

        first: index of their first frame
        """
        ready, energy = self._ready, self._energy
        self._energy = np.zeros((ready.rows, 1))
        reference = P0 if ready.in_pascal else FULL_SCALE_SINE
        self.level = _BlockLevel(energy, count, reference, first, ready.frames)


def prepare_correction(wanted: Corrections, fs: int) -> None:
    """Design a correction, which takes a moment, before it is needed [any-thread]."""
    refuse_without_torch("a microphone's frequency response correction")
    from amt_stream.engine.microphone.microphone_correction import ready_stage

    ready_stage(wanted, fs)


def _corrected(wanted: Corrections, fs: int) -> "Corrected":
    prepare_correction(wanted, fs)
    from amt_stream.engine.microphone.microphone_correction import Corrected

    return Corrected(wanted, fs)


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
