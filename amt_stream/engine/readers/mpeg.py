"""MpegFrames of MPEG audio (MP3 and its like): found one after another, without what is no frame.

ISO/IEC 11172-3 and 13818-3; the header with the length of a whole file is that of Xing and LAME.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from amt_stream.engine.readers.source_bytes import SourceBytes

HEAD = 4
SURE = 3
"""MpegFrames in a row that no other data has."""

_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_LOW = "8 16 24 32 40 48 56 64 80 96 112 128 144 160"
_KBIT = {
    (3, 1): "32 64 96 128 160 192 224 256 288 320 352 384 416 448",
    (3, 2): "32 48 56 64 80 96 112 128 160 192 224 256 320 384",
    (3, 3): "32 40 48 56 64 80 96 112 128 160 192 224 256 320",
    (2, 1): "32 48 56 64 80 96 112 128 144 160 176 192 224 256",
    (2, 2): _LOW,
    (2, 3): _LOW,
}
"""Bit rates by version and layer; those of version 0 (2.5) are those of 2."""

_SIDE = {(3, 1): 17, (3, 2): 32, (2, 1): 9, (2, 2): 17}
"""Bytes of side information of layer III by version and channels."""


class Frame(NamedTuple):
    """A frame: its bytes, sampling rate, channels, samples, layer and version."""

    size: int
    fs: int
    channels: int
    samples: int
    layer: int
    version: int

    @property
    def kind(self) -> tuple[int, ...]:
        """What all frames of a sound have in common."""
        return self[1:]


@lru_cache(4096)
def frame_of(head: bytes) -> Frame | None:
    """The frame that begins with these four bytes, if they are a header."""
    if len(head) < HEAD or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3)
    rate, third = head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or layer == 4 or rate in (0, 15) or third == 3:
        return None
    fs = _RATES[version][third]
    kbit = int(_KBIT[max(version, 2), layer].split()[rate - 1])
    padding = head[2] >> 1 & 1
    channels = 1 if head[3] >> 6 == 3 else 2
    if layer == 1:
        return Frame((12000 * kbit // fs + padding) * 4, fs, channels, 384, layer, version)
    samples = 1152 if layer == 2 or version == 3 else 576
    size = samples // 8 * 1000 * kbit // fs + padding
    return Frame(size, fs, channels, samples, layer, version)


def tag_end(source: SourceBytes, at: int) -> int:
    """Where the ID3v2 tags at a position end; the position itself without any."""
    while True:
        head = source.at(at, 10)
        if len(head) < 10 or head[:3] != b"ID3" or max(head[6:10]) > 127 or head[3] > 4:
            return at
        size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
        at += 10 + size + 10 * (head[5] >> 4 & 1)


def is_mpeg(source: SourceBytes, at: int) -> bool:
    """Whether frames of MPEG audio begin at a position."""
    first = None
    for _ in range(SURE):
        frame = frame_of(source.at(at, HEAD))
        if frame is None or (first is not None and frame.kind != first.kind):
            return first is not None and len(source.at(at - 1, 2)) == 1  # exactly at the end
        first = first or frame
        at += frame.size
    return True


class Xing:
    """A first frame that has no sound, but the number of frames of the whole file.

    frames: this number
    """

    def __init__(self, content: bytes, place: int) -> None:
        self._content, self._place = content, place
        self.frames = int.from_bytes(content[place + 8 : place + 12], "big")

    def saying(self, frames: int) -> bytes:
        """The frame with another number of frames, and none of bytes, which would be wrong too."""
        at = self._place
        flags = self._content[at + 4 : at + 8]
        rest = self._content[at + (16 if flags[3] & _BYTES else 12) :]
        flags = flags[:3] + bytes([flags[3] & ~_BYTES])
        changed = self._content[: at + 4] + flags + frames.to_bytes(4, "big") + rest
        return changed.ljust(len(self._content), b"\0")


_FRAMES, _BYTES = 1, 2


def xing_of(source: SourceBytes, at: int, frame: Frame) -> Xing | None:
    """The frame at a position, if it says how many follow."""
    if frame.layer != 3:
        return None
    place = HEAD + _SIDE[max(frame.version, 2), frame.channels]
    content = source.at(at, frame.size)
    says = content[place : place + 4] in (b"Xing", b"Info") and content[place + 7] & _FRAMES
    return Xing(content, place) if says and len(content) > place + 16 else None


class MpegFrames:
    """The ranges of frames of one kind, from a position up to a frame of another kind or the end.

    count: frames so far
    end: where the last frame ends, or a frame of another kind begins
    junk: bytes before the last frame that belong to none, tags not counted
    """

    def __init__(self, source: SourceBytes, at: int) -> None:
        first = frame_of(source.at(at, HEAD))
        assert first is not None
        self.first, self._source = first, source
        self.begin = self.end = at
        self.count = self.junk = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        at: int | None = self.begin
        while at is not None:
            frame = frame_of(self._source.at(at, HEAD))
            if frame is None or frame.kind != self.first.kind:
                at = self._next(at)
                continue
            self.end = at + frame.size
            if not self._source.at(self.end - 1, 1):
                return  # it is not complete
            yield at, self.end
            self.count += 1
            at = self.end

    @property
    def is_torn(self) -> bool:
        """Whether the last frame is not complete."""
        return self._source.total is not None and self.end > self._source.total

    def _next(self, at: int) -> int | None:
        """Where the next frame begins behind what is none, if it is of the same kind."""
        found, junk = find_frame(self._source, at)
        if found is None:
            return None
        self.junk += junk
        frame = frame_of(self._source.at(found, HEAD))
        if frame is not None and frame.kind == self.first.kind:
            return found
        self.end = found
        return None


def find_frame(source: SourceBytes, at: int, most: int | None = None) -> tuple[int | None, int]:
    """Where the next frame begins, if any, and how many bytes before it are no tag.

    most: bytes to search
    """
    junk = 0
    while most is None or junk < most:
        at = tag_end(source, at)
        head = source.at(at, 128)
        if len(head) < HEAD:
            break
        if head.startswith(b"TAG"):
            at += 128
        elif is_mpeg(source, at):
            return at, junk
        else:
            skip = head.find(b"\xff", 1)
            skip = len(head) if skip < 0 else skip
            junk += skip
            at += skip
    return None, junk
