"""Limits in words, equal on all displays and in reports."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.accumulators.limit_state import STATES, is_too_much
from amt_stream.meters.limits import COLORS, Limit
from amt_stream.meters.rows.captions import sign_of
from amt_stream.meters.rows.limited import (
    ahead_words,
    ends_in,
    forecast,
    is_clipped,
    so_far,
    value_and_threshold,
)
from amt_stream.meters.rows.readings import column_named
from amt_stream.meters.rows.words import duration_text, reading_text
from amt_stream.meters.state_signs import NOT_KNOWN, is_away

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

MISSING = {
    "off": "its model is switched off",
    "silent": "silent",
    "gap": "samples lost",
    "non_finite": "bad samples",
    "stall": "samples lost",
}
"""Why a value of a limit is missing, by the fault of its row."""

WORST = ("red", "amber", "uncalibrated", "unknown", "green")


def silence(held: Collection[str]) -> str:
    """Why nothing is measured; "" while it is."""
    return next((why for why in held if why not in HEARD), "")


def state_of(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """The state in a row; "unknown" where there is none, and while nothing is measured.

    No color but that of "uncalibrated" stands beside a missing value.
    """
    state = "" if silence(held) else str(values.get(limit.state, ""))
    if state in COLORS and values.get(limit.column, 0.0) is None:
        return "unknown"
    return state if state in STATES else "unknown"


def _why_missing(limit: Limit, values: Mapping[str, Any]) -> str:
    """Why a row has no value of a limit; "" if it has one, or has none yet."""
    if values.get(limit.column, 0.0) is not None:
        return ""
    faults = str(values.get("fault", "")).split()
    return next((words for fault, words in MISSING.items() if fault in faults), "")


def state_words(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """As "Over the limit"; "Below the limit" for a lower limit, which is missed."""
    if why := silence(held):
        return NOT_KNOWN.format(why=why)
    state = state_of(limit, values)
    words = "below the limit" if limit.below and state == "red" else WORDS[state]
    if ahead := ahead_words(limit, values):
        words = ahead
    elif so_far(limit, values):
        above = limit.is_beyond(values.get(limit.column))
        words = f"{limit.side if above else 'within'} the limit so far"
    elif state == "unknown" and is_clipped(limit, values):
        words = "not known: the sound was clipped"
    elif state == "unknown" and (missing := _why_missing(limit, values)):
        words = f"not known: {missing}"
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
    clipped = is_clipped(limit, values)  # it was louder, so less is left
    most, up_to = ("at most ", "at most") if clipped else ("", "up to")
    parts = [] if until is None else [f"{most}{duration_text(until)} left at this level"]
    parts += [] if allowed is None else [f"{up_to} {allowed:.1f} dB allowed from now on"]
    found = ["Only part of its time was measured"] if so_far(limit, values) else []
    found += [f"Forecast: {'; '.join(parts)}"] if parts else []
    return ". ".join(found)


def worst_words(state: JsonMap) -> str:
    """The worst value in a summary, with a sign if the sound was clipped at any time."""
    column = column_named(state["column"]) if state.get("clipped_s") else None
    return reading_text(state["column"], state["worst"], sign_of(column))


def window_words(state: JsonMap) -> str:
    """The part of a window that was never complete, as text from a summary."""
    words = (
        f"in {duration_text(state['heard_s'])} of a window of {duration_text(state['window_s'])}"
    )
    if (least := state.get("projection")) is not None:
        words += f"; projected: at least {reading_text(state['column'], least)}, {PROJECTED}"
    return words


def unknown_words(state: JsonMap) -> str:
    """Why the result of a limit is not known, as text from a summary."""
    if state["worst"] is None:
        return "was never known" + (": uncalibrated" if state["uncalibrated_s"] else "")
    if state.get("cut_off"):
        return "is not known: sound is missing at the end"
    unjudged = f"{duration_text(state['unjudged_s'])} of {duration_text(state['counted_s'])}"
    clipped_s = state.get("clipped_s", 0.0)
    if clipped_s and not is_too_much(state["unjudged_s"], state["counted_s"]):
        return f"is not known: the sound was clipped for {duration_text(clipped_s)}"
    if state.get("at_end") or not state["unjudged_s"]:
        return "is not known at the end"
    reasons = "sound was missing or uncalibrated, or the value includes clipped sound"
    return f"is not known: for {unjudged} it could not be judged, because {reasons}"


def alarm_words(limits: Iterable[Limit], values: Mapping[str, Any]) -> str:
    """What is about to be exceeded, the soonest first, and what may still be played; or "".

    As "LAeq,15min 98.2 dB, limit 100 dB: over the limit in 4 min at this level. Up to 97.1 dB
    allowed from now on".
    """
    soon = [(left_s, limit) for limit in limits if (left_s := ends_in(limit, values)) is not None]
    if not soon:
        return ""
    _, limit = min(soon, key=lambda one: one[0])
    words = f"{value_words(limit, values)}: {ahead_words(limit, values)}"
    allowed, _ = forecast(limit, values)
    return words if allowed is None else f"{words}. Up to {allowed:.1f} dB allowed from now on"


def worst(
    limits: Iterable[Limit], values: Mapping[str, Any], held: Collection[str] = ()
) -> Limit | None:
    """The most urgent limit; None without limits."""
    return min(limits, key=lambda limit: WORST.index(state_of(limit, values, held)), default=None)
