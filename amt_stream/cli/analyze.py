"""`amt-stream analyze`."""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.calibration import UNCALIBRATED, Calibration, uncertainty_of
from amt_stream.cli.files import atomic_text_file
from amt_stream.cli.inputs import with_uncertainty
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options import chosen_preset
from amt_stream.cli.table import Sound, Table
from amt_stream.engine.sources import SourceError
from amt_stream.outputs import FORMATS, Writer
from amt_stream.presets import Preset

if TYPE_CHECKING:
    from amt_stream.analysis import Recording
    from amt_stream.frames import Frames


def run_analyze(args: argparse.Namespace) -> int:
    """Analyze each file; one that cannot be is reported, and the others are done."""
    files = [Path(file) for file in args.files]
    args.format = row_format(args)
    targets = planned_targets(files, args)
    preset = chosen_preset(args)
    calibration = UNCALIBRATED if args.full_scale_db is None else Calibration(args.full_scale_db)
    calibration = with_uncertainty(calibration, args)
    preset = preset.with_uncertainty(uncertainty_of([calibration]))
    if not calibration.calibrated and preset.in_pascal:
        say(f"{calibration}: --full-scale-db DB gives the true level")
    _prepare_thread()
    models_for = lru_cache(maxsize=4)(preset.models)
    failed = False
    summaries = []
    for file, target in targets:
        try:
            summary = _analyze_file(file, target, args, preset, calibration, models_for)
        except (SourceError, Mistake) as error:
            say(error)
            failed = True
            continue
        if args.summary and not told_in_file(args):
            print(json.dumps(summary), flush=True)
        summaries.append(summary)
    if told_in_file(args) and summaries:
        with atomic_text_file(Path(args.out)) as stream:
            json.dump(summaries[0] if len(files) == 1 else summaries, stream, indent=2)
            stream.write("\n")
    return 1 if failed else 0


def told_in_file(args: argparse.Namespace) -> bool:
    """Whether --out names a file for summaries."""
    return args.summary and args.out is not None and Path(args.out).suffix == ".json"


def _prepare_thread() -> None:
    """One core, as frames are too small to share, and no slow arithmetic on tiny numbers."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def row_format(args: argparse.Namespace) -> str:
    """The format of rows: as asked for, else by the ending of --out, else csv.

    Raises WrongUsage where both are given and differ, and for .json, in which no rows are written.
    """
    ending = "" if args.out is None else Path(args.out).suffix.removeprefix(".")
    if ending == "json" and not args.summary:
        raise WrongUsage(
            f"{args.out} ends in .json: rows are written as .csv or .jsonl, and a summary "
            "(--summary) as .json"
        )
    if ending in FORMATS and args.format not in (None, ending):
        raise WrongUsage(f"{args.out} ends in .{ending} and --format is {args.format}: drop one")
    return args.format or (ending if ending in FORMATS else "csv")


def planned_targets(files: Sequence[Path], args: argparse.Namespace) -> list[tuple[Path, Any]]:
    """Each file with where its rows go: a path, "-" for standard output, or None for nowhere.

    Raises Mistake before anything is measured where that would overwrite something.
    """
    if args.out == "-" and args.summary:
        raise WrongUsage("--summary and --out - both write to standard output: leave one out")
    if told_in_file(args):
        refuse_overwriting(Path(args.out), files, args)
        return [(file, None) for file in files]
    if args.out in (None, "-"):
        if len(files) > 1 and not args.summary:
            raise WrongUsage("several files: name a folder with --out, or ask for a --summary")
        return [(file, None if args.summary else "-") for file in files]
    out = Path(args.out)
    if len(files) > 1 and out.exists() and not out.is_dir():
        raise Mistake(f"{out} is a file: for several files --out names a folder")
    if len(files) > 1 or out.is_dir():
        targets = [out / f"{file.stem}.{args.format}" for file in files]
    else:
        targets = [out]
    for file, target in zip(files, targets, strict=True):
        if targets.count(target) > 1:
            raise Mistake(f"two of the files would be written to {target}: analyze them apart")
        refuse_overwriting(target, [*files, file], args)
    return list(zip(files, targets, strict=True))


def refuse_overwriting(target: Path, files: Sequence[Path], args: argparse.Namespace) -> None:
    """Raise Mistake where `target` is one of the sounds, the last of which it is for, or exists."""
    if target.resolve() in {file.resolve() for file in files}:
        raise Mistake(f"{target} is a file to be analyzed: name another one with --out")
    if target.exists() and not (args.force and target.is_file()):
        raise Mistake(f"{target} exists: say --force to overwrite it ({files[-1]} was not read)")


def _analyze_file(
    file: Path,
    target: Any,
    args: argparse.Namespace,
    preset: Preset,
    calibration: Calibration,
    models_for: Callable[[int, int], Any],
) -> dict[str, Any]:
    """Write the rows of a file; gives its summary."""
    from amt_stream.analysis import Recording, analyze

    recording = Recording(file, args.channels, args.replace_invalid, preset.most_channels)
    step_ms = args.step_ms or preset.row_step_ms
    try:
        models = models_for(recording.fs, len(recording.channels))
    except ValueError as error:
        raise Mistake(f"{file}: {error}") from error
    if recording.replaced:
        say(f"{file}: {recording.replaced} invalid samples were read as 0")
    sound = Sound(
        name=str(file),
        fs=recording.fs,
        channels=recording.channels,
        calibration=[calibration],
        duration_s=recording.duration_s,
        more={"replaced_samples": recording.replaced},
    )
    table = Table(args, preset, models, sound, step_ms)
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if target is not None:
            stream = sys.stdout if target == "-" else stack.enter_context(atomic_text_file(target))
            writer = FORMATS[args.format](stream, table.header())
        for frames in _with_progress(analyze(recording, models, calibration), recording):
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


def _with_progress(analysis: Iterator["Frames"], recording: "Recording") -> Iterator["Frames"]:
    """The same frames, with a bar on standard error where somebody sees it."""
    from tqdm import tqdm

    total = round(recording.duration_s, 1)
    look = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f} of {total} s, {remaining} left"
    with tqdm(
        total=total,
        desc=recording.path.name,
        bar_format=look,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:
        for frames in analysis:
            yield frames
            bar.update(min(float(frames.time_s[-1]), total) - bar.n)
