"""Files in all other formats that libsndfile reads."""

import os
import re
from pathlib import Path

from amt_stream.engine.readers.encodings import ENCODINGS
from amt_stream.engine.readers.libsndfile import SndfileDecoder, Undecodable
from amt_stream.engine.readers.link import Link

MOST_PER_BYTE, ONE_BLOCK = 8, 1 << 16
"""Most samples per byte of these codecs, and what they may give for an incomplete block."""

# What libsndfile logs about lengths that are not right.
_CHUNK = re.compile(r"^\s*(?:BODY|Data Size|Data length)\s*:?\s*(\d+) \(?should be (\d+)\)?", re.M)
_COUNT = re.compile(r"Calculated frame count (\d+) does not match value .* of (\d+)")
_SAID = re.compile(r"(?:file|data chunk) seems to be truncated", re.I)


class OtherLink(Link):
    """A whole file. Raises Undecodable."""

    def __init__(self, path: Path, size: int) -> None:
        # By name, which says to libsndfile what a file without a header is.
        decoder = SndfileDecoder(str(path) if os.name == "nt" else os.fsencode(path))
        frames = decoder.frames
        if frames * decoder.channels > MOST_PER_BYTE * size + ONE_BLOCK:
            decoder.close()
            raise Undecodable(
                f"its header says {frames} samples, and its {size} bytes cannot hold them"
            )
        super().__init__(decoder, frames)
        self._size = size
        if not ENCODINGS[decoder.subtype].size:
            self.overlap_s = None

    def end(self) -> int:
        return self._size

    def problem(self, came: int) -> str:
        return super().problem(came) or _missing(self._decoder.log)


def _missing(log: str) -> str:
    """What is missing at a file's end by libsndfile's account, in words or ""."""
    lengths = [("bytes", int(said), int(there)) for said, there in _CHUNK.findall(log)]
    lengths += [("samples", int(said), int(there)) for there, said in _COUNT.findall(log)]
    for what, said, there in lengths:
        if there < said:
            return f"its header says {said} {what}, but there are {there}"
    return "its header says more than there is" if _SAID.search(log) else ""
