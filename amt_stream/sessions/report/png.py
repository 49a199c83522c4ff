"""Whether a PNG file has all its rows, and its palette: Pillow fills in what is missing.

After the PNG specification, third edition (W3C, 2025), sections 8.1, 10 and 11.2.
"""

import struct
import zlib
from collections.abc import Iterator

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel by type of color; of 3 it is the index in the palette."""

ONE_PASS = ((0, 0, 1, 1),)
PASSES = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
"""First column and row, and the steps of both, of each pass of an interlaced picture."""

PIECE = 1 << 16


def refuse_incomplete(data: bytes) -> None:
    """Raise ValueError for a PNG without all its rows or its palette.

    data: a file whose check sums are right
    """
    chunks = [*_chunks(data)]
    head = next(content for kind, content in chunks if kind == b"IHDR")
    wide, high, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if color == 3 and not any(kind == b"PLTE" for kind, _ in chunks):
        raise ValueError("it has no palette")
    bits = SAMPLES[color] * depth
    parts = PASSES if interlaced else ONE_PASS
    sizes = [(_count(wide, x, right), _count(high, y, down)) for x, y, right, down in parts]
    needed = sum(rows * (1 + -(-columns * bits // 8)) for columns, rows in sizes if columns)
    packed = b"".join(content for kind, content in chunks if kind == b"IDAT")
    if _unpacked(packed, needed) < needed:
        raise ValueError("it lacks rows")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        yield kind, data[at + 8 : at + 8 + length]
        at += 12 + length


def _count(size: int, first: int, step: int) -> int:
    return max(0, -(-(size - first) // step))


def _unpacked(packed: bytes, most: int) -> int:
    """The bytes that unpacking gives, counted up to `most`."""
    inflating, count = zlib.decompressobj(), 0
    while count < most and not inflating.eof:
        piece = inflating.decompress(packed, PIECE)
        if not piece and not inflating.unconsumed_tail:
            break
        packed, count = inflating.unconsumed_tail, count + len(piece)
    return count
