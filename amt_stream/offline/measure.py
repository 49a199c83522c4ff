"""Measuring a whole sound in one call, with readings as arrays."""

import difflib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from amt_stream.core.clock import Moment, date_and_time, interval_s, local_zone, zone_named
from amt_stream.core.importing import uncollected
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.core.words import one_or_each
from amt_stream.dsp.channel_layout import Layout
from amt_stream.dsp.scales import pa_to_db_spl
from amt_stream.engine.inputs.sound_file import calibrations_in
from amt_stream.engine.sources import SourceError
from amt_stream.meters import catalog, rows
from amt_stream.meters.audience import Audience, as_audience
from amt_stream.meters.calibration import (
    UNCALIBRATED,
    Calibration,
    uncertainty_of,
    with_corrections,
)
from amt_stream.meters.catalog import Entry
from amt_stream.meters.correction import Correction, read_correction
from amt_stream.meters.limits import Limit
from amt_stream.meters.needed_models import WantedColumn, asked_by_limits, models_for
from amt_stream.meters.norms import limits_of
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import COMPUTE_DEVICES, RowSettings, settings_of
from amt_stream.meters.table import READINGS_TAKE, Table, is_given
from amt_stream.offline.jobs import each
from amt_stream.offline.measured import Measured
from amt_stream.offline.output_track import OutputTrack

if TYPE_CHECKING:
    import torch

    from amt_stream.offline.analysis import CheckedFile

Level = float | Calibration | Literal["pascal"]
Response = Correction | str | Path
Report = Callable[[float, float], object]

PASCAL = 4096.0
"""Full scale in pascal for sound in pascal: a power of two, so that nothing is rounded."""

IN_PASCAL = Calibration(pa_to_db_spl(PASCAL / math.sqrt(2)), source="samples in pascal")


class MeasureSettings(TypedDict, total=False):
    """Keyword arguments of `measure`; `amt_stream.meters.specification` has all their values.

    Those of `ModelSettings` apply to models that have them, including models of other packages.
    Those of `RowSettings` choose the rows and the part of the sound.

    correction: a `Correction`, or the path of a file with the frequency response of a microphone,
        which is compensated first; or one for each channel, with None for no correction
    outputs: further outputs of models by name, such as "specific_loudness"; like columns, they may
        be a sequence, or names separated by commas
    channels: channels of the sound (1, 2, ...): one, or two as left and right; by default all, or
        of more than two, for models of ears, L and R of a known layout
    layout: positions of the channels, if the sound does not say them: a `Layout`, a name such as
        "5.1", or text such as "L C R Ls Rs LFE"
    keep_offset: whether a constant offset of the samples is sound; otherwise it is removed, unless
        they are in pascal
    replace_invalid: whether to read NaN, infinity and absurdly large samples as 0; None is for
        callers that do not offer it
    audience: how much louder it is in the audience than at the microphone, in dB: "4.2,6" of A and
        C levels, or one number for both; adds columns named `..._audience_db`, and limits of
        levels are of these
    limits: names of norms, such as "who-venues", text such as "laeq_15min_db>100", or `Limit`s; the
        summary has the result of each. Their columns are added, if a model has them
    interval: seconds, or text such as "15min" or "24h": `m.intervals` has the statistics of each
        interval since the start, or of the clock with `began`
    began: time of the first sample, as a datetime or text such as "2026-11-20T22:00:00"; rows then
        have `utc`
    jobs: number of processes, for several files or the parts of a long sound. A script with more
        than one needs the guard `if __name__ == "__main__":`
    """

    field: str | None
    ear_filter: str
    accuracy: str
    constants: str
    combine: str
    compute: str
    step_ms: int | None
    columns: str | Sequence[str] | None
    from_s: float | None
    to_s: float | None
    target_lufs: float | None
    dual_mono: bool
    interval: str | int | None
    zone: str | tzinfo | None
    correction: Response | Sequence[Response | None] | None
    outputs: str | Sequence[str]
    channels: Sequence[int] | None
    layout: Layout | str | None
    keep_offset: bool
    replace_invalid: bool | None
    limits: str | Limit | Iterable[Limit | str]
    audience: Audience | str | float | None
    began: str | datetime | None
    jobs: int


def measure(
    x: "str | Path | np.ndarray | torch.Tensor",
    fs: int | None = None,
    models: str | Sequence[str] | None = None,
    calibration: Level | Sequence[Level] | None = None,
    report: Report = lambda done, whole: None,
    **settings: Unpack[MeasureSettings],
) -> Measured:
    """Measure a whole sound; the numbers are those of `amt-stream analyze`.

    x: an array (time,) or (time, channel), a torch tensor, or the path of a sound file: fractions
        of full scale, or PCM as int16 or int32. One channel goes to both ears
    fs: sampling rate of an array in whole hertz; a file has its own
    models: one name of the catalog, several separated by commas, or a sequence of them; by default
        those that have the columns, limits and outputs, or else moore2016, and for intervals also
        spl
    calibration: level in dB SPL of a full-scale sine, a `Calibration`, "pascal" for an array in
        pascal, or one of these for each channel. Without it, the calibration in the comment of a
        file recorded by amt_stream is used; other sound is uncalibrated
    report: called now and then, with the seconds measured so far and those of the sound
    settings: those of `MeasureSettings`, such as step_ms=100 or field="diffuse"

    Warns if channels have a layout that nobody said, or if models hear only some of them. Raises
    SourceError for invalid sound, and ValueError for settings that models or rows lack.

    >>> m = measure(np.zeros(4800), 48000, calibration=100.0, step_ms=20)
    >>> m["ltl_sone"].max()
    np.float64(0.0)
    """
    wanted = _wanted(models, calibration, settings)
    return _measured(x, fs, wanted, settings.get("jobs", 1), report)


def measure_files(
    paths: Iterable[str | Path],
    models: str | Sequence[str] | None = None,
    calibration: Level | Sequence[Level] | None = None,
    **settings: Unpack[MeasureSettings],
) -> list[Measured | Exception]:
    """Measure several files like `measure`, and return the results in order.

    The result of a file that fails is its exception.
    """
    wanted = _wanted(models, calibration, settings)
    measured = partial(_measured_or_why, wanted=wanted)
    return list(each(measured, list(paths), settings.get("jobs", 1)))


@dataclass(frozen=True)
class _Wanted:
    """The settings for all sounds."""

    preset: Preset
    calibration: Level | Sequence[Level] | None
    rows: RowSettings
    outputs: tuple[str, ...]
    began_utc_s: float
    more: MeasureSettings


def _wanted(
    models: str | Sequence[str] | None,
    calibration: Level | Sequence[Level] | None,
    settings: MeasureSettings,
) -> _Wanted:
    of_models = settings_of(catalog.names())
    known = [*MeasureSettings.__annotations__, *of_models]
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, ["models", "calibration", *known], n=1)
            there = ", ".join(dict.fromkeys(known))
            remedy = f"did you mean {near[0]}?" if near else f"there are {there}"
            raise TypeError(f"measure has no setting {key!r}: {remedy}")
    given: JsonDict = {**settings}
    zone, interval, began = (given.get(name) for name in ("zone", "interval", "began"))
    zone = local_zone() if zone is None else zone_named(zone) if isinstance(zone, str) else zone
    seconds = interval_s(interval) if isinstance(interval, str) else interval
    when = Moment("began", when=began) if isinstance(began, datetime) else None
    if isinstance(began, str):
        when = date_and_time(began)
    of_rows = {one.name: given[one.name] for one in fields(RowSettings) if one.name in given}
    limits = limits_of(settings.get("limits", ()))
    preset = Preset(
        _needed(limits, settings) if models is None else _names("models", models),
        {key: word for key, word in given.items() if key in of_models and word is not None},
        compute=settings.get("compute", COMPUTE_DEVICES[0]),
        limits=limits,
        audience=as_audience(settings.get("audience")),
    )
    if preset.compute_note:
        warnings.warn(preset.compute_note, RuntimeWarning, stacklevel=3)
    return _Wanted(
        preset,
        calibration,
        RowSettings(**{**of_rows, "interval": seconds, "zone": zone}),
        _names("outputs", settings.get("outputs", ())),
        math.nan if when is None else when.time_s(0.0, zone),
        settings,
    )


def _needed(limits: Sequence[Limit], settings: MeasureSettings) -> tuple[str, ...]:
    """The models that have what the settings ask for. Raises ValueError for an unknown column."""
    columns = _names("columns", settings.get("columns") or ())
    asked = [*asked_by_limits(limits), *(WantedColumn(name.strip(), "columns") for name in columns)]
    takes = (*READINGS_TAKE, "audience")
    options = {name: name for name in takes if is_given(settings.get(name))}
    levels = [] if settings.get("interval") is None else ["interval"]
    outputs = dict.fromkeys(_names("outputs", settings.get("outputs", ())), "outputs")
    return tuple(models_for(asked, levels, options, outputs))


def _names(what: str, given: object) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    if not (isinstance(names, Sequence) and all(isinstance(name, str) for name in names)):
        raise TypeError(f"{what} is {brief(repr(given))}: give a name, or several in a list")
    return tuple(name.strip() for name in names)


def _measured_or_why(path: str | Path, wanted: _Wanted) -> Measured | Exception:
    try:
        return _measured(path, None, wanted)
    except (SourceError, OSError, ValueError) as error:
        return error


def _measured(
    x: Any,
    fs: int | None,
    wanted: _Wanted,
    jobs: int = 1,
    report: Report = lambda done, whole: None,
) -> Measured:
    with uncollected():
        from amt_stream.offline.analysis import Analysis
        from amt_stream.offline.by_jobs import analyze_in_jobs

    recording, calibrations = _recording(x, fs, wanted)
    preset = replace(wanted.preset, uncertainty_db=uncertainty_of(calibrations))
    asked = {name: _entry_of(name, preset) for name in wanted.outputs}
    outputs = {name: entry.outputs[name] for name, entry in asked.items()}
    takes = {one.takes: True for one in outputs.values() if one.takes is not None}
    recording.warn_of_channels(stacklevel=4)
    models = preset.models(recording.fs, recording.heard.layouts(preset.names), **takes)
    sound = recording.sound(calibrations, wanted.began_utc_s)
    table = Table(preset, models, sound, wanted.rows)
    joined = table.rows
    if joined.from_s >= recording.duration_s:
        raise ValueError(
            f"{recording.name} ends at {recording.duration_s:g} s, and from_s is "
            f"{joined.from_s:g}: give less"
        )
    tracks = {
        name: OutputTrack(entry.name, outputs[name], models[entry.name], joined.from_s)
        for name, entry in asked.items()
    }
    parts: list[rows.Rows] = []
    given = recording, models, calibrations, wanted.began_utc_s, preset, takes, joined.to_s
    for frames in analyze_in_jobs(Analysis(*given), jobs):
        for track in tracks.values():
            track.add(frames)
        more = joined(frames)
        for track in tracks.values():
            track.until(more["time_s"])
        _append(parts, more)
        report(min(frames.end_s, recording.duration_s), recording.duration_s)
        if joined.covered:
            break
    parts.append(joined.rest(recording.duration_s))
    for track in tracks.values():
        track.until(parts[-1]["time_s"])
    return Measured(
        rows.Rows.concatenated(parts, joined.names),
        table.header(),
        table.summary(),
        {name: np.concatenate(track.picked) for name, track in tracks.items()},
        {name: track.axes for name, track in tracks.items()},
        {name: one.unit for name, one in outputs.items()},
        None if wanted.rows.interval is None else joined.intervals_ended(recording.duration_s),
    )


def _append(parts: list[rows.Rows], more: rows.Rows) -> None:
    """Append rows, and join small parts: n become log n.

    A part has some kilobytes beside its numbers: of a sound of hours, a gigabyte.
    """
    parts.append(more)
    while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
        parts[-2:] = [rows.Rows.concatenated(parts[-2:], more.columns)]


def _recording(
    x: object, fs: int | None, wanted: _Wanted
) -> "tuple[CheckedFile, list[Calibration]]":
    """The checked sound, and one calibration for all channels or one for each."""
    from amt_stream.offline.analysis import ArrayRecording, CheckedFile

    if isinstance(x, (list, tuple)) and any(isinstance(one, (str, os.PathLike)) for one in x):
        raise TypeError(f"x is a {type(x).__name__} of paths: measure_files takes several files")
    given = wanted.calibration
    each_level = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    calibrations = [_calibration(level) for level in each_level]
    corrections = _corrections(wanted.more.get("correction"))
    invalid = wanted.more.get("replace_invalid", False)
    models, layout = wanted.preset.most_channels, wanted.more.get("layout")
    keep = wanted.more.get("keep_offset", False)
    chosen = wanted.more.get("channels"), invalid, models, layout
    if isinstance(x, (str, os.PathLike)):
        if fs is not None:
            raise ValueError(f"fs is {fs}: a file has its own sampling rate, leave it out")
        if IN_PASCAL in calibrations:
            raise ValueError(
                "a file holds fractions of full scale: give its calibration as a number"
            )
        recording = CheckedFile(Path(x), *chosen, keep)
        if given is None and (stored := calibrations_in(recording.path)):
            calibrations = [stored.get(channel, UNCALIBRATED) for channel in recording.channels]
    elif fs is None:
        raise ValueError(
            f"fs is missing: give the sampling rate of the {type(x).__name__} in hertz, or instead "
            "of it the path of a file, or a list of paths"
        )
    else:
        sound, in_pascal = _in_full_scale(x, calibrations, wanted.preset), IN_PASCAL in calibrations
        recording = ArrayRecording(sound, fs, *chosen, keep or in_pascal)
    channels = len(recording.channels)
    if len(calibrations) not in (1, channels):
        raise ValueError(one_or_each(len(calibrations), "calibration", channels))
    if any(corrections):
        calibrations = with_corrections(calibrations, corrections)
        if len(calibrations) not in (1, channels):
            raise ValueError(one_or_each(len(corrections), "correction", channels))
    return recording, calibrations


def _corrections(given: Response | Sequence[Response | None] | None) -> list[Correction | None]:
    several = isinstance(given, Sequence) and not isinstance(given, str)
    each: Any = given if several else [given]
    for one in each:
        if not isinstance(one, Correction | str | Path | None):
            raise TypeError(
                f"correction is {brief(repr(one))}: give a Correction, the path of a file with the "
                "microphone's response, or one of these for each channel"
            )
    return [read_correction(one) if isinstance(one, str | Path) else one for one in each]


def _calibration(level: Level | None) -> Calibration:
    if level is None:
        return UNCALIBRATED
    if isinstance(level, Calibration):
        return level
    if isinstance(level, str):
        if level != "pascal":
            raise ValueError(f'calibration is {level!r}: give a number of dB SPL, or "pascal"')
        return IN_PASCAL
    return Calibration(level)


def _in_full_scale(x: object, calibrations: Sequence[Calibration], preset: Preset) -> Any:
    """An array as fractions of full scale."""
    from amt_stream.offline.analysis import as_array

    if IN_PASCAL not in calibrations:
        return x
    if any(one != IN_PASCAL for one in calibrations):
        raise ValueError('calibration is "pascal" for some channels only: give it for all or none')
    full_scale = [entry.name for entry in preset.entries if entry.input_unit == "full scale"]
    if full_scale:
        raise ValueError(
            f"{', '.join(full_scale)} takes fractions of full scale, and calibration is "
            '"pascal": give the array in full scale, and its level in dB SPL'
        )
    array = as_array(x)
    if array.dtype.kind != "f":
        raise ValueError(f"an array of {array.dtype} is not in pascal: give floating-point numbers")
    return array / array.dtype.type(PASCAL)


def _entry_of(output: str, preset: Preset) -> Entry:
    """The model that has the output of this name."""
    for entry in preset.entries:
        if output in entry.outputs:
            return entry
    offered = ", ".join(name for entry in preset.entries for name in entry.outputs) or "none"
    raise ValueError(f"no output of {preset.where} is called {output!r}: there are {offered}")
