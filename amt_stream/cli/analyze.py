"""`amt-stream analyze`."""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.calibration import UNCALIBRATED, Calibration
from amt_stream.cli.files import written_whole
from amt_stream.cli.options import Mistake, WrongUsage, chosen_preset, say
from amt_stream.engine.sources import SourceError
from amt_stream.outputs import FORMATS, Writer, header, picked, rows
from amt_stream.presets import Preset

if TYPE_CHECKING:
    from amt_stream.analysis import LoudnessFrames, Recording


def run_analyze(args: argparse.Namespace) -> int:
    """Analyze each file; one that cannot be is reported, and the others are done."""
    targets = planned_targets([Path(file) for file in args.files], args)
    preset = chosen_preset(args)
    if preset.shows != "loudness":
        raise WrongUsage(
            f"analyze measures loudness, and {preset.name} has none: `amt-stream meter --model "
            f"{preset.name} --source FILE --fast --format csv` writes its rows"
        )
    calibration = UNCALIBRATED if args.full_scale_db is None else Calibration(args.full_scale_db)
    if not calibration.calibrated:
        say(f"{calibration}: --full-scale-db DB gives the true level")
    _prepare_thread()
    model_for = lru_cache(maxsize=4)(preset.model)
    failed = False
    for file, target in targets:
        try:
            _analyze_file(file, target, args, preset, calibration, model_for)
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
    model_for: Callable[[int], Any],
) -> None:
    from amt_stream.analysis import Maxima, Recording, analyze

    recording = Recording(file, args.channels, args.replace_invalid)
    try:
        model = model_for(recording.fs)
    except ValueError as error:
        raise Mistake(f"{file}: {error}") from error
    if recording.replaced:
        say(f"{file}: {recording.replaced} invalid samples were read as 0")
    maxima = Maxima()
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if target is not None:
            stream = sys.stdout if target == "-" else stack.enter_context(written_whole(target))
            about = header(preset.model_settings, [calibration], **_about(recording, args.step_ms))
            writer = FORMATS[args.format](stream, about)
        for frames in _with_progress(analyze(recording, model, calibration), recording):
            maxima.add(frames)
            if writer is not None:
                chosen = picked(frames.time_s, args.step_ms)
                time_s, stl, ltl = frames.time_s, frames.stl, frames.ltl
                writer.write(rows(time_s[chosen], stl[chosen], ltl[chosen]))
    if args.summary:
        summary = {
            "file": str(file),
            "duration_s": round(recording.duration_s, 6),
            **maxima.told(),
            "calibrated": calibration.calibrated,
            "full_scale_db_spl": calibration.full_scale_db_spl,
            **preset.model_settings,
            "replaced_samples": recording.replaced,
        }
        print(json.dumps(summary))
    sys.stdout.flush()


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


def _with_progress(
    analysis: Iterator["LoudnessFrames"], recording: "Recording"
) -> Iterator["LoudnessFrames"]:
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
