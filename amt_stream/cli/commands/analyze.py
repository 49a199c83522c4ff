"""`amt-stream analyze`."""

import contextlib
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.cli.ending import ending
from amt_stream.cli.files import atomic_text_file
from amt_stream.cli.limits import report_limits, require_limits
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.sounds.batch import BatchCalibration, Task, tasks_of
from amt_stream.cli.sounds.piped import pipes_as_files
from amt_stream.cli.sounds.progress import Progress
from amt_stream.cli.sounds.resuming import name_in_manifest, part_settings, split_done
from amt_stream.cli.sounds.summaries import (
    refuse_none_chosen,
    sheets_of,
    statistics_in,
    with_chosen,
    write_table,
)
from amt_stream.cli.sounds.targets import planned, row_format, summary_file
from amt_stream.cli.table import refuse_not_csv, table_of, writer_of
from amt_stream.core.formats import header_path
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.core.values import EACH
from amt_stream.core.words import counted
from amt_stream.core.workbooks import XLSX, write_workbook
from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.sources import SourceError
from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration, uncertainty_of
from amt_stream.meters.frames import impulse_event
from amt_stream.meters.needed_models import refuse_no_impulses
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import Rows, header_of_intervals
from amt_stream.meters.rows.models.rating import RatingReadings
from amt_stream.meters.table import Table
from amt_stream.offline.jobs import WorkerLost, as_done
from amt_stream.sessions.manifest import Manifest, ManifestError
from amt_stream.sessions.outputs import LiveWriter

if TYPE_CHECKING:
    from amt_stream.offline.analysis import CheckedFile


@dataclass(frozen=True)
class Outcome:
    """The result of one sound: its summary or the reason for failure, and notes for the user."""

    summary: JsonMap | None = None
    refusal: str = ""
    notes: tuple[str, ...] = ()


def run_analyze(args: AnalyzeOptions) -> int:
    """Analyze each file; report those that fail and continue with the others.

    Returns 1 if a file failed or is cut off, and 4 if a limit was exceeded, with --fail-above.
    """
    args = replace(args, format_typed=args.format is not None, format=row_format(args))
    summary_path = summary_file(args)
    rows_are_written = not args.summary or (args.out is not None and summary_path is None)
    in_table = args.summary and args.out is None and args.format_typed and args.format == "csv"
    refuse_not_csv(args, args.format if rows_are_written else None, in_table)
    if in_table and args.interval is not None:
        raise WrongUsage(
            "--summary --format csv is a table of whole sounds, which has no place for those of "
            f"--interval: leave --summary out, or write both with --out TABLE{XLSX} or TABLE.json"
        )
    if args.local_time and args.began is None:
        raise WrongUsage(
            "--local-time needs the time when the recording began: add --began, such as "
            "2026-11-20T22:00:00"
        )
    if args.background is not None:
        if args.model not in (None, ("partial",)) or args.preset or args.channels:
            raise WrongUsage(
                "--background is for the model partial, and for all channels of both files: leave "
                "out --model, --preset and --channels"
            )
        args = replace(args, model=("partial",))
    with pipes_as_files(args.files) as piped:
        files = [piped.get(name, name) for name in args.files]
        return _analyze_each(args, files, {*map(Path, piped.values())}, summary_path, in_table)


def _analyze_each(
    args: AnalyzeOptions,
    files: Sequence[str],
    piped: Collection[Path],
    summary_path: Path | None,
    in_table: bool,
) -> int:
    """Analyze the named files, of which `piped` are copies, and return the status."""
    levels = BatchCalibration(args)
    tasks = tasks_of(files, args.channels, levels.calibrators)
    tasks = [replace(task, piped=task.file in piped) for task in tasks]
    tasks, folder = planned(tasks, args)
    preset = chosen_preset(args)
    _refuse_without_impulses(args, preset, len(tasks))
    require_limits(args, preset)
    tasks = [_with_levels(task, levels, args.background) for task in tasks]
    if levels.uncalibrated is not None and preset.in_pascal:
        _report_calibrations(tasks, levels.uncalibrated)
    if preset.compute_note:
        say(preset.compute_note)
    failed = cut_off = False
    # Where rows are written too, --columns chooses theirs.
    alone = args.summary and (args.out is None or summary_path is not None)
    only = args.columns if alone else None
    names: dict[str, None] = {}
    summaries: list[Mapping[str, object]] = []
    limits: list[tuple[str, Mapping[str, object]]] = []
    for outcome in _outcomes(args, preset, tasks, folder):
        for note in outcome.notes:
            say(note)
        if outcome.summary is None:
            say(outcome.refusal)
            failed = True
            continue
        cut_off |= "cut_off" in outcome.summary["sound"]
        name = _sound_name(args, outcome.summary)
        limits += [(name, one) for one in outcome.summary.get("limits", ())]
        names |= dict.fromkeys(statistics_in(outcome.summary))
        summary = outcome.summary if only is None else with_chosen(outcome.summary, only)
        if summary_path is not None or in_table:
            summaries.append(summary)
        elif args.summary:
            print(json.dumps(summary), flush=True)
    if only is not None and names:
        refuse_none_chosen([*names], only)
    if in_table:
        write_table(summaries, sys.stdout, args.dialect)
    elif summaries and summary_path is not None:
        with atomic_text_file(summary_path) as stream:
            if summary_path.suffix == XLSX:
                write_workbook(stream.buffer, sheets_of(summaries))
            else:
                json.dump(summaries[0] if len(tasks) == 1 else summaries, stream, indent=2)
                stream.write("\n")
    return report_limits(1 if failed else 0, limits, args, cut_off)


def _refuse_without_impulses(args: AnalyzeOptions, preset: Preset, sounds: int) -> None:
    """Raise Mistake if impulses are to be left out where there are none, or of several sounds."""
    if not args.without_impulses:
        return
    refuse_no_impulses(preset, "--without-impulses")
    if sounds > 1:
        raise Mistake(
            f"--without-impulses is for one sound, and these are {sounds}: give one file, and its "
            "channels together"
        )


def _sound_name(args: AnalyzeOptions, summary: JsonMap) -> str:
    channel = f", channel {summary['channels'][0]}" if args.channels == EACH else ""
    return f"{summary['name']}{channel}"


def _report_calibrations(tasks: Sequence[Task], uncalibrated: Calibration) -> None:
    """Without calibration options: say which files have a calibration in their comment."""
    found = [task for task in tasks if task.levels is not None]
    known = [task for task in found if task.levels is not None and task.levels.calibrated]
    if len(known) == 1:
        say(f"{known[0].file} is calibrated by its comment")
    elif known:
        say(f"{known[0].file} and {len(known) - 1} more are calibrated by their comments")
    if len(known) < len(found):
        say(f"{uncalibrated}: --full-scale-db DB gives the true level")


def _with_levels(task: Task, levels: BatchCalibration, background: str | None) -> Task:
    if task.refusal:
        return task
    try:
        other = None if background is None else levels.of(Path(background))
        return replace(task, levels=levels.of(task.file), background_levels=other)
    except Mistake as error:
        return replace(task, refusal=str(error))


def _outcomes(
    args: AnalyzeOptions, preset: Preset, tasks: Sequence[Task], folder: Path | None
) -> Iterator[Outcome]:
    """Yield the outcome of each task in order, without repeating what the manifest has as done.

    Raises Mistake if the manifest cannot be read or written.
    """
    waiting: dict[int, Outcome] = {}
    following = 0
    for place, outcome in _unordered_outcomes(args, preset, tasks, folder):
        waiting[place] = outcome
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _unordered_outcomes(
    args: AnalyzeOptions, preset: Preset, tasks: Sequence[Task], folder: Path | None
) -> Iterator[tuple[int, Outcome]]:
    settings = part_settings(args, preset)
    with contextlib.ExitStack() as stack:
        manifest: Manifest | None = None
        done: dict[int, Mapping[str, object]] = {}
        try:
            if folder is not None:
                manifest = stack.enter_context(Manifest(folder))
                tasks, done = split_done(tasks, manifest, settings, args)
            for place, task in enumerate(tasks):
                if task.refusal or place in done:
                    yield place, Outcome(done.get(place), task.refusal)
            places = [k for k, task in enumerate(tasks) if k not in done and not task.refusal]
            if not places:
                return
            if manifest is not None:
                sounds = {
                    name_in_manifest(tasks[k], manifest.folder): tasks[k].sound for k in places
                }
                manifest.begin(settings, sounds)
            for at, outcome in _measured(args, preset, [tasks[k] for k in places]):
                if manifest is not None:
                    _record(manifest, tasks[places[at]], outcome)
                yield places[at], outcome
        except ManifestError as error:
            raise Mistake(str(error)) from error


def _measured(
    args: AnalyzeOptions, preset: Preset, tasks: Sequence[Task]
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome of each task as soon as it is done, and show the progress."""
    # Each worker gets a copy of the options: without the names of all other files.
    alone = replace(args, files=[])
    sizes = [task.sound["bytes"] for task in tasks]
    with Progress([task.file.name for task in tasks], sizes, args.progress_s) as progress:
        done = 0

        def report(part: float) -> None:
            progress.update(done, part)

        here = min(args.jobs, len(tasks)) == 1
        function = partial(_outcome, alone, preset, report if here else None)
        for place, outcome in as_done(function, tasks, args.jobs):
            done += 1
            progress.done(place)
            if isinstance(outcome, WorkerLost):
                outcome = Outcome(refusal=f"{tasks[place].file}: {outcome}")
            yield place, outcome


def _record(manifest: Manifest, task: Task, outcome: Outcome) -> None:
    part = name_in_manifest(task, manifest.folder)
    if outcome.summary is None:
        manifest.failed(part, outcome.refusal)
    else:
        manifest.done(part, outcome.summary)


Report = Callable[[float], None]


def _outcome(args: AnalyzeOptions, preset: Preset, report: Report | None, task: Task) -> Outcome:
    """Analyze a sound; `report` is called with the share that is done, 0 to 1."""
    ending.begin()  # worker processes have temporary files to remove too
    notes: list[str] = []
    try:
        jobs = 1 if report is None else args.jobs
        summary = _analyze(args, preset, task, report or (lambda part: None), notes.append, jobs)
    except (SourceError, Mistake) as error:
        # What came through a pipe is in a temporary file, of which nobody has heard.
        shown = str(error).replace(str(task.file), task.file.name) if task.piped else str(error)
        return Outcome(None, shown, tuple(notes))
    return Outcome(summary, "", tuple(notes))


_models: dict[tuple[str, int, str], Any] = {}
"""Models made in this process, by preset, sampling rate and layouts."""


def _models_for(preset: Preset, fs: int, layouts: Mapping[str, Layout]) -> Any:
    from amt_stream.cli.compiling import say_when_compiling  # imports numba, which is slow

    say_when_compiling()
    key = repr(preset), fs, repr(layouts)
    if key not in _models:
        while len(_models) >= 4:
            del _models[next(iter(_models))]
        _models[key] = preset.models(fs, layouts)
    return _models[key]


def _in_background(
    args: AnalyzeOptions,
    preset: Preset,
    task: Task,
    target: "CheckedFile",
    note: Callable[[str], None],
) -> "tuple[CheckedFile, list[Calibration], JsonDict]":
    """The target with its background: its sound, their calibration, what the model takes."""
    from amt_stream.offline.analysis import CheckedFile
    from amt_stream.offline.background import (
        TargetInBackground,
        clipped_words,
        refuse_unlike,
        steady_background,
    )

    assert args.background is not None
    assert task.levels is not None
    assert task.background_levels is not None
    path = Path(args.background)
    how = args.replace_invalid, preset.most_channels, None, args.keep_offset
    background = CheckedFile(path, None, *how)
    refuse_unlike(target, background)
    calibrations, others = (
        levels.of(file, target.channels)
        for levels, file in ((task.levels, task.file), (task.background_levels, path))
    )
    if [one.full_scale_db_spl for one in calibrations] != [one.full_scale_db_spl for one in others]:
        raise Mistake(
            f"{task.file} is calibrated as {calibrations[0].full_scale_db_spl:g} dB SPL at full "
            f"scale and {path} as {others[0].full_scale_db_spl:g}: give two recordings of one "
            "calibration"
        )
    if words := clipped_words(background):
        note(words)
    if background.samples >= target.samples:
        calibrations = calibrations if len(calibrations) == 1 else calibrations * 2
        return TargetInBackground(task.file, path, *how), calibrations, {}
    note(
        f"{path} is shorter than {task.file}: it counts as steady, by its mean, which is right "
        "only if it is"
    )
    return (
        target,
        calibrations,
        {"background": steady_background(background, others, preset.settings)},
    )


def _analyze(
    args: AnalyzeOptions,
    preset: Preset,
    task: Task,
    report: Report,
    note: Callable[[str], None],
    jobs: int,
) -> JsonDict:
    """Write the rows of a file, with `jobs` processes, and return its summary."""
    from amt_stream.engine.microphone.offset import offset_words
    from amt_stream.offline.analysis import Analysis, CheckedFile
    from amt_stream.offline.by_jobs import analyze_in_jobs

    file, target = task.file, task.target
    layout = args.layout or preset.layout
    how = args.replace_invalid, preset.most_channels, layout, args.keep_offset
    recording = CheckedFile(file, task.channels, *how)
    assert task.levels is not None
    calibrations = task.levels.of(file, recording.channels)
    takes: JsonDict = {}
    if args.background is not None:
        recording, calibrations, takes = _in_background(args, preset, task, recording, note)
    if task.piped:
        recording.name = file.name
    for one in recording.heard.notes:
        note(one)
    if args.from_s is not None and args.from_s >= recording.duration_s:
        raise Mistake(
            f"{file} ends at {recording.duration_s:g} s, and --from is {args.from_s:g} s: give less"
        )
    preset = replace(preset, uncertainty_db=uncertainty_of(calibrations))
    began = math.nan if args.began is None else args.began.time_s(0.0, args.zone)
    try:
        layouts = recording.heard.layouts(preset.names)
        if takes:
            models = preset.models(recording.fs, layouts, **takes)
        else:
            models = _models_for(preset, recording.fs, layouts)
    except ValueError as error:
        raise Mistake(f"{file}: {error}") from error
    if recording.cut_off:
        there = "only the sound up to there is analyzed"
        note(f"{recording.name} is cut off: {recording.cut_off}; {there}")
    elif recording.description.length_words:
        note(f"{recording.name}: {recording.description.length_words}")
    if words := offset_words(recording.description.offset):
        note(f"{recording.name} has an offset of {words}, which is removed")
    if recording.replaced:
        note(f"{file}: {counted(recording.replaced, 'invalid sample')} replaced by 0")
    sound = recording.sound(calibrations, began)
    table = table_of(args, preset, models, sound, intervals=True)
    in_intervals = table.rows.intervals is not None
    header = header_of_intervals(table.header()) if in_intervals else table.header()
    intervals: list[Rows] = []
    for time_s in args.without_impulses:
        table.event(impulse_event(False, time_s))
    with contextlib.ExitStack() as stack:
        writer: LiveWriter | None = None
        if target is not None:
            stream = sys.stdout if target == "-" else stack.enter_context(atomic_text_file(target))
            beside = sys.stderr
            if args.no_header and target != "-":
                beside = stack.enter_context(atomic_text_file(header_path(target)))
            writer = writer_of(args, stream, header, beside)
        given = recording, models, calibrations, began, preset, takes, table.rows.to_s
        for frames in analyze_in_jobs(Analysis(*given), jobs):
            rows = table.rows(frames)
            if in_intervals:
                rows = table.rows.intervals_ended()
                intervals.append(rows)
            if writer is not None:
                writer.write(rows)
            report(min(1.0, frames.end_s / recording.duration_s))
            if table.rows.covered:
                break
        rows = table.rows.rest(recording.duration_s)
        if in_intervals:
            rows = table.rows.intervals_ended(recording.duration_s)
            intervals.append(rows)
        summary = table.summary()
        _refuse_no_impulse(file, table)
        if writer is not None:
            writer.write(rows)
            writer.finish(summary)
    sys.stdout.flush()
    clipped_s = max((one["clipped_s"] or 0.0 for one in summary["statistics"].values()), default=0)
    if clipped_s:
        at_least = ": its levels and loudness are at least what they say"
        words = at_least if catalog.any_in_pascal(one.name for one in preset.entries) else ""
        if args.background is not None:
            words = ", or its background is: how loud and audible it is in it is uncertain"
        note(f"{recording.name} is clipped for {clipped_s:.3g} s{words}")
    if in_intervals and target is None:
        summary["intervals"] = [row for part in intervals for row in part]
    return summary


def _refuse_no_impulse(file: Path, table: Table) -> None:
    """Raise Mistake if no impulse began at a time of --without-impulses."""
    rated = [one for one in table.rows.readings.values() if isinstance(one, RatingReadings)]
    missing = sorted({time_s for one in rated for time_s in one.missing_impulses})
    if missing:
        began = [f"{one.time_s:.2f}" for readings in rated for one in readings.impulses]
        there = f"impulses began at {brief(', '.join(began))} s" if began else "there is none"
        raise Mistake(
            f"{file}: no impulse began at {missing[0]:g} s, as --without-impulses has it: {there}"
        )
