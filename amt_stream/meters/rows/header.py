"""Headers and summaries of rows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.calibration import COVERAGE, Calibration, one_each, rfc3339, utc_now
from amt_stream.meters.rows.each import AnyRows, RowsOfEach
from amt_stream.meters.rows.joined import JoinedRows
from amt_stream.meters.rows.limited import states_of
from amt_stream.meters.rows.readings import RELATIVE, Summary

SCHEMA = 2
"""Version of headers, rows and summaries, as in `dsp/data/rows.schema.json`."""


def header(
    table: AnyRows,
    models: Sequence[JsonMap],
    calibration: Sequence[Calibration],
    source: JsonMap,
    **more: Any,
) -> JsonDict:
    """The header of the rows that `table` makes, as data for JSON.

    models: name and settings of each, such as {"name": "moore2016", "field": "free"}
    calibration: one for all channels, or one for each
    source: `name`, `fs` in hertz, `channels` as a list of numbers counted from 1, `duration_s` or
        None, and further fields
    """
    start = table.start_utc
    return {
        "schema": SCHEMA,
        "program": "amt_stream",
        "version": __version__,
        "models": [dict(model) for model in models],
        "source": dict(source),
        "calibration": calibrations(calibration, source["channels"]),
        "step_ms": table.step_ms,
        "start_utc": None if start is None else np.datetime_as_string(start, "ms", timezone="UTC"),
        "statistics": {n: one.coverage() for n, one in table.readings.items() if one.counts},
        "columns": [column.to_dict() for column in (*table.columns, *states_of(table.limits))],
        **({"limits": [limit.to_dict() for limit in table.limits]} if table.limits else {}),
        **more,
    }


def summary(
    table: AnyRows,
    models: Sequence[JsonMap],
    calibration: Sequence[Calibration],
    source: JsonMap,
    **more: Any,
) -> JsonDict:
    """The summary of the whole sound as data for JSON; arguments are those of `header`.

    Readings are by name, None without a value. For several microphones, they and their durations
    are in `microphones`, by name.
    """
    cut_off = "cut_off" in source.get("sound", ())
    if isinstance(table, RowsOfEach):
        each = {name: _settings_of(one, cut_off) for name, one in table.of.items()}
        settings = {"microphones": each}
    else:
        settings = _settings_of(table, cut_off)
    return {
        "schema": SCHEMA,
        "program": "amt_stream",
        "version": __version__,
        "date": utc_now(),
        **source,
        **more,
        "calibrated": all(one.calibrated for one in calibration) and not _is_relative(table),
        "calibration": calibrations(calibration, source["channels"]),
        "models": [dict(model) for model in models],
        **settings,
    }


def _is_relative(table: AnyRows) -> bool:
    """Whether statistics are of uncalibrated sound, as its calibration never held."""
    each = table.of.values() if isinstance(table, RowsOfEach) else [table]
    return any(one.level == RELATIVE for rows in each for one in rows.readings.values())


def _settings_of(table: JoinedRows, cut_off: bool) -> JsonDict:
    """The statistics of one microphone by name, with the durations they cover."""
    now = table.counted
    counted = now.counted_s()
    statistics = {
        name: one.coverage() | _in_seven_digits(counted[name])
        for name, one in table.readings.items()
        if one.counts
    }
    for name, seconds in now.measured_of().items():
        statistics[name]["measured_of"] = _in_seven_digits(seconds)
    missing_s = now.missing_s(table.fs)
    missing = {f"{cause}_s": seven_digits(s) for cause, s in missing_s.items() if s > 0}
    limits = [replace(one, cut_off=cut_off).to_dict() for one in table.stood()]
    return {
        "statistics": statistics,
        **({"missing": missing} if missing else {}),
        **({"limits": limits} if limits else {}),
        **_in_seven_digits(now.summary()),
    }


def _in_seven_digits(values: Summary) -> JsonDict:
    return {name: seven_digits(value) for name, value in values.items()}


def calibrations(given: Sequence[Calibration], channels: Sequence[int]) -> list[JsonDict]:
    """The calibration of each channel as data; a single one is for all channels."""
    each = one_each(given, len(channels))
    return [
        {
            "channel": channel,
            "full_scale_db_spl": round(one.full_scale_db_spl, 4),
            "calibrated": one.calibrated,
            "uncertainty_db": seven_digits(one.uncertainty_db),
            "uncertainty_k": COVERAGE,
            "calibration_uncertainty_db": one.calibration_uncertainty_db,
            "microphone_uncertainty_db": one.microphone_uncertainty_db,
            "date": one.date,
            "origin": one.source,
            **_until(one),
            **({} if one.input_gain is None else {"input_gain": one.input_gain.to_dict()}),
            **({} if one.correction is None else {"correction": one.correction.to_dict()}),
        }
        for channel, one in zip(channels, each, strict=True)
    ]


def _until(one: Calibration) -> JsonDict:
    """When the next calibration is due, and whether it is overdue, if known."""
    until = one.valid_until
    if until is None:
        return {}
    return {"valid_until": rfc3339(until), "overdue": bool(one.reminder())}


def seven_digits(value: float | None) -> float | None:
    """A reading rounded as it is written; None without a value, such as of silence in dB."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None
