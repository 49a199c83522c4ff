"""A model that runs as machine code, without torch and numba."""

import ctypes
import weakref
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from amt_stream.core.errors import Refusal
from amt_stream.meters.limits import Limit, limit_from_text
from amt_stream.native.library import FailedModel, Library, NativeInfo
from amt_stream.native.limit import NativeLimit
from amt_stream.native.prebuilt import library_path

LEAST_GAIN, MOST_GAIN = 1e-12, 1e12
"""Between these, sound in single precision stays far from its limits."""

MOST_AT_ONCE = 1 << 24
"""Samples that one call in C takes, which counts them and their frames in 32 bits."""

_OTHER = -2


class UnfittingState(Refusal, ValueError):
    """A state that this model cannot continue from."""


class NativeModel:
    """A running model as machine code: needs numpy only, and imports neither torch nor numba.

    Its numbers are those of the model in Python (docs/native.md, "How right it is"). A library that
    was built before is loaded in milliseconds. If there is none for these arguments, this computer
    builds it once, in up to two minutes, and stores it in the user's cache: that needs the whole
    package and a C compiler. Use an instance in one thread at a time.

    model: one of the table of docs/native.md, such as "moore2016", with its default settings
    fs: sampling rate in Hz
    channels: of the sound; ears for "moore2016"
    block_ms: length of the blocks that are calculated together, in ms; longer ones take less time
    gain: what a sample of 1.0 is in `info.input_unit`, such as pascal per full scale

    Raises NotBuilt if the library cannot be built, with the reason.

        meter = NativeModel("moore2016", gain=20.0)
        frames = meter(samples)  # (frame, column), as meter.info.columns says
    """

    def __init__(
        self,
        model: str,
        fs: int = 48000,
        channels: int = 2,
        block_ms: float = 10.0,
        gain: float = 1.0,
    ) -> None:
        self._library = Library(library_path(model, fs, channels, block_ms))
        self._c: Any = self._library.c
        self._at = self._c.amt_create(None)
        if not self._at:
            raise MemoryError(f"{model}: no memory for an instance")
        weakref.finalize(self, self._c.amt_destroy, self._at)
        self._forgotten = 0  # invalid samples of sound that was reset or replaced by a state
        self.gain = gain

    @property
    def info(self) -> NativeInfo:
        """Rate, block, columns with their units, and times of the model."""
        return self._library.info

    @property
    def gain(self) -> float:
        """What a sample of 1.0 is in `info.input_unit`."""
        return self._gain

    @gain.setter
    def gain(self, gain: float) -> None:
        usable = isinstance(gain, int | float | np.number)
        if not usable or not LEAST_GAIN <= gain <= MOST_GAIN:
            raise ValueError(
                f"gain is {gain!r}: give a number from {LEAST_GAIN:g} to {MOST_GAIN:g}"
            )
        self._gain = float(gain)
        self._c.amt_set_gain(self._at, self._gain)

    @property
    def invalid(self) -> int:
        """Samples since the start or reset that were NaN or absurdly large, which count as 0."""
        return int(self._c.amt_invalid(self._at))

    def __call__(self, sound: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Take samples (time, channel), of any number; give the frames that they complete.

        The frames, (frame, column), are the same however a sound is cut. A sound of one channel may
        be (time,).

        Raises ValueError for another shape, TypeError for integers, FailedModel if the calculation
        fails, after which only `reset` helps.
        """
        checked = self._checked(sound)
        parts = [
            self._frames(checked[begin : begin + MOST_AT_ONCE])
            for begin in range(0, max(1, len(checked)), MOST_AT_ONCE)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _frames(self, sound: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """The frames that a part of the sound (time, channel) completes."""
        channels = np.ascontiguousarray(sound.T, np.float32)
        info, n = self.info, channels.shape[1]
        frames = np.empty(
            ((n // info.block + 1) * info.frames_per_block, len(info.columns)), np.float32
        )
        starts = (ctypes.c_void_p * info.channels)(*(one.ctypes.data for one in channels))
        used = ctypes.c_int32()
        at = frames.ctypes.data
        count = self._c.amt_process(self._at, starts, n, at, len(frames), ctypes.byref(used))
        if count < 0:
            raise FailedModel(f"{info.model}: its calculation failed, status {count}: reset it")
        return frames[:count]

    def _checked(self, sound: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The sound as (time, channel). Raises ValueError and TypeError."""
        sound = np.asarray(sound)
        if not np.issubdtype(sound.dtype, np.floating):
            raise TypeError(f"sound is of {sound.dtype}: give floats, with 1.0 for full scale")
        of_one = sound.ndim == 1 and self.info.channels == 1
        whole = sound[:, None] if of_one else sound
        if whole.ndim != 2 or whole.shape[1] != self.info.channels:
            raise ValueError(
                f"sound has the shape {sound.shape}: give (time, {self.info.channels})"
            )
        return whole

    def limit(self, limit: Limit | str) -> NativeLimit:
        """A limit of one of the columns, such as "laf_left_db>85,amber=80", for frames to come.

        Raises LimitError for text that is no limit, and for a column that the model lacks.
        """
        one = limit_from_text(limit) if isinstance(limit, str) else limit
        return NativeLimit(self._library, one, lambda: self._forgotten + self.invalid)

    def reset(self) -> None:
        """Forget the sound; the gain stays."""
        self._forgotten += self.invalid
        self._c.amt_reset(self._at)

    def save(self) -> bytes:
        """The state, from which the same model continues in C, WebAssembly or Python."""
        to = ctypes.create_string_buffer(self.info.state_bytes)
        self._c.amt_save(self._at, to)
        return to.raw

    def __reduce__(self) -> NoReturn:
        # A copy would use the memory of the original, also once that is destroyed.
        raise TypeError(
            "a NativeModel cannot be copied or pickled: load what save() gives in another one"
        )

    def load(self, state: bytes | bytearray | memoryview) -> None:
        """Continue from a saved state; the gain stays.

        Raises UnfittingState for a state of another model, rate, number of channels, block length
        or version, and for a damaged one; then nothing changes. Raises TypeError for no bytes.
        """
        if not isinstance(state, bytes | bytearray | memoryview):
            raise TypeError(f"the state is {type(state).__name__}: give the bytes of save()")
        before = self.invalid
        status = self._c.amt_load(self._at, bytes(state), memoryview(state).nbytes)
        self._forgotten += before - self.invalid
        if status == _OTHER:
            raise UnfittingState(
                f"the state is not one of {self.info.model} at {self.info.fs} Hz in blocks of "
                f"{self.info.block} samples by {self.info.version}: make the model as it was"
            )
        if status:
            raise UnfittingState("the state is damaged: save it again")
