"""Pictures made of characters: large digits, meters, lines in braille, bars and shades.

A picture is lines of pieces, a text and its role each; `palette` gives each role a color.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Piece: TypeAlias = tuple[str, str]
Line: TypeAlias = list[Piece]

EIGHTHS = " ▁▂▃▄▅▆▇█"
SHADES = {"█": -3.0, "▓": -9.0, "▒": -15.0, "░": -24.0}
"""Characters, and the lowest level of each in dB relative to the strongest cell."""

DASH = "╌"
"""Stands for a limit."""

HATCH = "╱"
"""Stands for sound that is missing, or for a level that is not calibrated."""

_GLYPHS = {
    "0": "111 101 101 101 111",
    "1": "010 110 010 010 111",
    "2": "111 001 111 100 111",
    "3": "111 001 111 001 111",
    "4": "101 101 111 001 001",
    "5": "111 100 111 001 111",
    "6": "111 100 111 101 111",
    "7": "111 001 001 001 001",
    "8": "111 101 111 101 111",
    "9": "111 101 111 001 111",
    ".": "0 0 0 0 1",
    "-": "000 000 111 000 000",
    "+": "000 010 111 010 000",
    ">": "100 010 001 010 100",
    "\N{GREATER-THAN OR EQUAL TO}": "100 011 100 000 111",
    "\N{LESS-THAN OR EQUAL TO}": "001 110 001 000 111",
    "\N{ALMOST EQUAL TO}": "0101 1010 0000 0101 1010",
    " ": "0 0 0 0 0",
}
_HALVES = " ▀▄█"
_BARS = np.array([*EIGHTHS])
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@lru_cache(64)
def digits(text: str, scale: int = 1) -> tuple[str, ...]:
    """A number in large digits: 3 lines high at scale 1, 5 at 2, 8 at 3."""
    rows = ["0".join(_GLYPHS[one].split()[y] for one in text) for y in range(5)]
    pixels = [[int(bit) for bit in row for _ in range(scale)] for row in rows for _ in range(scale)]
    if len(pixels) % 2:
        pixels.insert(0, [0] * len(pixels[0]))
    pairs = zip(pixels[::2], pixels[1::2], strict=True)
    return tuple("".join(_HALVES[a + 2 * b] for a, b in zip(*pair, strict=True)) for pair in pairs)


def digits_width(text: str, scale: int) -> int:
    return scale * (sum(len(_GLYPHS[one].split()[0]) + 1 for one in text) - 1)


def bars(shares: ArrayLike, height: int) -> list[str]:
    """Columns that are filled to a share of the height, as lines from the top."""
    eighths = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * 8 * height).astype(int)
    below = np.arange(8 * (height - 1), -1, -8)
    return ["".join(line) for line in _BARS[np.clip(eighths - below[:, None], 0, 8)].tolist()]


def trace(values: ArrayLike, low: float, high: float, height: int) -> NDArray[np.int64]:
    """A line through values, two per column, as dots of braille characters (height, column).

    NaN leaves a gap; values outside are drawn at the edge.
    """
    levels = np.asarray(values, float)
    dots = np.zeros((4 * height, len(levels)), bool)
    share = (high - np.clip(levels, low, high)) / (high - low)
    places = np.rint(np.nan_to_num(share) * (4 * height - 1)).astype(int)
    known = np.isfinite(levels)
    for x in np.flatnonzero(known):
        before = places[x - 1] if x and known[x - 1] else places[x]
        first, last = sorted((before, places[x]))
        dots[first : last + 1, x] = True
        # Between two columns the line has one step, not two dots of the same height.
        if last > first:
            dots[before, x] = False
    cells = dots.reshape(height, 4, -1, 2)
    return np.asarray(np.einsum("hyxd,yd->hx", cells, _DOTS))


def braille(
    traces: Sequence[NDArray[np.int64]], roles: Sequence[str], gaps: NDArray[np.bool_]
) -> list[Line]:
    """Lines of braille characters; of two traces in one cell, the first gives the color.

    gaps: columns (column,) that are hatched where no line is
    """
    dots = np.bitwise_or.reduce(traces)
    empty = np.where(gaps, ord(HATCH), ord(" "))
    codes = np.where(dots > 0, dots + 0x2800, empty).tolist()
    # The number of the first trace in each cell; that of hatching comes after the last.
    drawn = np.stack([*(one > 0 for one in traces), np.ones_like(dots, bool)])
    numbers = drawn.argmax(axis=0)
    lines: list[Line] = []
    for row, number in zip(codes, numbers, strict=True):
        text = "".join(map(chr, row))
        starts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist()]
        ends = [*starts[1:], len(text)]
        looks = [*roles[: len(traces)], "grid"]
        lines.append([(text[a:b], looks[number[a]]) for a, b in zip(starts, ends, strict=True)])
    return lines


def with_limit(line: Line, label: str) -> Line:
    """A line of a picture with a limit where nothing else is, and its label from the left on."""
    found: Line = []
    at = 0
    for text, role in line:
        for part in re.findall(r" +|[^ ]+", text):
            if part[0] == " ":
                words = f" {label} ".ljust(at + len(part), DASH)[at : at + len(part)]
                found.append((words, "red"))
            else:
                found.append((part, role))
            at += len(part)
    return found


def meter(share: float, held: float, height: int) -> list[tuple[str, bool]]:
    """A vertical meter one character wide, from the top: its characters, and which one is held."""
    eighths = round(8 * height * share)
    found = [
        (EIGHTHS[min(8, max(0, eighths - below))], False)
        for below in range(8 * (height - 1), -1, -8)
    ]
    at = height - 1 - min(height - 1, int(held * height))
    if held > 0.0 and found[at][0] in " ▁▂▃":
        found[at] = "▔" if held * height % 1 > 0.5 else "▁", True
    return found


def shade(level_db: float) -> str:
    """The character for a level below the strongest."""
    return next((mark for mark, down in SHADES.items() if level_db >= down), " ")


def shared_columns(bands: int, room: int) -> list[NDArray[np.intp]]:
    """The bands that each column of an image `room` columns wide shows."""
    wide = room // bands
    if wide:
        return [np.array([b]) for b in range(bands) for _ in range(wide)]
    return list(np.array_split(np.arange(bands), room))


def tick_line(centers: ArrayLike, ticks: Sequence[int]) -> str:
    """A line of frequencies below the nearest columns, as many as fit."""
    centers, text = np.asarray(centers), ""
    for f in ticks:
        at = int(np.abs(np.log(centers / f)).argmin())
        label = f"{f // 1000}k" if f >= 1000 else str(f)
        start = min(max(0, at - len(label) // 2), max(0, len(centers) - len(label)))
        if not text or start > len(text):
            text = text.ljust(start) + label
    return text


def cut(text: str, width: int) -> str:
    """At most `width` characters; a cut text ends in an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"[: max(0, width)]


def nice_range(low: float, high: float, floor: float | None) -> tuple[float, float]:
    """A range of whole tens around values, 40 wide at least."""
    if not (math.isfinite(low) and math.isfinite(high)):
        low = high = 60.0 if floor is not None else -20.0
    bottom = floor if floor is not None else 10.0 * math.floor(low / 10 - 0.2)
    top = 10.0 * math.ceil(high / 10 + 0.2)
    return bottom, max(top, bottom + 40.0)
