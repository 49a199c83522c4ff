"""32-bit float WAV that is valid after every write, and may exceed 4 GiB.

The header has room for the 64-bit sizes of EBU Tech 3306 (RF64), which are used above 4 GiB.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from amt_stream.core.formats import WHOLE_COMMENT
from amt_stream.meters.frames import Chunk
from amt_stream.sessions.files import PRIVATE, GrowingFile

IEEE_FLOAT = 3
LARGEST_RIFF = 0xFFFFFFFF
LONGEST_COMMENT = 2000
"""Longest comment in bytes that libsndfile reads; with a longer one it reads no tags."""

SIZES = struct.Struct("<QQQI")
"""Fields of ds64: file size less 8 bytes, data size, frames, and an empty table."""


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


class WavFile:
    """A new sound file. Raises OSError.

    notes: tags of the file: `comment`, which is JSON, `date`, `title`, `software`. libsndfile reads
        no comment of more than 2 kB: a longer one is in a separate chunk, `WHOLE_COMMENT`, and the
        comment has what fits
    """

    exact = True

    def __init__(self, path: Path, fs: int, channels: int, notes: Mapping[str, str]) -> None:
        self._width = 4 * channels
        known = {"comment": b"ICMT", "date": b"ICRD", "title": b"INAM", "software": b"ISFT"}
        comment = notes["comment"].encode()
        notes = {**notes, "comment": _brief(notes["comment"])}
        info = b"".join(_chunk(known[name], text.encode() + b"\0") for name, text in notes.items())
        form = struct.pack(
            "<HHIIHHH", IEEE_FLOAT, channels, fs, fs * self._width, self._width, 32, 0
        )
        rest = _chunk(b"fmt ", form) + _chunk(b"fact", b"\0" * 4) + _chunk(b"LIST", b"INFO" + info)
        if len(comment) > LONGEST_COMMENT:
            rest += _chunk(WHOLE_COMMENT, comment)
        self._rest = rest
        self.head = 12 + 8 + SIZES.size + len(rest) + 8
        self.frames = 0
        self.file = GrowingFile(path, mode=PRIVATE)
        self.file.write(self._header())

    def _header(self) -> bytes:
        data = self.frames * self._width
        whole = self.head - 8 + data
        long = whole > LARGEST_RIFF
        sizes = SIZES.pack(whole, data, self.frames, 0) if long else b"\0" * SIZES.size
        rest = bytearray(self._rest)
        at = rest.index(b"fact") + 8
        rest[at : at + 4] = struct.pack("<I", min(self.frames, LARGEST_RIFF))
        return (
            (b"RF64" if long else b"RIFF")
            + struct.pack("<I", LARGEST_RIFF if long else whole)
            + b"WAVE"
            + _chunk(b"ds64" if long else b"JUNK", sizes)
            + bytes(rest)
            + b"data"
            + struct.pack("<I", LARGEST_RIFF if long else data)
        )

    def write(self, chunks: list[Chunk]) -> None:
        """Write chunks, completely or not at all."""
        data = b"".join(chunk.samples.astype("<f4", copy=False).tobytes() for chunk in chunks)
        self.file.write(data)
        self.frames += len(data) // self._width
        self.file.put(self._header(), 0)
        self.file.sync()

    def finish(self) -> None:
        self.file.close()


def _brief(comment: str) -> str:
    """A short comment for libsndfile: layout, and level of each channel if it fits."""
    if len(comment.encode()) <= LONGEST_COMMENT:
        return comment
    about: dict[str, object] = {"whole": f"in the chunk {WHOLE_COMMENT.decode()}"}
    told = json.loads(comment)
    about |= {"layout": told["layout"]} if "layout" in told else {}
    each = told["calibration"]
    keys = "channel", "full_scale_db_spl", "calibrated"
    brief = json.dumps({**about, "calibration": [{key: one[key] for key in keys} for one in each]})
    return brief if len(brief) <= LONGEST_COMMENT else json.dumps(about)
