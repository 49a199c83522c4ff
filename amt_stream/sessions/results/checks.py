"""Checks of headers, summaries and rows that anybody may have edited."""

import math

import numpy as np

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.dsp.channel_layout import Layout, LayoutError
from amt_stream.meters.limits import KEYS as LIMIT_KEYS
from amt_stream.meters.limits import VERDICTS, limit_of
from amt_stream.meters.rows import Rows
from amt_stream.meters.source_description import SourceDescription
from amt_stream.sessions.reading import LONGEST_S

NUMBER = (int, float)
MAYBE = (*NUMBER, type(None))
HEADER: JsonDict = {
    "models": [{"name": str}],
    "source": {"name": str, "fs": NUMBER, "channels": [int]},
    "calibration": [
        {
            "channel": int,
            "full_scale_db_spl": NUMBER,
            "calibrated": bool,
            "uncertainty_db": MAYBE,
            "calibration_uncertainty_db": MAYBE,
            "microphone_uncertainty_db": NUMBER,
        }
    ],
    "columns": [{"name": str, "unit": str, "quantity": str, "model": str, "statistic": str}],
    "step_ms": NUMBER,
    "statistics": dict,
}
"""Required fields of a header, and their types."""

LIMIT = {"name": str, "column": str}
STOOD = LIMIT | {"exceeded": (bool, type(None)), "whole": bool, "times": NUMBER, "red_s": NUMBER}
STOOD |= {"worst": MAYBE, "worst_s": MAYBE, "verdict": str}
COVERED = {"from_s": NUMBER}

YEARS = np.array(["1900", "2500"], "datetime64[Y]")
LARGEST = 1e12
"""Values beyond these, and times beyond LONGEST_S, cannot be measured ones."""


class Invalid(Exception):
    """A field of a header, a summary or a row has no value that was measured."""


def check_rows(rows: Rows) -> None:
    """Raise Invalid for the first value that cannot be measured."""
    for name in rows.columns:
        column = rows[name]
        if name == "time_s":
            wrong = ~((column >= 0) & (column <= LONGEST_S))
        elif name == "utc":
            wrong = ~np.isnat(column) & ~((column >= YEARS[0]) & (column < YEARS[1]))
        elif column.dtype.kind == "f":
            wrong = np.isfinite(column) & (np.abs(column) > LARGEST)
        elif column.dtype.kind == "O":
            wrong = np.array([not isinstance(value, str) for value in column])
        else:
            continue
        if wrong.any():
            raise Invalid(f"{name} is {brief(column[wrong][0])} in row {int(np.argmax(wrong)) + 1}")


def _check_source(source: JsonMap) -> None:
    try:
        SourceDescription.from_dict(source.get("sound", {}), len(source["channels"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Invalid("the description of its sound is invalid") from error


def check(header: JsonMap, summary: JsonMap) -> None:
    """Raise Invalid or LimitError for the first invalid field of header or summary."""
    if not isinstance(summary, dict):
        raise Invalid("the summary is not an object")
    if not isinstance(summary.get("sound", {}), dict):
        raise Invalid("the sound of its summary is not an object")
    _check_form(header, HEADER)
    _check_limits(header, LIMIT, "limits ")
    for one in header["statistics"].values():
        _check_form(one, COVERED, "statistics ")
    _check_channels(header)
    _check_source(header["source"])
    named = header["source"].get("microphones", {})
    if not isinstance(named, dict):
        raise Invalid("the microphones of its source are invalid")
    if named:
        _check_form([*named.values()], [[int]])
    named = summary.get("microphones")
    every = [summary, *(named.values() if isinstance(named, dict) else ())]
    if not all(isinstance(one, dict) for one in every):
        raise Invalid("the summary of a microphone is not an object")
    for one in every:
        _check_limits(one, STOOD, "summary limits ")
        for stood in one.get("limits", ()):
            at_s = stood["worst_s"]
            if stood["verdict"] not in VERDICTS:
                raise Invalid(f"summary limits verdict is {brief(stood['verdict'])}")
            window = [stood.get(key, 0.0) for key in ("heard_s", "window_s", "projection")]
            if not all(type(part) in NUMBER and math.isfinite(part) for part in window):
                raise Invalid("summary limits have no window")
            if stood["worst"] is not None and (at_s is None or not 0 <= at_s <= LONGEST_S):
                raise Invalid("summary limits worst_s is not a time")


def _check_channels(header: JsonMap) -> None:
    """Raise Invalid for a layout or for channels of a model that cannot be."""
    for model in header["models"]:
        _check_form(model.get("channels", [1]), [int], "the channels of a model ")
    layout = header["source"].get("layout")
    if layout is not None:
        _check_form(layout, {"positions": [str], "origin": str}, "layout ")
        try:
            Layout.from_dict(layout)
        except LayoutError as error:
            raise Invalid(f"layout: {error}") from error


def _check_limits(within: JsonMap, form: object, where: str) -> None:
    limits = within.get("limits", [])
    if limits != []:
        _check_form(limits, [form], where)
        for one in limits:
            limit_of({key: one[key] for key in LIMIT_KEYS if key in one})


def _check_form(data: object, form: object, where: str = "") -> None:
    """Raise Invalid for the first field that does not have the required form.

    form: a type, or a dict or list of forms
    """
    if isinstance(form, dict):
        if not isinstance(data, dict):
            raise Invalid(f"{where or 'it'} is not an object")
        missing = next((key for key in form if key not in data), None)
        if missing is not None:
            raise Invalid(f"{where}{missing} is missing")
        for key, of in form.items():
            _check_form(data[key], of, f"{where}{key} ")
    elif isinstance(form, list):
        if not isinstance(data, list) or not data:
            raise Invalid(f"{where}is not a list, or is empty")
        for one in data:
            _check_form(one, form[0], where)
    else:
        kinds = form if isinstance(form, tuple) else (form,)
        if not (bool in kinds if isinstance(data, bool) else isinstance(data, kinds)):
            raise Invalid(f"{where}is {brief(repr(data))}")
