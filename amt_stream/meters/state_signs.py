"""The states of a measurement, as all displays show them: their words, shapes, colors and order.

Window, wall view, terminal and page use this table; the page gets it as JavaScript. It imports
neither numpy nor torch.
"""

import json
import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

Point = tuple[float, float]
Outline = tuple[Point, ...]

SIDE = 16
"""Width and height of the square in which shapes are drawn, from its upper left corner."""

AWAY = {
    "lost": "Microphone lost {clock}, waiting for {name}",
    "silent": "Microphone silent {clock}, {note}",
}
"""States without sound, with their sentences: minutes and seconds since then, and the note."""

OF_FAULT = {
    "clip": "clipped",
    "overload": "too slow",
    "off": "too slow",
    "gap": "samples lost",
    "stall": "samples lost",
    "silent": "samples lost",
    "non_finite": "bad samples",
}
"""The state for each fault, by its name in rows."""

OF_HEALTH = {"overloaded": "too slow"}
"""The state for each field of `Health` that holds, by its name."""

MEASURING = ("running", "paused")
"""States in which sound is measured, so that its faults and limits are shown too."""

UNREACHED = ("token needed", "connecting", "no connection")
"""States of a page that its server does not reach."""

NOT_KNOWN = "Not known: {why}"
"""What is said of a limit while nothing is measured."""

BETWEEN = " \N{MIDDLE DOT} "
"""Between the words of two states."""

ALONE = ("running", "uncalibrated")
"""States that are shown only if there is no other: each number says "uncalibrated" by itself."""


class StateSign(NamedTuple):
    """How a state looks.

    glyph: its shape as a character
    shape: its shape as outlines, filled by the nonzero rule: holes run the other way round
    color: a role of the palette
    filled: whether the word is in the color of paper on this color; else in this color on paper
    """

    glyph: str
    shape: tuple[Outline, ...]
    color: str
    filled: bool


def _disc(x: float, y: float, radius: float, hole: bool = False, turns: float = 1.0) -> Outline:
    """A circle; with less than one turn, its part from the top through the left."""
    way = 2 * math.pi * turns * (1 if hole else -1) / 24
    return tuple(
        (round(x + radius * math.sin(way * k), 2), round(y - radius * math.cos(way * k), 2))
        for k in range(25)
    )


def _bar(x1: float, y1: float, x2: float, y2: float, width: float = 3.0) -> Outline:
    """A line with square ends."""
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = (y2 - y1) / length * width / 2, -(x2 - x1) / length * width / 2
    corners = (x1 + dx, y1 + dy), (x2 + dx, y2 + dy), (x2 - dx, y2 - dy), (x1 - dx, y1 - dy)
    return tuple((round(x, 2), round(y, 2)) for x, y in corners)


def _box(inset: float, hole: bool = False) -> Outline:
    low, high = inset, SIDE - inset
    corners = (low, low), (high, low), (high, high), (low, high)
    return corners[::-1] if hole else corners


_CROSS = _bar(3, 3, 13, 13), _bar(13, 3, 3, 13)
_SQUARE = _box(2), _box(5, hole=True)
_RING = _disc(8, 8, 6), _disc(8, 8, 4, hole=True)
_DOTS = _disc(3, 8, 2), _disc(8, 8, 2), _disc(13, 8, 2)
_HOURGLASS = ((2, 1), (14, 1), (8, 8)), ((8, 8), (14, 15), (2, 15))
_PIECES = _bar(1.5, 4.75, 8, 4.75, 6.5), _bar(8, 11.25, 14.5, 11.25, 6.5)
_NOT_EQUAL = _bar(2, 5.5, 14, 5.5, 2.5), _bar(2, 10.5, 14, 10.5, 2.5), _bar(12, 1.5, 4, 14.5, 2.5)
_CEILING = _bar(1, 3, 15, 3, 4), _bar(8, 4, 8, 15, 4)
_STAR = tuple(
    _bar(8 - 7 * math.sin(a), 8 - 7 * math.cos(a), 8 + 7 * math.sin(a), 8 + 7 * math.cos(a), 2.5)
    for a in (0, math.pi / 3, 2 * math.pi / 3)
)
_HATCHED = (
    *(_box(1), _box(2.5, hole=True)),
    *(_bar(2, 6, 6, 2, 1.6), _bar(2, 10, 10, 2, 1.6), _bar(2, 14, 14, 2, 1.6)),
    *(_bar(6, 14, 14, 6, 1.6), _bar(10, 14, 14, 10, 1.6)),
)
_KEY = (
    *(_disc(5, 8, 4.5), _disc(5, 8, 2, hole=True)),
    *(_bar(9, 8, 16, 8, 2.5), _bar(14, 8, 14, 13, 2.5)),
)

SIGNS = {
    # Nothing is known, or nothing is measured.
    "token needed": StateSign("#", _KEY, "ink", True),
    "no connection": StateSign("⊘", (*_RING, _bar(4, 12, 12, 4)), "ink", True),
    "failed": StateSign("!", (_bar(8, 1, 8, 10, 4), _disc(8, 13.2, 2.2)), "ink", True),
    "lost": StateSign("✕", _CROSS, "ink", True),
    "stalled": StateSign("╍", (_bar(1, 8, 6.5, 8, 4), _bar(9.5, 8, 15, 8, 4)), "ink", True),
    "silent": StateSign("⊖", (*_RING, _bar(4, 8, 12, 8)), "ink", True),
    "stopped": StateSign("□", _SQUARE, "second", True),
    "ended": StateSign("□", _SQUARE, "second", True),
    "idle": StateSign("○", _RING, "second", False),
    "connecting": StateSign("⋯", _DOTS, "second", False),
    "starting": StateSign("⋯", _DOTS, "second", False),
    "stopping": StateSign("⋯", _DOTS, "second", False),
    "waiting": StateSign("⋯", _DOTS, "second", False),
    # Something is wrong with what is measured.
    "too slow": StateSign("⋈", _HOURGLASS, "amber", True),
    "bad samples": StateSign("≠", _NOT_EQUAL, "right", True),
    "samples lost": StateSign("▚", _PIECES, "right", True),
    "clipped": StateSign("┳", _CEILING, "right", True),
    # It is right, and beyond a limit.
    "over limit": StateSign("■", (_box(2),), "red", True),
    "below limit": StateSign("▼", (((1, 3), (15, 3), (8, 14)),), "red", True),
    # The user holds it.
    "frozen": StateSign("✱", _STAR, "left", True),
    "paused": StateSign("‖", (_bar(5, 2, 5, 14, 3.5), _bar(11, 2, 11, 14, 3.5)), "left", False),
    # It is not reliable yet, or only relative.
    "settling": StateSign("◐", (*_RING, _disc(8, 8, 6, turns=0.5)), "second", False),
    "uncalibrated": StateSign("▨", _HATCHED, "amber", False),
    "running": StateSign("●", (_disc(8, 8, 6),), "ink", False),
}
"""All states, the worst first."""

_ORDER = {name: place for place, name in enumerate(SIGNS)}


def rank_states(
    course: str,
    *,
    frozen: bool = False,
    health: Iterable[str] = (),
    faults: Iterable[str] = (),
    settling: bool = False,
    uncalibrated: bool = False,
    limits: Iterable[str] = (),
) -> list[str]:
    """The states that hold, the worst first.

    course: how far the measurement is, such as "running", "lost" or "silent"
    health: names of fields of `Health` that hold
    faults: names of recent faults, as in rows
    limits: "over limit" and "below limit" for limits that are exceeded
    """
    found = {course} | ({"frozen"} if frozen else set())
    if course in MEASURING:
        conditions = {"settling": settling, "uncalibrated": uncalibrated}
        found |= {name for name, holds in conditions.items() if holds} | set(limits)
        found |= {OF_HEALTH[name] for name in health} | {OF_FAULT[fault] for fault in faults}
    ranked = sorted(found, key=_ORDER.__getitem__)
    return [name for name in ranked if name == ranked[0] or name not in ALONE]


def chip(states: Sequence[str]) -> dict[str, str]:
    """The worst state and its word, and `also`: a second state, and how many there are besides."""
    worst, *others = states
    second = f"{BETWEEN}{others[0]}" if others else ""
    more = f" +{len(others) - 1}" if len(others) > 1 else ""
    return {"state": worst, "word": worst.capitalize(), "also": second + more}


def states_text(states: Sequence[str]) -> str:
    """The same in one text, as "Clipped · over limit +1"."""
    return "{word}{also}".format_map(chip(states))


def is_away(states: Collection[str]) -> bool:
    """Whether there is no sound, so that the last readings are not of now."""
    return not AWAY.keys().isdisjoint(states)


def away_sentence(state: str, away_s: float, name: str, note: str) -> str:
    """What a display says of a microphone that is `is_away`: its name, its note, since when."""
    return AWAY[state].format(clock=minutes_text(away_s), name=name, note=note)


def minutes_text(seconds: float) -> str:
    """Minutes and seconds, as "01:24"."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes:02}:{seconds:02}"


def signs_script() -> str:
    """The signs as a module of JavaScript, with shapes as paths of SVG.

    Also, of each state that only a browser knows, what it shows: its chip, that of frozen readings,
    and the word of a limit.
    """
    signs = {
        name: {"path": _path(sign.shape), "color": sign.color, "filled": sign.filled}
        for name, sign in SIGNS.items()
    }
    unreached = {
        name: {
            "chip": chip([name]),
            "frozen_chip": chip([name, "frozen"]),
            "limit": NOT_KNOWN.format(why=name),
        }
        for name in UNREACHED
    }
    parts = {"SIGNS": signs, "UNREACHED": unreached}
    return "".join(f"export const {name} = {json.dumps(one)};\n" for name, one in parts.items())


def _path(shape: Iterable[Outline]) -> str:
    return "".join(f"M{' '.join(f'{x:g},{y:g}' for x, y in outline)}Z" for outline in shape)
