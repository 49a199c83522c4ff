"""Positions of loudspeakers that channels are for, and their weights in programme loudness."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from amt_stream.core.errors import Refusal
from amt_stream.core.words import counted

SURROUND = 1.41
"""Weight of a channel beside the listener (ITU-R BS.1770-5, Table 4)."""

WEIGHTS = {
    "M": 1.0,  # one channel for all
    **dict.fromkeys(("L", "R", "C", "Lc", "Rc", "Cs", "Lrs", "Rrs"), 1.0),
    **dict.fromkeys(("Ls", "Rs", "Lss", "Rss", "Lw", "Rw"), SURROUND),
    **dict.fromkeys(("Ltf", "Ctf", "Rtf", "Tc", "Lts", "Rts", "Ltr", "Ctr", "Rtr"), 1.0),
    **dict.fromkeys(("LFE", "LFE2"), 0.0),
}
"""Weight of each position (ITU-R BS.1770-5, Annex 3).

1.41 from 60 to 120 degrees beside the listener and less than 30 degrees high, none for
low-frequency effects, 1 for all others. Names are those of ITU-R BS.2051-3: left and right,
center; surround at 110 degrees; side and rear surround at 90 and 135 degrees; t for top: front,
side, rear; w for wide, at 60 degrees.
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
    "5.1.4": "L R C LFE Ls Rs Ltf Rtf Ltr Rtr",
    "7.1.4": "L R C LFE Lrs Rrs Lss Rss Ltf Rtf Ltr Rtr",
}
"""Layouts by their common names, in the order of WAVE files (WAVEFORMATEXTENSIBLE)."""

USUAL = {
    len(LAYOUTS[name].split()): tuple(LAYOUTS[name].split())
    for name in ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1", "5.1.4", "7.1.4")
}
"""The usual layout of each number of channels, of a source that does not say."""

MASK = (
    *("L", "R", "C", "LFE", "BL", "BR", "Lc", "Rc", "Cs", "SL", "SR"),
    *("Tc", "Ltf", "Ctf", "Rtf", "Ltr", "Ctr", "Rtr"),
)
"""Positions by the bits of a WAVE file's channel mask; back and side are surround by `surround`."""


class LayoutError(Refusal, ValueError):
    """A layout is unknown, or is not of so many channels."""


@dataclass(frozen=True)
class Layout:
    """The position of each channel of a sound, and who says so.

    positions: keys of WEIGHTS, each once but for "M"; "" for a channel of an unknown position
    origin: "source", "user", or "usual" for the usual layout of the number of channels

    Raises LayoutError for a position that is unknown or repeated.
    """

    positions: tuple[str, ...]
    origin: str = "source"

    def __post_init__(self) -> None:
        known = [position for position in self.positions if position]
        for position in known:
            if position not in WEIGHTS:
                near = difflib.get_close_matches(position, WEIGHTS, 1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(WEIGHTS)}"
                raise LayoutError(f"no position of a channel is called {position!r}: {remedy}")
            if known.count(position) > 1:
                raise LayoutError(f"the position {position} is given twice: give each once")

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

    @property
    def name(self) -> str:
        """Its name, or "" if it has none."""
        return next((n for n, of in LAYOUTS.items() if of.split() == [*self.positions]), "")

    def __str__(self) -> str:
        listed = " ".join(position or "?" for position in self.positions)
        return f"{self.name} ({listed})" if self.name else listed


def layout_named(text: str, channels: int) -> Layout:
    """A layout that a user gives: a name of LAYOUTS, or positions separated by blanks or commas.

    Raises LayoutError if it is unknown, or has another number of channels.
    """
    names = {name.casefold(): of for name, of in LAYOUTS.items()}
    words = names.get(text.strip().casefold(), text).replace(",", " ").split()
    spelled = {position.casefold(): position for position in WEIGHTS}
    if len(words) == 1 and words[0].casefold() not in spelled:
        raise LayoutError(
            f"the layout {text!r} is unknown: give one of {', '.join(LAYOUTS)}, or positions such "
            "as 'L R C LFE Ls Rs'"
        )
    found = Layout(tuple(spelled.get(word.casefold(), word) for word in words), "user")
    if len(words) != channels:
        raise LayoutError(
            f"the layout {found} has {counted(len(words), 'channel')}, and the sound has "
            f"{channels}: give one for all of them"
        )
    return found


def layout_of_mask(mask: int, channels: int) -> Layout | None:
    """The layout of a WAVE file's channel mask; None for 0, or if it names too few positions."""
    found = [name for bit, name in enumerate(MASK) if mask & 1 << bit][:channels]
    return Layout(surround(found)) if len(found) == channels else None


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
