"""Limits in words."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from amt_monitor.reading_captions import caption_of
from amt_stream.meters.limits import STATES, Limit
from amt_stream.meters.rows import forecast, reading_text
from amt_stream.meters.rows.limited import so_far

WORDS = {
    "green": "within the limit",
    "amber": "close to the limit",
    "red": "over the limit",
    "unknown": "not known yet",
    "uncalibrated": "not judged without calibration",
}
"""The words of each state."""

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
    """As "over the limit"; "below the limit" for a lower limit."""
    if why := silence(held):
        return f"not known: {why}"
    state = state_of(limit, values)
    if so_far(limit, values):
        return f"{limit.side} the limit so far, in a window that is not whole"
    return "below the limit" if limit.below and state == "red" else WORDS[state]


def value_words(limit: Limit, values: Mapping[str, Any]) -> str:
    """As "LAeq,30 min 97.3 dB, limit 99 dB"."""
    caption = caption_of(limit.column)
    value = reading_text(limit.column, values.get(limit.column))
    side = "at least" if limit.below else "limit"
    name = caption.symbol or caption.words
    return f"{name} {value} {caption.unit}, {side} {limit.threshold:g} {caption.unit}"


def forecast_words(limit: Limit, values: Mapping[str, Any], held: Collection[str] = ()) -> str:
    """The forecast of a limit; "" without one."""
    if silence(held):
        return ""
    allowed, until = forecast(limit, values)
    told = []
    if until is not None:
        told.append(f"at the present level the limit is reached in {_duration(until)}")
    if allowed is not None:
        told.append(f"up to {allowed:.1f} dB is allowed")
    return f"Forecast: {'; '.join(told)}" if told else ""


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def worst(
    limits: Iterable[Limit], values: Mapping[str, Any], held: Collection[str] = ()
) -> Limit | None:
    """The most urgent limit; None without limits."""
    return min(limits, key=lambda limit: WORST.index(state_of(limit, values, held)), default=None)
