"""The base class of meters."""

import difflib
from collections.abc import Iterable, Sequence

from amt_stream.core.saved_state import Resumable


class Meter(Resumable):
    """A meter has readings on demand, and some of them, `columns`, after each frame.

    It can be paused while it is fed. Readings that are not columns only cost what `reading` needs.
    """

    paused = False
    _excluded = 0

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)

    def pause(self) -> None:
        """Count nothing until `unpause`."""
        self.paused = True

    def unpause(self) -> None:
        """Continue after a pause."""
        self.paused = False

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; windows move on."""
        self._excluded += 0 if self.paused else count

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise ValueError for a column that is not in `known`, with the nearest name."""
        names = list(known)
        for column in self.columns:
            if column not in names:
                near = difflib.get_close_matches(column, names, 1, 0.0)[0]
                raise ValueError(
                    f"{type(self).__name__} has no reading {column!r}: the nearest is {near!r}"
                )
