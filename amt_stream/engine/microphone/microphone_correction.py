"""Input processing for a microphone with a known frequency response."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.dsp.functional import input_gate
from amt_stream.dsp.stages.microphone import MicrophoneCorrection
from amt_stream.dsp.stream import Stream
from amt_stream.engine.microphone.calibration_in_use import Corrections
from amt_stream.meters.correction import CorrectionError

REFERENCE_HZ = 1000.0
"""Frequency at which responses are 0 dB, and the usual one of calibrators."""


class Corrected:
    """A `scale_and_check` that first corrects the microphones' frequency responses.

    Clipping is checked on the original sound; the level and everything else use the corrected
    sound.

    corrections: of each channel
    """

    def __init__(self, corrections: Corrections, fs: int) -> None:
        self.corrections = corrections
        self._wide = len(corrections)
        self._no_offset = np.zeros(self._wide)
        self._stream = Stream(ready_stage(corrections, fs), (self._wide,))
        with torch.inference_mode():
            self._stream(torch.zeros(self._wide, 1))  # compiles before any sound comes

    def __call__(
        self,
        block: NDArray[np.float32],
        scale: NDArray[np.float32],
        limit: np.float32,
        offset: NDArray[np.float64],
        follow: float,
        rows: NDArray[np.float32],
        energy: NDArray[np.float64],
    ) -> int:
        """Arguments and result are those of `scale_and_check`."""
        if not (np.abs(block) < limit).all():
            return input_gate.SUSPECT
        channels = np.empty((self._wide, len(block)), np.float32)
        input_gate.without_offset(block, offset, follow, channels)
        with torch.inference_mode():
            y = self._stream(torch.from_numpy(channels)).numpy()
        input_gate.scale_and_check(
            y.T, scale, input_gate.NO_LIMIT, self._no_offset, 0.0, rows, energy
        )
        return input_gate.SOUND if block.any() else input_gate.SILENCE

    def fill(self, rows: NDArray[np.float32], scale: NDArray[np.float32]) -> None:
        """Fill `rows` (row, time) with the filters' response to silence."""
        nothing = np.zeros((rows.shape[1], self._wide), np.float32)
        # `scale_and_check` is compiled for contiguous rows, and these may be part of a buffer.
        held = np.empty(rows.shape, rows.dtype)
        energy = np.zeros((len(rows), 1))
        self(nothing, scale, input_gate.NO_LIMIT, self._no_offset, 0.0, held, energy)
        rows[:] = held

    def reset(self) -> None:
        """Reset to silence."""
        self._stream.reset()

    @property
    def memory(self) -> dict[str, NDArray[np.float64]]:
        """The state by name."""
        return {name: v.numpy().copy() for name, v in self._stream.state.items()}

    @memory.setter
    def memory(self, given: Mapping[str, NDArray[np.float64]]) -> None:
        with torch.no_grad():
            for name, buffer in self._stream.state.items():
                buffer.copy_(torch.from_numpy(given[name]))


@lru_cache(maxsize=16)
def ready_stage(corrections: Corrections, fs: int) -> MicrophoneCorrection:
    """The correction filter, whose design takes a moment [any-thread].

    Raises CorrectionError for a response that cannot be corrected.
    """
    exact_hz = [(one and one.reference_hz) or REFERENCE_HZ for one in corrections]
    try:
        return MicrophoneCorrection(fs, [one and one.gains for one in corrections], exact_hz)
    except ValueError as error:
        names = " or ".join(dict.fromkeys(one.name for one in corrections if one is not None))
        raise CorrectionError(f"{names}: {error}; smooth it, to a twelfth of an octave") from error
