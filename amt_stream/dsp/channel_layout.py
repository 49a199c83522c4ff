"""Positions of loudspeakers that channels are for, and their weights in programme loudness."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief

SURROUND = 1.41
"""Weight of a channel beside the listener (ITU-R BS.1770-5, Table 4)."""

MONO, LFE = "M", "LFE"
"""The positions of one channel for all, and of low-frequency effects."""

MOST_CHANNELS = 24
"""Channels of the largest layout, 22.2."""

WEIGHTS = {
    MONO: 1.0,
    **dict.fromkeys(("L", "R", "C", "Lc", "Rc", "Cs", "Lrs", "Rrs"), 1.0),
    **dict.fromkeys(("Ls", "Rs", "Lss", "Rss", "Lw", "Rw"), SURROUND),
    **dict.fromkeys(("Ltf", "Ctf", "Rtf", "Tc", "Lts", "Rts", "Ltr", "Ctr", "Rtr"), 1.0),
    **dict.fromkeys(("Lbf", "Cbf", "Rbf"), 1.0),
    **dict.fromkeys((LFE, "LFE2"), 0.0),
}
"""Weight of each position (ITU-R BS.1770-5, Annex 3).

1.41 from 60 to 120 degrees beside the listener and less than 30 degrees high, none for
low-frequency effects, 1 for all others. Names are those of ITU-R BS.2051-3: left and right,
center; surround at 110 degrees; side and rear surround at 90 and 135 degrees; t for top: front,
side, rear; b for bottom; w for wide, at 60 degrees.
"""

LAYOUTS = {
    "mono": "M",
    "stereo": "L R",
    "2.1": "L R LFE",
    "3.0": "L R C",
    "3.1": "L R C LFE",
    "quad": "L R Ls Rs",
    "4.0": "L R C Cs",
    "4.1": "L R C LFE Cs",
    "5.0": "L R C Ls Rs",
    "5.1": "L R C LFE Ls Rs",
    "6.0": "L R C Cs Ls Rs",
    "6.1": "L R C LFE Cs Ls Rs",
    "7.0": "L R C Lrs Rrs Lss Rss",
    "7.1": "L R C LFE Lrs Rrs Lss Rss",
    "5.1.2": "L R C LFE Ls Rs Lts Rts",
    "5.1.4": "L R C LFE Ls Rs Ltf Rtf Ltr Rtr",
    "7.1.2": "L R C LFE Lrs Rrs Lss Rss Lts Rts",
    "7.1.4": "L R C LFE Lrs Rrs Lss Rss Ltf Rtf Ltr Rtr",
    "9.1.6": "L R C LFE Lrs Rrs Lss Rss Lw Rw Ltf Rtf Lts Rts Ltr Rtr",
    "22.2": "Lw Rw C LFE Lrs Rrs L R Cs LFE2 Lss Rss Ltf Rtf Ctf Tc Ltr Rtr Lts Rts Ctr Cbf Lbf "
    "Rbf",
}
"""Layouts by their common names.

In the order of WAVE files (WAVEFORMATEXTENSIBLE); 22.2 in that of SMPTE ST 2036-2, whose FL and FR
are at 60 degrees.
"""

ALIASES = {"1.0": "mono", "2.0": "stereo", "lcrs": "4.0"}

USUAL = {
    len(LAYOUTS[name].split()): tuple(LAYOUTS[name].split())
    for name in (
        *("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1"),
        *("5.1.4", "7.1.4", "9.1.6", "22.2"),
    )
}
"""The usual layout of each number of channels, of a source that does not say."""

MASK = (
    *("L", "R", "C", "LFE", "BL", "BR", "Lc", "Rc", "Cs", "SL", "SR"),
    *("Tc", "Ltf", "Ctf", "Rtf", "Ltr", "Ctr", "Rtr"),
)
"""Positions by the bits of a WAVE file's channel mask; back and side are surround by `surround`."""

OTHER_NAMES = [
    "FL",
    "FR",
    "FC",
    "LFE1",
    "BL",
    "BR",
    "FLC",
    "FRC",
    "BC",
    "SL",
    "SR",
    "TC",
    "TFL",
    "TFC",
    "TFR",
    "TBL",
    "TBC",
    "TBR",
]
"""What other programs call the positions of MASK."""


ORIGINS = ("source", "user", "usual")
"""Who says what channels are for."""


class LayoutError(Refusal, ValueError):
    """A layout or a position is unknown."""


@dataclass(frozen=True)
class Layout:
    """The position of each channel of a sound, and who says so.

    positions: keys of WEIGHTS, each once but for MONO; "" for a channel of an unknown position
    origin: "source", "user", or "usual" for the usual layout of the number of channels; layouts of
        equal positions are equal

    Raises LayoutError for another origin, and for a position that is unknown or repeated.
    """

    positions: tuple[str, ...]
    origin: str = field(default="source", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise LayoutError(
                f"the origin of a layout is {brief(self.origin)!r}: give {', '.join(ORIGINS)}"
            )
        known = [position for position in self.positions if position]
        for position in known:
            if position not in WEIGHTS:
                near = difflib.get_close_matches(position, WEIGHTS, 1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(WEIGHTS)}"
                raise LayoutError(
                    f"no position of a channel is called {brief(position)!r}: {remedy}"
                )
            if position != MONO and known.count(position) > 1:
                raise LayoutError(f"the position {position} is given twice: give each once")

    @property
    def said(self) -> bool:
        """Whether somebody says so, the source or the user."""
        return self.origin != "usual"

    @property
    def channels(self) -> int:
        return len(self.positions)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each channel; 1 for an unknown position."""
        return tuple(WEIGHTS[position] if position else 1.0 for position in self.positions)

    @property
    def ears(self) -> tuple[int, int] | None:
        """Numbers, counted from 1, of the channels for left and right, if it has both."""
        if "L" not in self.positions or "R" not in self.positions:
            return None
        return self.positions.index("L") + 1, self.positions.index("R") + 1

    def of(self, numbers: Sequence[int]) -> Self:
        """The layout of some of its channels, counted from 1."""
        return replace(self, positions=tuple(self.positions[number - 1] for number in numbers))

    @property
    def name(self) -> str:
        """The name of a layout of these positions, in whatever order, or "" if it has none."""
        return _BY_POSITIONS.get(frozenset(self.positions), "") if all(self.positions) else ""

    def __str__(self) -> str:
        listed = " ".join(position or "?" for position in self.positions)
        return f"{self.name} ({listed})" if self.name else listed

    def to_dict(self) -> JsonDict:
        """Data for headers and files."""
        return {"positions": list(self.positions), "origin": self.origin}

    @classmethod
    def from_dict(cls, data: JsonMap) -> Self:
        """The layout of `to_dict`."""
        return cls(tuple(map(str, data["positions"])), str(data["origin"]))


_BY_POSITIONS = {frozenset(positions.split()): name for name, positions in LAYOUTS.items()}


def layout_named(text: str) -> Layout:
    """A layout that a user gives: a name of LAYOUTS, or positions separated by blanks or commas.

    Raises LayoutError if it is unknown.
    """
    named = text.strip().casefold()
    words = LAYOUTS.get(ALIASES.get(named, named), text).replace(",", " ").split()
    spelled = {name.casefold(): of for name, of in zip(OTHER_NAMES, MASK, strict=True)}
    spelled |= {position.casefold(): position for position in WEIGHTS}
    if not words or (len(words) == 1 and words[0].casefold() not in spelled):
        raise LayoutError(
            f"the layout {brief(text)!r} is unknown: give one of {', '.join(LAYOUTS)}, or "
            "positions such as 'L R C LFE Ls Rs'"
        )
    return Layout(surround([spelled.get(word.casefold(), word) for word in words]), "user")


def as_layout(given: Layout | str | int) -> Layout:
    """A layout, that of a name, or the usual one of a number of channels.

    Raises LayoutError for an unknown name, and TypeError for other objects.
    """
    if isinstance(given, Layout):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return usual_layout(given)
    if not isinstance(given, str):
        raise TypeError(f"the layout is {given!r}: give a Layout, or text such as '5.1'")
    return layout_named(given)


def layout_of_mask(mask: int, channels: int) -> Layout | None:
    """The layout of a WAVE file's channel mask; None for 0, or if it names too few positions."""
    found = [name for bit, name in enumerate(MASK) if mask & 1 << bit][:channels]
    return Layout(surround(found)) if len(found) == channels else None


def wave_mask(layout: Layout) -> tuple[int, list[int]] | None:
    """The channel mask of a WAVE file, and the channels, counted from 1, in the order of its bits.

    None if a position has no bit of its own.
    """
    paired = {"Ls": "BL", "Rs": "BR", "Lrs": "BL", "Rrs": "BR", "Lss": "SL", "Rss": "SR"}
    names = [paired.get(position, position) for position in layout.positions]
    if len({*names}) < len(names) or not {*names} <= {*MASK}:
        return None
    order = sorted(range(len(names)), key=lambda k: MASK.index(names[k]))
    return sum(1 << MASK.index(name) for name in names), [k + 1 for k in order]


def surround(positions: Sequence[str]) -> tuple[str, ...]:
    """Positions in which the pairs "BL", "BR" and "SL", "SR" have the names of surround.

    With both pairs they are rear and side surround, and one pair alone is surround.
    """
    both = {"BL", "SL"} <= {*positions}
    named = {"BL": "Lrs", "BR": "Rrs", "SL": "Lss", "SR": "Rss"}
    alone = {"BL": "Ls", "BR": "Rs", "SL": "Ls", "SR": "Rs"}
    return tuple((named if both else alone).get(one, one) for one in positions)


def usual_layout(channels: int) -> Layout:
    """The usual layout of this number of channels; positions are unknown for other numbers."""
    return Layout(USUAL.get(channels, ("",) * channels), "usual")
