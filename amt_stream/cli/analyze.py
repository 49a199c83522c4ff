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
from amt_stream.cli.files import written_whole
from amt_stream.cli.inputs import with_uncertainty
from amt_stream.cli.options import Mistake, WrongUsage, chosen_preset, say
from amt_stream.engine.sources import SourceError
from amt_stream.outputs import FORMATS
from amt_stream.presets import Preset
from amt_stream.rows import JoinedRows, Writer, header, readings_of, uncertainty
from amt_stream.rows.row import Row, seven_digits

if TYPE_CHECKING:
    from amt_stream.analysis import Recording
    from amt_stream.frames import Frames


def run_analyze(args: argparse.Namespace) -> int:
    """Analyze each file; one that cannot be is reported, and the others are done."""
    targets = planned_targets([Path(file) for file in args.files], args)
    preset = chosen_preset(args)
    if preset.view == "modulation":
        raise WrongUsage(
            f"analyze measures loudness, and {preset.name} has none: `amt-stream meter --model "
            f"{preset.name} --source FILE --fast --format csv` writes its rows"
        )
    calibration = UNCALIBRATED if args.full_scale_db is None else Calibration(args.full_scale_db)
    calibration = with_uncertainty(calibration, args)
    preset = preset.with_uncertainty(uncertainty_of([calibration]))
    if not calibration.calibrated and preset.in_pascal:
        say(f"{calibration}: --full-scale-db DB gives the true level")
    _prepare_thread()
    models_for = lru_cache(maxsize=4)(preset.models)
    failed = False
    for file, target in targets:
        try:
            _analyze_file(file, target, args, preset, calibration, models_for)
        except (SourceError, Mistake) as error:
            say(error)
            failed = True
    return 1 if failed else 0


def _prepare_thread() -> None:
    """One core, as frames are too small to share, and no slow arithmetic on tiny numbers."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def planned_targets(files: Sequence[Path], args: argparse.Namespace) -> list[tuple[Path, Any]]:
    """Each file with where its rows go: a path, "-" for standard output, or None for nowhere.

    Raises Mistake before anything is measured where that would overwrite something.
    """
    if args.out == "-" and args.summary:
        raise WrongUsage("--summary and --out - both write to standard output: leave one out")
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
    sources = {file.resolve() for file in files}
    for file, target in zip(files, targets, strict=True):
        if targets.count(target) > 1:
            raise Mistake(f"two of the files would be written to {target}: analyze them apart")
        if target.resolve() in sources:
            raise Mistake(f"{target} is a file to be analyzed: name another one with --out")
        if target.exists() and not (args.force and target.is_file()):
            raise Mistake(f"{target} exists: say --force to overwrite it ({file} was not read)")
    return list(zip(files, targets, strict=True))


def _analyze_file(
    file: Path,
    target: Any,
    args: argparse.Namespace,
    preset: Preset,
    calibration: Calibration,
    models_for: Callable[[int, int], Any],
) -> None:
    from amt_stream.analysis import Recording, analyze

    recording = Recording(file, args.channels, args.replace_invalid, preset.most_channels)
    step_ms = args.step_ms or preset.row_step_ms
    try:
        models = models_for(recording.fs, len(recording.channels))
    except ValueError as error:
        raise Mistake(f"{file}: {error}") from error
    if recording.replaced:
        say(f"{file}: {recording.replaced} invalid samples were read as 0")
    readings = readings_of(models, len(recording.channels), preset.uncertainty_db is not None)
    table = JoinedRows(readings, step_ms)
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if target is not None:
            stream = sys.stdout if target == "-" else stack.enter_context(written_whole(target))
            about = header(preset.model_settings, [calibration], **_about(recording, step_ms))
            writer = FORMATS[args.format](stream, about, table.columns)
        for frames in _with_progress(analyze(recording, models, calibration), recording):
            _write(writer, table, table(frames))
        _write(writer, table, table.rest(recording.duration_s))
    if args.summary:
        summary = {
            "file": str(file),
            "duration_s": round(recording.duration_s, 6),
            **{k: seven_digits(v) for one in readings.values() for k, v in one.summary().items()},
            "calibrated": calibration.calibrated,
            "full_scale_db_spl": calibration.full_scale_db_spl,
            **uncertainty([calibration]),
            **preset.model_settings,
            "replaced_samples": recording.replaced,
        }
        print(json.dumps(summary))
    sys.stdout.flush()


def _write(writer: Writer | None, table: JoinedRows, rows: list[Row]) -> None:
    """Rows without the marks, which are for sound as it arrives."""
    if writer is not None:
        writer.write(row[: len(table.columns)] for row in rows)


def _about(recording: "Recording", step_ms: int) -> dict[str, Any]:
    about = {
        "file": recording.path,
        "fs_hz": recording.fs,
        "channels": " ".join(map(str, recording.channels)),
        "duration_s": f"{recording.duration_s:.6f}",
        "step_ms": step_ms,
    }
    if recording.replaced:
        about["replaced_samples"] = recording.replaced
    return {key: str(value) if isinstance(value, Path) else value for key, value in about.items()}


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
