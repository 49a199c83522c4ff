"""The time that statistics cover: since the last reset, without pauses."""

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

from amt_stream.core.since_reset import SinceReset
from amt_stream.meters.frames import Event


class CountedFrom(Protocol):
    """Statistics of the sound from `from_s` on."""

    @property
    def from_s(self) -> float: ...


State = TypeVar("State", bound=CountedFrom)


def follow_reset(states: SinceReset[State], new: State) -> None:
    """Reset states if `new` begins later, or undo the reset if it begins earlier."""
    if new.from_s > states.now.from_s:
        states.reset(new.from_s, new)
    elif new.from_s < states.now.from_s:
        states.undo()


def counted_from(events: Sequence[Event]) -> float:
    """The time of the last reset in seconds, except for one that was undone."""
    began_s = SinceReset(0.0)
    for event in events:
        if event.kind == "readings_reset":
            began_s.reset(event.time_s, event.time_s)
        elif event.kind == "reset_undone":
            began_s.undo()
    return began_s.now


def pauses(events: Sequence[Event]) -> list[tuple[float, float]]:
    """Start and end of each pause; the last may not have ended."""
    spans: list[tuple[float, float]] = []
    for event in events:
        is_paused = bool(spans) and math.isinf(spans[-1][1])
        if event.kind == "paused" and not is_paused:
            spans.append((event.time_s, math.inf))
        elif event.kind == "continued" and is_paused:
            spans[-1] = spans[-1][0], event.time_s
    return spans
