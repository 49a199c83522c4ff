"""The decoder of libsndfile; the only file that uses private names of soundfile.

`SoundFile.read` seeks after each block, which costs time and loses the overlap of lossy codecs;
the functions of the library that it calls do not.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.readers.view import View


class Undecodable(Exception):
    """Bytes are no sound that a decoder knows; the message is the decoder's."""


class SndfileDecoder:
    """Decodes a view, or a file by its name, block by block.

    raw: `format`, `subtype`, `endian`, `samplerate` and `channels` of bytes without a header

    `fault` is the decoder's message if something is damaged. Raises Undecodable, and errors of the
    view.
    """

    def __init__(self, file: View | str | bytes, **raw: Any) -> None:
        import soundfile

        self._view = file if isinstance(file, View) else View(None, ())
        try:
            self._file = soundfile.SoundFile(file, **raw)
        except soundfile.LibsndfileError as error:
            self._raise_error_of_view()
            raise Undecodable(_in_words(error.error_string)) from error
        self._view.opened = True
        self._library, self._convert = soundfile._snd, soundfile._ffi
        self.fs: int = self._file.samplerate
        self.channels: int = self._file.channels
        self.format: str = self._file.format
        self.subtype: str = self._file.subtype
        self.frames: int = self._file.frames
        self.log: str = self._file.extra_info
        self.comment: str = self._file.comment
        self.software: str = self._file.software
        self.fault = ""

    @property
    def big_endian(self) -> bool:
        """Whether the bytes of a sample are in the other order than a RAW file's."""
        return bool(self._command(_NEEDS_ENDSWAP))

    def read(self, count: int) -> NDArray[np.float32]:
        """Up to `count` samples (time, channel), none at the end."""
        block = np.empty((count, self.channels), np.float32)
        target = self._convert.from_buffer("float[]", block)
        done = self._library.sf_readf_float(self._file._file, target, count)
        self._raise_error_of_view()
        if self._library.sf_error(self._file._file):
            words = self._library.sf_strerror(self._file._file)
            self.fault = _in_words(self._convert.string(words).decode(errors="replace"))
        return block[:done]

    def seek(self, sample: int) -> bool:
        """Continue at a sample; False if this encoding has no such way."""
        return bool(self._library.sf_seek(self._file._file, sample, 0) == sample)

    def close(self) -> None:
        self._file.close()

    def _raise_error_of_view(self) -> None:
        if self._view.error is not None:
            raise self._view.error

    def _command(self, number: int) -> int:
        null = self._convert.NULL
        return int(self._library.sf_command(self._file._file, number, null, 0))


def _in_words(message: str) -> str:
    return message.removeprefix("Error : ").removesuffix(".")


_NEEDS_ENDSWAP = 0x1110
"""SFC_RAW_DATA_NEEDS_ENDSWAP of libsndfile's interface."""
