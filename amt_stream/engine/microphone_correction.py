"""The engine's door for a microphone whose response is known."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.dsp.functional.input_gate import SILENCE, SOUND, SUSPECT, scale_and_check
from amt_stream.dsp.stages.microphone import MicrophoneCorrection
from amt_stream.dsp.streaming import Stream
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.correction import Correction, CorrectionError

Corrections = tuple[Correction | None, ...]

REFERENCE_HZ = 1000.0
"""Where responses are told re 0 dB, and calibrators sound."""

NO_LIMIT = np.float32(np.inf)


class Corrected:
    """`scale_and_check` of sound from which microphones' responses are taken off before.

    What is looked at is the sound as it came: what is clipped there is clipped. All else, such as
    the level, is of the sound as it was in the air.

    corrections: of each channel
    """

    def __init__(self, corrections: Corrections, fs: int) -> None:
        self.corrections = corrections
        self._wide = len(corrections)
        self._stream = Stream(ready_stage(corrections, fs), (self._wide,))
        with torch.inference_mode():
            self._stream(torch.zeros(self._wide, 1))  # compiled before any sound comes

    def __call__(
        self,
        block: NDArray[np.float32],
        scale: NDArray[np.float32],
        limit: np.float32,
        rows: NDArray[np.float32],
        energy: NDArray[np.float64],
    ) -> int:
        """Arguments and what comes back as of `scale_and_check`."""
        if not (np.abs(block) < limit).all():
            return SUSPECT
        heard = np.empty((self._wide, len(block)), np.float32)
        heard[:] = block.T
        with torch.inference_mode():
            y = self._stream(torch.from_numpy(heard)).numpy()
        scale_and_check(y.T, scale, NO_LIMIT, rows, energy)
        return SOUND if block.any() else SILENCE

    def fill(self, rows: NDArray[np.float32], scale: NDArray[np.float32]) -> None:
        """What follows from the sound before, into all of `rows` (row, time)."""
        nothing = np.zeros((rows.shape[1], self._wide), np.float32)
        # A part of a longer buffer is not contiguous, as `scale_and_check` was compiled for.
        held = np.empty(rows.shape, rows.dtype)
        self(nothing, scale, NO_LIMIT, held, np.zeros((len(rows), 1)))
        rows[:] = held

    def reset(self) -> None:
        """Back to silence."""
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
    """The filter for these, which takes a moment to find [any-thread].

    Raises CorrectionError for a response that none has.
    """
    exact_hz = [(one and one.reference_hz) or REFERENCE_HZ for one in corrections]
    try:
        return MicrophoneCorrection(fs, [one and one.gains for one in corrections], exact_hz)
    except ValueError as error:
        names = " or ".join(dict.fromkeys(one.name for one in corrections if one is not None))
        raise CorrectionError(f"{names}: {error}; smooth it, to a twelfth of an octave") from error


def corrections_of(calibration: Sequence[Calibration], channels: int) -> Corrections:
    """The correction of each channel, () where there is none at all.

    One that is given is that of all channels; two of one channel are those of its two ears.
    """
    given = tuple(one.correction for one in calibration)
    if not any(given):
        return ()
    if len(set(given)) == 1:
        return given[:1] * channels
    if len(given) < channels:
        raise ValueError(
            f"{len(given)} corrections for {channels} channels: give one, or one for each"
        )
    return given
