"""Which part of a measurement is counted: since the last reset, without the pauses."""

import math
from collections.abc import Sequence

from amt_stream.meters.frames import Event, undone_with


def counted_from(events: Sequence[Event]) -> float:
    """When counting began anew, in seconds; a reset that was undone is none."""
    began_s = before_s = 0.0
    reset_s = -math.inf
    for event in events:
        if event.kind == "readings_reset":
            if not undone_with(reset_s, event.time_s):
                before_s = began_s
            began_s = reset_s = event.time_s
        elif event.kind == "reset_undone":
            began_s, reset_s = before_s, -math.inf
    return began_s


def pauses(events: Sequence[Event]) -> list[tuple[float, float]]:
    """From when until when nothing was counted; the last may not have ended."""
    found: list[tuple[float, float]] = []
    for event in events:
        if event.kind == "paused" and not (found and math.isinf(found[-1][1])):
            found.append((event.time_s, math.inf))
        elif event.kind == "continued" and found:
            found[-1] = found[-1][0], event.time_s
    return found
