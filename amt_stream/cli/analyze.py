"""`amt-stream analyze`."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.calibration import uncertainty_of
from amt_stream.cli.batch import Levels, Task, tasks_of
from amt_stream.cli.ending import ending
from amt_stream.cli.files import atomic_text_file, kind_of, not_to_write
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options import EACH, chosen_preset
from amt_stream.cli.table import table_of
from amt_stream.engine.sources import SourceError
from amt_stream.measuring import each
from amt_stream.outputs import FORMATS, Writer
from amt_stream.plain import plain
from amt_stream.presets import Preset
from amt_stream.table import Sound

if TYPE_CHECKING:
    from amt_stream.analysis import Recording
    from amt_stream.frames import Frames


def run_analyze(args: argparse.Namespace) -> int:
    """Analyze each file; one that cannot be is reported, and the others are done.

    1 where one of them could not be analyzed, or not all of it was there.
    """
    args.format_typed = args.format is not None
    args.format = row_format(args)
    tasks = planned(tasks_of(args.files, args.channels), args)
    preset = chosen_preset(args)
    levels = Levels(args)
    wanted = [task for task in tasks if not task.refusal]
    if wanted and levels.uncalibrated is not None and preset.in_pascal:
        say(f"{levels.uncalibrated}: --full-scale-db DB gives the true level")
    failed = False
    summaries = []
    results = each(partial(_done_or_why, args, preset, levels), wanted, args.jobs)
    for task in tasks:
        try:
            done = task.refusal or next(results)
        except BrokenProcessPool as error:
            raise Mistake(
                "one of the processes of --jobs was ended from outside: try fewer of them"
            ) from error
        if isinstance(done, str):
            say(done)
            failed = True
            continue
        failed |= "cut_off" in done
        if args.summary and not told_in_file(args):
            print(json.dumps(done), flush=True)
        summaries.append(done)
    if told_in_file(args) and summaries:
        with atomic_text_file(Path(args.out)) as stream:
            json.dump(summaries[0] if len(tasks) == 1 else summaries, stream, indent=2)
            stream.write("\n")
    return 1 if failed else 0


def told_in_file(args: argparse.Namespace) -> bool:
    """Whether --out names a file for summaries."""
    return args.summary and args.out is not None and Path(args.out).suffix == ".json"


def row_format(args: argparse.Namespace) -> str:
    """The format of rows: as asked for, else by the ending of --out, else csv.

    Raises WrongUsage where both are given and differ, and for .json, in which no rows are written.
    """
    if args.out == "":
        raise WrongUsage("--out names nothing: give a file, a folder, or - for standard output")
    ending = "" if args.out is None else Path(args.out).suffix.removeprefix(".")
    if ending == "json" and not args.summary:
        raise WrongUsage(
            f"{args.out} ends in .json: rows are written as .csv or .jsonl, and a summary "
            "(--summary) as .json"
        )
    if ending in FORMATS and args.format not in (None, ending):
        raise WrongUsage(f"{args.out} ends in .{ending} and --format is {args.format}: drop one")
    return args.format or (ending if ending in FORMATS else "csv")


def planned(tasks: Sequence[Task], args: argparse.Namespace) -> list[Task]:
    """The same with where their rows go; refused where that would overwrite something.

    Raises WrongUsage, or Mistake, before anything is measured where none can be written.
    """
    if args.out == "-" and args.summary:
        raise WrongUsage("--summary and --out - both write to standard output: leave one out")
    if told_in_file(args):
        refusal = overwriting(Path(args.out), tasks, args)
        if refusal:
            raise Mistake(f"{refusal} (nothing was read)")
        return list(tasks)
    if args.out in (None, "-"):
        if len(tasks) > 1 and not args.summary:
            raise WrongUsage("several files: name a folder with --out, or ask for a --summary")
        return [replace(task, target=None if args.summary else "-") for task in tasks]
    out = Path(args.out)
    kind = kind_of(out)
    if len(tasks) > 1 and kind not in ("", "folder"):
        raise Mistake(f"{out} is a file: for several files --out names a folder")
    if len(tasks) > 1 or kind == "folder":
        targets = [out / f"{task.file.stem}{_channel(task, args)}.{args.format}" for task in tasks]
    else:
        targets = [out]
    found = []
    for task, target in zip(tasks, targets, strict=True):
        if targets.count(target) > 1:
            raise Mistake(f"two of the files would be written to {target}: analyze them apart")
        refusal = overwriting(target, tasks, args)
        if refusal and not task.refusal:
            task = replace(task, refusal=f"{refusal} ({task.file} was not read)")
        if not refusal and target == out:
            _require_ending(out, args)
        found.append(replace(task, target=target))
    return found


def _require_ending(out: Path, args: argparse.Namespace) -> None:
    """Raise WrongUsage for the ending of another format than that of the rows."""
    if out.suffix.removeprefix(".") not in ("", *FORMATS) and not args.format_typed:
        endings = " or ".join(f".{name}" for name in FORMATS)
        raise WrongUsage(
            f"{out} ends in {out.suffix}: rows are written as {endings} (or say --format)"
        )


def _channel(task: Task, args: argparse.Namespace) -> str:
    """What tells the rows of one channel from those of another, in the name of a file."""
    return f".ch{task.channels[0]}" if args.channels == EACH and task.channels else ""


def overwriting(target: Path, tasks: Sequence[Task], args: argparse.Namespace) -> str:
    """Why `target` must not be written: it is one of the sounds, or it exists; else nothing."""
    sounds = [task.file for task in tasks if not task.refusal]
    return not_to_write(target, args.force, sounds)


def _done_or_why(
    args: argparse.Namespace, preset: Preset, levels: Levels, task: Task
) -> dict[str, Any] | str:
    """The summary of a file that was analyzed, or why it was not."""
    ending.begin()  # in a process of --jobs, which has drafts too
    try:
        return _analyze(args, preset, levels, task)
    except (SourceError, Mistake) as error:
        return str(error)


_models: dict[tuple[str, int, int], Any] = {}
"""Models that were made in this process, for a preset, a sampling rate and a count of channels."""


def _models_for(preset: Preset, fs: int, channels: int) -> Any:
    key = repr(preset), fs, channels
    if key not in _models:
        while len(_models) >= 4:
            del _models[next(iter(_models))]
        _models[key] = preset.models(fs, channels)
    return _models[key]


def _analyze(
    args: argparse.Namespace, preset: Preset, levels: Levels, task: Task
) -> dict[str, Any]:
    """Write the rows of a file; gives its summary."""
    from amt_stream.analysis import Recording, analyze

    file, target = task.file, task.target
    recording = Recording(file, task.channels, args.replace_invalid, preset.most_channels)
    if args.from_s is not None and args.from_s >= recording.duration_s:
        raise Mistake(
            f"{file} ends at {recording.duration_s:g} s, and --from is {args.from_s:g} s: give less"
        )
    calibrations = levels.of(file, recording.channels)
    preset = preset.with_uncertainty(uncertainty_of(calibrations))
    step_ms = args.step_ms or preset.row_step_ms
    try:
        models = _models_for(preset, recording.fs, len(recording.channels))
    except ValueError as error:
        raise Mistake(f"{file}: {error}") from error
    if recording.cut_off:
        say(f"{file} is cut off: {recording.cut_off}; what is there is analyzed")
    if recording.replaced:
        say(f"{file}: {recording.replaced} invalid samples were read as 0")
    table = table_of(args, preset, models, Sound.of_recording(recording, calibrations), step_ms)
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if target is not None:
            stream = sys.stdout if target == "-" else stack.enter_context(atomic_text_file(target))
            writer = FORMATS[args.format](stream, table.header())
        shown = args.jobs == 1
        for frames in _with_progress(analyze(recording, models, calibrations), recording, shown):
            rows = table.rows(frames)
            if writer is not None:
                writer.write(rows)
            if table.rows.reached_s >= table.rows.to_s:
                break
        rows = table.rows.rest(recording.duration_s)
        if writer is not None:
            writer.write(rows)
            writer.finish(table.summary())
    sys.stdout.flush()
    return table.summary()


def _with_progress(
    analysis: Iterator["Frames"], recording: "Recording", shown: bool
) -> Iterator["Frames"]:
    """The same frames, with a bar on standard error where somebody sees it and it is wanted."""
    from tqdm import tqdm

    total = round(recording.duration_s, 1)
    look = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f} of {total} s, {remaining} left"
    with (
        tqdm(
            total=total,
            desc=plain(recording.path.name),
            bar_format=look,
            leave=False,
            disable=not (shown and sys.stderr.isatty()),
        ) as bar,
        ending.undoing(bar.close),
    ):
        for frames in analysis:
            yield frames
            bar.update(min(float(frames.time_s[-1]), total) - bar.n)
