"""Files in all other formats that libsndfile reads."""

import os
import re
from pathlib import Path

from amt_stream.engine.readers.encodings import ENCODINGS
from amt_stream.engine.readers.libsndfile import SndfileDecoder
from amt_stream.engine.readers.link import Link

# What libsndfile logs about lengths that are not right.
_CHUNK = re.compile(r"^\s*(?:BODY|Data Size|Data length)\s*:?\s*(\d+) \(?should be (\d+)\)?", re.M)
_COUNT = re.compile(r"Calculated frame count (\d+) does not match value .* of (\d+)")
_SAID = re.compile(r"(?:file|data chunk) seems to be truncated", re.I)

_FRAMES, _COLUMNS = r"^\s*Frames\s*:\s*(\d+)", r"\bCols\s*:\s*(\d+)"
_PROMISES = {"AVR": _FRAMES, "MPC2K": _FRAMES, "MAT4": _COLUMNS, "MAT5": _COLUMNS}
"""How libsndfile logs the samples that a header says, but reads what is there."""

_NIST = re.compile(rb"sample_count -i (\d+)")
_NIST_HEAD = 1024


class OtherLink(Link):
    """A whole file. Raises Undecodable."""

    def __init__(self, path: Path, size: int) -> None:
        # By name, which says to libsndfile what a file without a header is.
        decoder = SndfileDecoder(str(path) if os.name == "nt" else os.fsencode(path))
        super().__init__(decoder, decoder.frames, _promised(decoder, path))
        self._size = size
        if not ENCODINGS[decoder.subtype].size:
            self.overlap_s = None

    def end(self) -> int:
        return self._size

    def problem(self, came: int) -> str:
        if self.promised is not None and came < self.promised:
            return ""  # that it is shorter than its header says is all there is to say
        return super().problem(came) or _missing(self._decoder.log)


def _promised(decoder: SndfileDecoder, path: Path) -> int | None:
    """The samples that the header of some formats says."""
    if decoder.format == "NIST":
        with path.open("rb") as file:
            counts = _NIST.findall(file.read(_NIST_HEAD))
    else:
        counts = re.findall(_PROMISES.get(decoder.format, r"(?!)"), decoder.log, re.M)
    return int(counts[-1]) if counts else None


def _missing(log: str) -> str:
    """What is missing at a file's end by libsndfile's account, in words or ""."""
    lengths = [("bytes", int(said), int(there)) for said, there in _CHUNK.findall(log)]
    lengths += [("samples", int(said), int(there)) for there, said in _COUNT.findall(log)]
    for what, said, there in lengths:
        if there < said:
            return f"its header says {said} {what}, but there are {there}"
    return "its header says more than there is" if _SAID.search(log) else ""
