"""Which sounds a command is to analyze, how loud their full scale is, and where each is written."""

import argparse
import csv
import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amt_stream.calibration import UNCALIBRATED, Calibration, Record, utc_now
from amt_stream.calibrator import CalibratorCheck, Refused
from amt_stream.cli.files import kind_of
from amt_stream.cli.inputs import with_uncertainty
from amt_stream.cli.messages import Mistake, WrongUsage
from amt_stream.cli.options import EACH
from amt_stream.engine.sources import FileSource, SourceError
from amt_stream.files import NotThatFile, small_text
from amt_stream.plain import brief

MORE_ENDINGS = {".aif", ".aifc", ".oga", ".opus"}
"""Of sound files, besides the names of libsndfile's formats."""

TABLE_COLUMNS = ("file", "channel", "full_scale_db")


@dataclass(frozen=True)
class Task:
    """A sound to analyze: its file and channels, and where its rows go.

    target: a path, "-" for standard output, or None for nowhere
    refusal: why it is not to be done after all, in a sentence
    """

    file: Path
    channels: tuple[int, ...] | None
    target: Path | Literal["-"] | None = None
    refusal: str = ""


def tasks_of(given: Sequence[str], channels: tuple[int, ...] | str | None) -> list[Task]:
    """A task for each file that was named, or with EACH for each of its channels.

    Of a folder it is its sound files, of a pattern what matches it. What there is not is refused.
    """
    tasks = [task for text in given for task in _named(text)]
    tasks = list({task.file: task for task in tasks}.values())
    if channels == EACH:
        return [task for each in tasks for task in _by_channel(each)]
    assert not isinstance(channels, str)
    return [replace(task, channels=channels) for task in tasks]


def _named(text: str) -> list[Task]:
    import soundfile

    path = Path(text)
    try:
        kind = kind_of(path)
    except Mistake as refusal:
        return [Task(path, None, refusal=str(refusal))]
    if kind == "folder":
        endings = {f".{name.lower()}" for name in soundfile.available_formats()} | MORE_ENDINGS
        try:
            inside = [p for p in sorted(path.iterdir()) if p.suffix.lower() in endings]
        except OSError as error:
            return [Task(path, None, refusal=f"{path} cannot be read: {error.strerror}")]
        nothing = f"{path} is a folder without sound files"
    elif not kind and glob.has_magic(text):
        # A pattern may be absolute, which those of a Path may not.
        inside = [Path(p) for p in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207
        nothing = f"no file matches {text}"
    else:
        return [Task(path, None)]
    return [Task(file, None) for file in inside] or [Task(path, None, refusal=nothing)]


def _by_channel(task: Task) -> list[Task]:
    try:
        count = 0 if task.refusal else FileSource(task.file, paced=False).channels
    except SourceError as error:
        return [replace(task, refusal=str(error))]
    return [replace(task, channels=(k,)) for k in range(1, count + 1)] or [task]


class Levels:
    """The calibration of each channel of each file, as the options say."""

    def __init__(self, args: argparse.Namespace) -> None:
        given = {
            "--full-scale-db": args.full_scale_db,
            "--calibrations": args.calibrations,
            "--calibrator": args.calibrator,
        }
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise WrongUsage(f"{' and '.join(names)} both say how loud full scale is: give one")
        if args.level is not None and args.calibrator is None:
            raise WrongUsage(
                "--level is that of a calibrator: name its recording with --calibrator"
            )
        self._table: Mapping[tuple[str, int | None], Calibration] | None = None
        self._every = UNCALIBRATED
        if args.full_scale_db is not None:
            self._every = Calibration(args.full_scale_db)
        elif args.calibrator is not None:
            self._table = _of_calibrator(args)
        elif args.calibrations is not None:
            self._table = _of_table(Path(args.calibrations))
        self._source = args.calibrator or args.calibrations
        self._args = args
        if self._table is None:
            self._every = with_uncertainty(self._every, args)

    @property
    def uncalibrated(self) -> Calibration | None:
        """What stands for a calibration where none was given."""
        return self._every if self._table is None and not self._every.calibrated else None

    def of(self, file: Path, channels: Sequence[int]) -> list[Calibration]:
        """One for all of these channels, or one for each.

        Raises Mistake for a channel of which none is told.
        """
        if self._table is None:
            return [self._every]
        found = []
        for channel in channels:
            keys = [(n, c) for n in (str(file), file.name, "") for c in (channel, None)]
            known = next((self._table[key] for key in keys if key in self._table), None)
            if known is None:
                raise Mistake(f"{file}: {self._source} tells nothing of channel {channel}")
            found.append(with_uncertainty(known, self._args))
        return found[:1] if len(set(found)) == 1 else found


def _of_table(path: Path) -> dict[tuple[str, int | None], Calibration]:
    """Calibrations by file and channel out of a CSV file; an empty cell stands for all of them."""
    try:
        lines = small_text(path).splitlines(keepends=True)
        reader = csv.DictReader(line for line in lines if not line.startswith("#"))
        rows = list(reader)
    except NotThatFile as error:
        raise Mistake(f"{path} {error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise Mistake(f"{path} is no table of calibrations: {error}") from error
    if set(reader.fieldnames or ()) != set(TABLE_COLUMNS):
        raise Mistake(
            f"{path} has the columns {brief(','.join(reader.fieldnames or ()))}: give "
            f"{','.join(TABLE_COLUMNS)}"
        )
    found: dict[tuple[str, int | None], Calibration] = {}
    for number, row in enumerate(rows, 2):
        try:
            channel = int(row["channel"]) if row["channel"].strip() else None
            level = Calibration(float(row["full_scale_db"]), source=str(path))
            key = row["file"].strip(), channel
        except (AttributeError, TypeError, ValueError) as error:
            raise Mistake(f"{path}, line {number}: {brief(error)}") from error
        if key in found:
            raise Mistake(f"{path}, line {number}: {key[0]} channel {channel} is told twice")
        found[key] = level
    return found


def _of_calibrator(args: argparse.Namespace) -> dict[tuple[str, int | None], Calibration]:
    """Calibrations by channel out of the recording of a calibrator; one channel stands for all."""
    source = FileSource(args.calibrator, paced=False)
    checks = [CalibratorCheck(source.fs) for _ in range(source.channels)]
    for block in source.blocks():
        for check, samples in zip(checks, block.T, strict=True):
            check.push(samples)
    level = 94.0 if args.level is None else args.level
    found: dict[tuple[str, int | None], Calibration] = {}
    for channel, check in enumerate(checks, 1):
        try:
            tone = check.finish()
        except Refused as refusal:
            raise Mistake(f"{args.calibrator}, channel {channel}: {refusal}") from refusal
        name = Path(args.calibrator).name
        record = Record(name, channel, level, tone.level_dbfs, tone.frequency, utc_now())
        found["", channel if len(checks) > 1 else None] = record.calibration
    return found
