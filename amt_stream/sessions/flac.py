"""24-bit FLAC that stays readable if its writer is killed."""

import contextlib
import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Chunk
from amt_stream.sessions.files import PRIVATE, GrowingFile

FULL_SCALE = 2**23
LARGEST_CHANNELS = 8
LARGEST_FS = 655350
BLOCK = 4096
"""Samples per FLAC frame, the default of libFLAC, which reads one sample ahead."""

COUNT_AT = 21
"""Position of the 36-bit number of samples, whose first 4 bits share a byte."""


class In24Bits:
    """Samples as FLAC stores them, and what it cannot store, as `FlacFile` counts it."""

    def __init__(self, samples: NDArray[np.float32]) -> None:
        scaled = samples.astype(np.float64) * FULL_SCALE
        invalid = ~np.isfinite(scaled)
        scaled[invalid] = 0.0
        rounded = np.rint(scaled)
        held = np.clip(rounded, -FULL_SCALE, FULL_SCALE - 1)
        self.samples: NDArray[np.int32] = held.astype(np.int32)
        self.invalid = int(np.count_nonzero(invalid))
        self.cut = int(np.count_nonzero(held != rounded))
        self.exact = bool((held == scaled).all()) and not self.invalid


class FlacFile:
    """A new sound file. Raises OSError, after which it has `frames` and takes no more.

    What FLAC cannot store is counted: `cut` samples beyond full scale and `invalid` ones that are
    NaN or infinite (stored as 0); if any needs more than 24 bits, the file is not `exact`.

    notes: tags of the file: `comment`, `date`, `title`, `software`
    """

    head = 42
    """Bytes that are rewritten as the file grows."""

    def __init__(self, path: Path, fs: int, channels: int, notes: Mapping[str, str]) -> None:
        import soundfile

        self.cut = self.invalid = 0
        self.frames = 0
        self.exact = True
        self._stream = _Stream(path)
        self.file = self._stream.file
        self._sound = soundfile.SoundFile(
            self._stream, "w", fs, channels, subtype="PCM_24", format="FLAC"
        )
        for name, text in notes.items():
            setattr(self._sound, name, text)

    def write(self, chunks: list[Chunk]) -> None:
        """Write chunks; samples that do not fill a FLAC frame wait for the next ones."""
        if not self.file.there:
            raise FileNotFoundError(errno.ENOENT, "it was deleted", str(self.file.path))
        import soundfile

        whole = [self._in_24_bits(chunk.samples) for chunk in chunks if len(chunk)]
        try:
            if whole:
                self._sound.write(np.concatenate(whole) << 8)
                self.frames += sum(map(len, whole))
            self._stream.failed()
            self._stream.count(self._whole)
        except (AssertionError, OSError, soundfile.LibsndfileError) as error:
            self.frames = self._stream.counted
            self._stream.failed()
            raise OSError(None, f"no sound can be written: {error}") from error

    @property
    def _whole(self) -> int:
        """Number of samples in complete FLAC frames."""
        return max(0, self.frames - 1) // BLOCK * BLOCK

    def _in_24_bits(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        held = In24Bits(samples)
        self.invalid += held.invalid
        self.cut += held.cut
        self.exact = self.exact and held.exact
        return held.samples

    def finish(self) -> None:
        """End the file; after an error, the part complete before it stays."""
        import soundfile

        with contextlib.suppress(soundfile.LibsndfileError):
            self._sound.close()
        self._stream.close()


class _Stream:
    """The file for libsndfile, which ignores exceptions of its callbacks.

    After an exception, further data is discarded.
    """

    def __init__(self, path: Path) -> None:
        self.file = GrowingFile(path, mode=PRIVATE)
        self.counted = 0
        self._at = self._size = 0
        self._error: OSError | None = None

    def failed(self) -> None:
        """Raise the first exception, if any."""
        if self._error is not None:
            raise self._error

    def write(self, data: bytes) -> int:
        if self._error is None:
            try:
                self.file.put(data, self._at)
            except OSError as error:
                self._error = error
        self._at += len(data)
        self._size = max(self._size, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int) -> bytes:
        os.lseek(self.file.fileno(), self._at, os.SEEK_SET)
        data = os.read(self.file.fileno(), count)
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def count(self, samples: int) -> None:
        """Write the number of samples on the disk to the header."""
        self.file.sync()
        os.lseek(self.file.fileno(), COUNT_AT, os.SEEK_SET)
        first = os.read(self.file.fileno(), 1)
        if first:
            bits = (first[0] & 0xF0) << 32 | samples
            self.file.put(bits.to_bytes(5, "big"), COUNT_AT)
            self.file.sync()
        self.counted = samples

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.file.sync()
        self.file.close()
