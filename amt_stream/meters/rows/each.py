"""Rows of several microphones that are measured separately."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.limits import Stood
from amt_stream.meters.rows.block import Rows
from amt_stream.meters.rows.counted import Counted
from amt_stream.meters.rows.joined import FormedRows, JoinedRows
from amt_stream.meters.rows.readings import Readings

if TYPE_CHECKING:
    from amt_stream.meters.rows.intervals import Intervals


class RowsOfEach(FormedRows):
    """`JoinedRows` of several microphones; rows of each come when its models have reached them.

    of: rows by the name of the microphone, as in `Frames.microphone`; all with the same columns
    """

    kept = ("of",)

    def __init__(self, of: Mapping[str, JoinedRows]) -> None:
        self.of = dict(of)
        self._follow()
        self.step_ms, self.fs = self._first.step_ms, self._first.fs
        self.from_s, self.to_s = self._first.from_s, self._first.to_s

    def _follow(self) -> None:
        """Take over what all rows have alike."""
        self._first = next(iter(self.of.values()))
        self.columns, self.names = self._first.columns, self._first.names
        self.limits, self.gives_cells = self._first.limits, self._first.gives_cells

    def renew(self, microphone: str, joined: JoinedRows) -> None:
        """Replace the rows of one microphone."""
        self.of[microphone] = joined
        self._follow()

    @property
    def readings(self) -> dict[str, Readings]:
        """The readings of one microphone, by model."""
        return self._first.readings

    @property
    def needed(self) -> frozenset[str]:
        """Models that limits and columns which an output asks for need."""
        return self._first.needed

    @property
    def form(self) -> str:
        named = [
            f"{name}: {joined.form}" if name else joined.form for name, joined in self.of.items()
        ]
        return "; ".join(named)

    @property
    def start_utc(self) -> np.datetime64 | None:
        """UTC of the first sample."""
        return self._first.start_utc

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the furthest microphone, as another may have no sound."""
        return max(joined.reached_s for joined in self.of.values())

    @property
    def covered(self) -> bool:
        """Whether all frames that count have come, of at least one microphone."""
        return any(joined.covered for joined in self.of.values())

    def give_ranges(self) -> None:
        """Give `Rows.range_of` too, for displays."""
        for joined in self.of.values():
            joined.give_ranges()

    def begin(self, time_s: float) -> None:
        """Give rows from that time on, of a sound that was not followed from its start."""
        for joined in self.of.values():
            joined.begin(time_s)

    def __call__(self, frames: Frames) -> Rows:
        """Take frames of one model of one microphone, and return the rows that they complete."""
        return self.of[frames.microphone](frames)

    def catch_up(self) -> None:
        """Have the readings take all frames so far."""
        for joined in self.of.values():
            joined.catch_up()

    def event(self, event: Event) -> None:
        """Handle an event of one microphone or of all."""
        for microphone, joined in self.of.items():
            if event.microphone in ("", microphone):
                joined.event(event)

    def rest(self, end_s: float | None) -> Rows:
        """The rest of each microphone, as of `JoinedRows`."""
        parts = [joined.rest(end_s) for joined in self.of.values()]
        return parts[0] if len(parts) == 1 else Rows.concatenated(parts, self.names)

    @property
    def intervals(self) -> "Intervals | None":
        """The intervals of one microphone."""
        return self._first.intervals

    def intervals_ended(self, end_s: float | None = None) -> Rows:
        """The intervals of all microphones that have ended since the last call."""
        parts = [joined.intervals_ended(end_s) for joined in self.of.values()]
        return Rows.concatenated(parts, parts[0].columns)

    def stood(self) -> list[Stood]:
        """The result of each limit for each microphone."""
        return [one for joined in self.of.values() for one in joined.stood()]

    @property
    def counted(self) -> Counted:
        """What was counted so far, of one microphone."""
        return self._first.counted

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return any(joined.paused for joined in self.of.values())


AnyRows = JoinedRows | RowsOfEach
