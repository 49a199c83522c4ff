"""Opening sound files, and checking whether they are complete."""

import errno
import os
import re
from pathlib import Path
from typing import Any

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, require_file
from amt_stream.core.formats import WHOLE_COMMENT
from amt_stream.meters.calibration import Calibration, calibrations_of_comment
from amt_stream.meters.specification import FASTEST_FS, SLOWEST_FS

MOST_PER_BYTE = 8
"""Most samples per byte of a fixed-rate codec."""

ONE_BLOCK = 1 << 16
"""Extra samples that such a codec may give for an incomplete last block."""

# Lengths from here on mean that the length was unknown when the header was written, as in a pipe.
UNKNOWN_BYTES = 0x7FFF0000
UNKNOWN_FRAMES = 2**62

# Decoders that find the end themselves, and compress silence without limit.
_PACKED = {"FLAC", "OGG", "MP3"}
_PACKED_INSIDE = ("ALAC", "MPEG")

# What libsndfile logs about chunks longer than their file.
_CHUNK = re.compile(
    r"^\s*(data|SSND|BODY|Data Size|Data length|riff)\s*:?\s*(\d+) \(?should be (\d+)\)?", re.M
)
_COUNT = re.compile(r"Calculated frame count (\d+) does not match value .* of (\d+)")
_BITS = re.compile(r"^\s*Bit Width\s*:\s*(\d+)", re.M)
_SAID = re.compile(r"(?:file|data chunk) seems to be truncated", re.I)

_RIFF = {"WAV", "WAVEX", "RF64"}
_MOST_CHUNKS, _LONGEST_COMMENT = 1000, 1 << 24

# MP3 encoders count up to two blocks more than decoders give.
_MP3_SLACK = 2 * 1152

_OGG_HEAD, _OGG_LONGEST, _OGG_LAST = 27, 65307, 4


class SourceError(Refusal, RuntimeError):
    """A source cannot be opened or read; the message says why in one sentence."""


def open_sound_file(path: Path) -> tuple[Any, str]:
    """The open file, and what is missing at its end, in words or "".

    Raises SourceError for a file that libsndfile cannot read or that is damaged.
    """
    import soundfile

    try:
        size = require_file(path).st_size
    except NotThatFile as error:
        if error.errno == errno.ENOENT:
            raise SourceError(f"there is no file {path}") from error
        raise SourceError(f"{path} {error}: give a sound file") from error
    if path.suffix.lower() == ".raw":
        raise SourceError(
            f"{path} is raw PCM, whose rate is unknown: give it to standard input, with "
            "--source - and --pcm"
        )
    try:
        # File names are bytes and need not be valid text.
        file = soundfile.SoundFile(str(path) if os.name == "nt" else os.fsencode(path))
    except soundfile.LibsndfileError as error:
        raise SourceError(
            f"{path} is not a sound file that libsndfile can read: {error.error_string}"
        ) from error
    refusal = _refusal(file, size)
    if refusal:
        file.close()
        raise SourceError(f"{path} {refusal}")
    return file, _missing(path, file)


def calibrations_in(path: Path) -> dict[int, Calibration]:
    """Calibrations by channel (1, 2, ...) in a recording of this package; {} for other files.

    Omits channels that were not calibrated; {} also for an unreadable file.

    Raises SourceError for a recording of this package with an invalid calibration.
    """
    if path.suffix.lower() not in (".flac", ".wav"):
        return {}
    try:
        file, _ = open_sound_file(path)
    except SourceError:
        return {}
    with file:
        try:
            comment = (file.format in _RIFF and _whole_comment(path)) or file.comment
            return calibrations_of_comment(comment, file.software, path.name)
        except ValueError as error:
            raise SourceError(error) from error


def _whole_comment(path: Path) -> str | None:
    """The comment of a WAV file in a separate chunk, used when it is too long for libsndfile."""
    with path.open("rb") as file:
        file.seek(12)
        for _ in range(_MOST_CHUNKS):
            head = file.read(8)
            size = int.from_bytes(head[4:], "little")
            if len(head) < 8 or head.startswith(b"data"):
                return None
            if head.startswith(WHOLE_COMMENT):
                return file.read(min(size, _LONGEST_COMMENT)).decode(errors="replace")
            file.seek(size + size % 2, os.SEEK_CUR)
    return None


def missing_samples(file: Any, came: int) -> str:
    """What is missing of an open file that ended after `came` samples, in words or ""."""
    promised = file.frames
    if promised >= UNKNOWN_FRAMES or promised - came <= (file.format == "MP3") * _MP3_SLACK:
        return ""
    return f"its header says {promised} samples, but there are {came}"


def _refusal(file: Any, size: int) -> str:
    if not file.frames:
        return "has no samples: its length is zero"
    if not SLOWEST_FS <= file.samplerate <= FASTEST_FS:
        return (
            f"has a sampling rate of {file.samplerate} Hz: give a sound of {SLOWEST_FS} to "
            f"{FASTEST_FS} Hz"
        )
    bits = _BITS.search(file.extra_info)
    if bits and int(bits[1]) < 8 and file.subtype.startswith("PCM"):
        return f"has samples of {bits[1]} bit: give one of 8 bits or more"
    packed = file.format in _PACKED or file.subtype.startswith(_PACKED_INSIDE)
    if not packed and file.frames * file.channels > MOST_PER_BYTE * size + ONE_BLOCK:
        return (
            f"is damaged: its header says {file.frames} samples, and its {size} bytes cannot "
            "hold them"
        )
    return ""


def _missing(path: Path, file: Any) -> str:
    """What is missing at a file's end according to its header or last page, in words or ""."""
    if file.format == "OGG":
        return "" if _has_last_page(path) else "its last page is not there"
    for what, said, there in _CHUNK.findall(file.extra_info):
        # Only W64 has a 64-bit total length, whereas the chunk's is not checked.
        if (what == "riff") <= (file.format == "W64") and int(there) < int(said) < UNKNOWN_BYTES:
            return f"its header says {said} bytes, but there are {there}"
    if found := _COUNT.search(file.extra_info):
        there, said = map(int, found.groups())
        if there < said < UNKNOWN_FRAMES:
            return f"its header says {said} samples, but there are {there}"
    return "its header says more than there is" if _SAID.search(file.extra_info) else ""


def _has_last_page(path: Path) -> bool:
    """Whether an Ogg file ends with a complete page marked as last (RFC 3533)."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 2 * _OGG_LONGEST))
        tail = stream.read()
    page = tail[max(0, tail.rfind(b"OggS")) :]
    if len(page) < _OGG_HEAD:
        return False
    segments = page[_OGG_HEAD : _OGG_HEAD + page[26]]
    return bool(page[5] & _OGG_LAST) and len(page) >= _OGG_HEAD + len(segments) + sum(segments)
