"""`amt-stream match`: the gains that make sounds equally loud."""

import io
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amt_stream.cli.files import identities, not_to_write, refuse_no_folder, write_bytes
from amt_stream.cli.messages import Mistake, WrongUsage, say, text_table, warnings_said
from amt_stream.cli.options.sounds import MatchOptions
from amt_stream.core.files import why
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import plain
from amt_stream.dsp.channel_layout import wave_mask
from amt_stream.engine.microphone.channels import channel_numbers, layout_said
from amt_stream.engine.sources import FileSource, SourceError
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.rows import NO_READING

if TYPE_CHECKING:
    from amt_stream.offline.match import Match


MASK_AT = 28
"""Where a WAVEFORMATEXTENSIBLE has its channel mask, from the begin of its chunk."""


def run_match(args: MatchOptions) -> int:
    """Print the gain of each sound, and write the sounds with their gains."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.offline.match import MEASURES, match_each

    files = [Path(one) for one in args.files]
    if len(files) < 2:
        raise WrongUsage(f"{files[0]} is alone: give the reference, and at least one more file")
    if args.field is not None and not MEASURES[args.by].has_field:
        fielded = ", ".join(name for name, one in MEASURES.items() if one.has_field)
        raise WrongUsage(
            f"--field is for {fielded}: {args.by} takes the sound as it is; leave it out"
        )
    targets = [] if args.out is None else _targets(files, Path(args.out), args.force)
    say_when_compiling()
    try:
        with warnings_said():
            results = list(
                match_each(
                    files,
                    by=args.by,
                    calibration=args.full_scale_db,
                    field=args.field or "free",
                    channels=args.channels,
                    layout=args.layout,
                )
            )
    except (SourceError, ValueError) as error:
        raise Mistake(error) from error
    pairs = list(zip(files, results, strict=True))
    matched = [(file, one) for file, one in pairs if not isinstance(one, Exception)]
    failed = [one for one in results if isinstance(one, Exception)]
    if len(matched) > 1:
        _report(args, pairs, matched, targets)
    for why_not in failed:
        say(why_not)
    return 1 if failed or any(one.cut_off for _, one in matched) else 0


def _report(
    args: MatchOptions,
    pairs: "list[tuple[Path, Match | Exception]]",
    matched: "list[tuple[Path, Match]]",
    targets: list[Path],
) -> None:
    """Print the gains, and write the sounds that have one."""
    from amt_stream.offline.match import MEASURES

    of = MEASURES[args.by]
    if of.in_pascal and not all(one.calibrated for _, one in matched):
        say(f"{UNCALIBRATED}: --full-scale-db DB gives the true level")
    for (file, one), target in zip(pairs, targets, strict=False):
        if not isinstance(one, Exception):
            _write(target, file, one.gain_db, args)
    if args.json:
        sounds = [{"file": str(file), **_as_data(one)} for file, one in pairs]
        print(json.dumps({"by": args.by, "unit": of.unit, "sounds": sounds}, indent=1))
    else:
        print(plain(f"{of.title} in {of.unit}, by {of.model}"))
        print("\n".join(_lines(pairs)))
    for file, one in matched:
        if one.gain_db and one.peak_dbfs > 0:
            say(
                f"{file}: with its gain it peaks {one.peak_dbfs:.1f} dB above full scale, which "
                "players and integer formats clip: a weaker reference avoids it"
            )


def _as_data(one: "Match | Exception") -> JsonDict:
    return {"error": str(one)} if isinstance(one, Exception) else asdict(one)


def _lines(pairs: "list[tuple[Path, Match | Exception]]") -> list[str]:
    heads = "file", "loudness", "gain in dB", "with gain", "peak in dBFS", ""
    rows = [heads]
    for place, (file, one) in enumerate(pairs):
        cells = *(NO_READING,) * 4, ""
        if not isinstance(one, Exception):
            gain = f"{one.gain_db:+.2f}" if place else "reference"
            numbers = f"{one.before:.2f}", gain, f"{one.after:.2f}", f"{one.peak_dbfs:.1f}"
            cells = *numbers, plain(one.remark)
        rows.append((plain(str(file)), *cells))
    return text_table(rows, lambda k: 0 < k < 5)


def _targets(files: list[Path], folder: Path, force: bool) -> list[Path]:
    """The file for each sound. Raises Mistake if one must not be written."""
    refuse_no_folder(folder, "--out names")
    targets = [folder / f"{file.stem}.wav" for file in files]
    for target, count in Counter(targets).items():
        if count > 1:
            raise Mistake(f"two of the sounds would be written to {target}: match them separately")
    sounds = identities(files)
    for target in targets:
        if refusal := not_to_write(target, force, sounds):
            raise Mistake(refusal)
    return targets


def _write(target: Path, file: Path, gain_db: float, args: MatchOptions) -> None:
    """Write the chosen channels of a sound with its gain, completely or not at all.

    More than two are in the order of WAVE files, with a mask that says what they are for.
    """
    import soundfile

    source = FileSource(file, paced=False)
    samples = np.concatenate([*source.blocks()])
    source.stop()
    numbers = channel_numbers(args.channels, source.channels, str(file))
    told = source.description.layout
    layout = layout_said(told, args.layout, args.channels, str(file)).of(numbers)
    mask = None
    if layout.said and layout.channels > 2:
        if (known := wave_mask(layout)) is None:
            say(f"{target} cannot say that its channels are {layout}: --layout says it")
        else:
            mask, order = known
            numbers = [numbers[number - 1] for number in order]
    content = io.BytesIO()
    louder = samples[:, [number - 1 for number in numbers]] * np.float32(10 ** (gain_db / 20))
    soundfile.write(content, louder, source.fs, "FLOAT", format="WAV" if mask is None else "WAVEX")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {why(error)}") from error
    data = bytearray(content.getvalue())
    if mask is not None:
        at = data.index(b"fmt ") + MASK_AT
        data[at : at + 4] = mask.to_bytes(4, "little")
    write_bytes(target, bytes(data))
