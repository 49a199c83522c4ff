"""`amt-stream match`: the gains that make sounds equally loud."""

import io
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amt_stream.cli.files import identities, not_to_write, path_kind, write_bytes
from amt_stream.cli.messages import Mistake, WrongUsage, say, text_table
from amt_stream.cli.options import MatchOptions
from amt_stream.core.files import why
from amt_stream.core.safe_text import plain
from amt_stream.engine.sources import FileSource, SourceError
from amt_stream.meters.calibration import UNCALIBRATED

if TYPE_CHECKING:
    from amt_stream.offline.match import Match


def run_match(args: MatchOptions) -> int:
    """Print the gain of each sound, and write the sounds with their gains."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.offline.match import MEASURES, match

    files = [Path(one) for one in args.files]
    if len(files) < 2:
        raise WrongUsage(f"{files[0]} is alone: give the reference, and at least one more file")
    targets = [] if args.out is None else _targets(files, Path(args.out), args.force)
    say_when_compiling()
    of = MEASURES[args.by]
    try:
        found = match(
            files,
            by=args.by,
            calibration=args.full_scale_db,
            field=args.field or "free",
            channels=args.channels,
        )
    except (SourceError, ValueError) as error:
        raise Mistake(error) from error
    if of.in_pascal and not all(one.calibrated for one in found):
        say(f"{UNCALIBRATED}: --full-scale-db DB gives the true level")
    for file, target, one in zip(files, targets, found, strict=False):
        _write(target, file, one.gain_db, args.channels)
    if args.json:
        sounds = [{"file": str(f), **asdict(one)} for f, one in zip(files, found, strict=True)]
        print(json.dumps({"by": args.by, "unit": of.unit, "sounds": sounds}, indent=1))
    else:
        print(plain(f"{of.title} in {of.unit}, by {of.model}"))
        print("\n".join(_lines(files, found)))
    for file, one in zip(files, found, strict=True):
        if one.gain_db and one.peak_dbfs > 0:
            say(
                f"{file}: with its gain it peaks {one.peak_dbfs:.1f} dB above full scale, which "
                "players and integer formats clip: a weaker reference avoids it"
            )
    return 0


def _lines(files: list[Path], found: "list[Match]") -> list[str]:
    heads = "file", "loudness", "gain in dB", "with gain", "peak in dBFS"
    rows = [
        (
            plain(str(file)),
            *(f"{one.before:.2f}", f"{one.gain_db:+.2f}" if place else "reference"),
            *(f"{one.after:.2f}", f"{one.peak_dbfs:.1f}"),
        )
        for place, (file, one) in enumerate(zip(files, found, strict=True))
    ]
    return text_table([heads, *rows], lambda k: k > 0)


def _targets(files: list[Path], folder: Path, force: bool) -> list[Path]:
    """The file for each sound. Raises Mistake if one must not be written."""
    if path_kind(folder) not in ("", "folder"):
        raise Mistake(f"{folder} is a file: --out names a folder")
    targets = [folder / f"{file.stem}.wav" for file in files]
    for target, count in Counter(targets).items():
        if count > 1:
            raise Mistake(f"two of the sounds would be written to {target}: match them separately")
    sounds = identities(files)
    for target in targets:
        if refusal := not_to_write(target, force, sounds):
            raise Mistake(refusal)
    return targets


def _write(target: Path, file: Path, gain_db: float, channels: tuple[int, ...] | None) -> None:
    """Write the chosen channels of a sound with its gain, completely or not at all."""
    import soundfile

    source = FileSource(file, paced=False)
    samples = np.concatenate([*source.blocks()])
    source.stop()
    if channels:
        samples = samples[:, [channel - 1 for channel in channels]]
    content = io.BytesIO()
    louder = samples * np.float32(10 ** (gain_db / 20))
    soundfile.write(content, louder, source.fs, "FLOAT", format="WAV")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {why(error)}") from error
    write_bytes(target, content.getvalue())
