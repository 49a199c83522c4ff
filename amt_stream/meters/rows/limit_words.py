"""Limits in words, equal on all displays and in reports."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.limits import STATES, Limit
from amt_stream.meters.rows.limited import forecast, is_clipped, so_far, value_and_threshold
from amt_stream.meters.rows.words import reading_text
from amt_stream.meters.state_signs import is_away

WORDS = {
    "green": "within the limit",
    "amber": "close to the limit",
    "red": "over the limit",
    "unknown": "not known yet",
    "uncalibrated": "not judged: uncalibrated",
}

PROJECTED = "with silence for the rest"
"""What a level is projected with, to a window or a day that is not complete."""

HEARD = ("paused", "frozen")
"""States in which limits are still judged although readings stand still."""

WORST = ("red", "amber", "uncalibrated", "unknown", "green")


def silence(held: Collection[str]) -> str:
    """Why nothing is measured; "" while it is."""
    return next((why for why in held if why not in HEARD), "")


def state_of(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """The state in a row; "unknown" where there is none, and while nothing is measured."""
    state = "" if silence(held) else str(values.get(limit.state, ""))
    return state if state in STATES else "unknown"


def state_words(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """As "Over the limit"; "Below the limit" for a lower limit, which is missed."""
    if why := silence(held):
        return f"Not known: {why}"
    state = state_of(limit, values)
    words = "below the limit" if limit.below and state == "red" else WORDS[state]
    if so_far(limit, values):
        above = limit.is_beyond(values.get(limit.column))
        words = f"{limit.side if above else 'within'} the limit so far"
    elif state == "unknown" and is_clipped(limit, values):
        words = "not known: the sound was clipped"
    return words[:1].upper() + words[1:]


def value_words(
    limit: Limit, values: Mapping[str, Any], held: Collection[str] = (), brief: bool = False
) -> str:
    """As "LAeq,30min 97.3 dB, limit 99 dB"; without the value if there is no sound.

    brief: with the unit once
    """
    row = {**values, limit.column: None} if is_away(held) else values
    return " ".join(value_and_threshold(limit, row, brief))


def forecast_words(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """As "Forecast: 14 min left at this level; up to 98.2 dB allowed from now on"; "" if none.

    Before it, why a limit is not known yet.
    """
    if silence(held) or state_of(limit, values) == "uncalibrated":
        return ""
    allowed, until = forecast(limit, values)
    parts = [] if until is None else [f"{_duration(until)} left at this level"]
    parts += [] if allowed is None else [f"up to {allowed:.1f} dB allowed from now on"]
    found = ["Only part of its time was measured"] if so_far(limit, values) else []
    found += [f"Forecast: {'; '.join(parts)}"] if parts else []
    return ". ".join(found)


def window_words(state: JsonMap) -> str:
    """The part of a window that was never complete, as text from a summary."""
    words = f"in {_duration(state['heard_s'])} of a window of {_duration(state['window_s'])}"
    if (least := state.get("projection")) is not None:
        words += f"; projected: at least {reading_text(state['column'], least)}, {PROJECTED}"
    return words


def unknown_words(state: JsonMap) -> str:
    """Why the result of a limit is not known, as text from a summary."""
    if state["worst"] is None:
        return "was never known" + (": uncalibrated" if state["uncalibrated_s"] else "")
    unjudged = f"{_duration(state['unjudged_s'])} of {_duration(state['counted_s'])}"
    if state.get("at_end") or not state["unjudged_s"]:
        return "is not known at the end"
    reasons = "sound was missing or uncalibrated, or the value includes clipped sound"
    return f"is not known: for {unjudged} it could not be judged, because {reasons}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def worst(
    limits: Iterable[Limit], values: Mapping[str, Any], held: Collection[str] = ()
) -> Limit | None:
    """The most urgent limit; None without limits."""
    return min(limits, key=lambda limit: WORST.index(state_of(limit, values, held)), default=None)
