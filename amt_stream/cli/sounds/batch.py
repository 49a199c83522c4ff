"""The sounds to analyze, their calibrations, and where the rows of each go."""

import glob
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from amt_stream.cli.files import path_kind
from amt_stream.cli.inputs import typed_corrections, with_uncertainty
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.sounds.calibration_table import calibration_table, name_in_table
from amt_stream.core.json_types import JsonDict
from amt_stream.core.values import EACH
from amt_stream.core.words import one_or_each
from amt_stream.engine.inputs.sound_file import calibrations_in
from amt_stream.engine.readers.av_link import ENDINGS
from amt_stream.engine.sources import FileSource, SourceError
from amt_stream.meters.calibration import (
    UNCALIBRATED,
    Calibration,
    Record,
    utc_now,
    with_corrections,
)
from amt_stream.meters.calibrator import USUAL_HZ, CalibratorCheck, Refused
from amt_stream.meters.correction import Correction

PISTONPHONE_HZ = 500.0
"""A calibrator of a lower frequency is a pistonphone."""

MORE_ENDINGS = {".aif", ".aifc", ".oga", ".opus", ".mp2", ".bw64", *ENDINGS}
"""Endings of sound files besides the names of libsndfile's formats."""


@dataclass(frozen=True)
class SoundLevels:
    """The calibrations of one sound.

    found: calibrations by channel, with None for all channels, the most specific first
    corrections: from --correction, one for all channels or one for each
    refusals: why channels of a calibrator's recording have no calibration
    """

    source: str
    found: tuple[Mapping[int | None, Calibration], ...]
    corrections: tuple[Correction | None, ...] = ()
    refusals: Mapping[int, str] = field(default_factory=dict)

    def of(self, file: Path, channels: Sequence[int]) -> list[Calibration]:
        """One calibration for all of these channels, or one for each.

        Raises Mistake for a channel without a calibration.
        """
        levels = []
        for channel in channels:
            known = (one[key] for one in self.found for key in (channel, None) if key in one)
            level = next(known, None)
            if level is None:
                lack = f"{self.source} has no calibration for channel {channel}"
                raise Mistake(f"{file}: {self.refusals.get(channel, lack)}")
            levels.append(level)
        if self.corrections:
            if len(self.corrections) not in (1, len(channels)):
                why = one_or_each(len(self.corrections), "correction", len(channels))
                raise Mistake(f"{file}: {why}")
            levels = with_corrections(levels, self.corrections)
        return levels[:1] if len(set(levels)) == 1 else levels

    @property
    def calibrated(self) -> bool:
        """Whether any channel is calibrated."""
        return any(one.calibrated for by_channel in self.found for one in by_channel.values())

    @property
    def as_data(self) -> list[dict[str, list[Any]]]:
        """The calibrations without their origin, as data for JSON."""
        levels: list[dict[str, list[object]]] = [
            {
                "" if channel is None else str(channel): [
                    one.full_scale_db_spl,
                    one.calibrated,
                    one.calibration_uncertainty_db,
                    one.microphone_uncertainty_db,
                ]
                for channel, one in by_channel.items()
            }
            for by_channel in self.found
        ]
        if self.corrections:
            levels.append({"corrections": [str(one) for one in self.corrections]})
        return levels


@dataclass(frozen=True)
class Task:
    """A sound to analyze: its file and channels, its calibrations, and where its rows go.

    below: path relative to the folder or to the fixed part of the pattern that named it
    target: path, "-" for standard output, or None if no rows are written
    refusal: why it cannot be analyzed, if so
    piped: whether the file is a copy of what came through a pipe
    background_levels: the calibrations of its background, if it has one
    """

    file: Path
    channels: tuple[int, ...] | None = None
    below: Path = Path()
    levels: SoundLevels | None = None
    target: Path | Literal["-"] | None = None
    refusal: str = ""
    piped: bool = False
    background_levels: SoundLevels | None = None

    @property
    def sound(self) -> JsonDict:
        """What identifies this sound and its version, as data for JSON."""
        try:
            found = self.file.stat()
            bytes_, modified_ns = found.st_size, found.st_mtime_ns
        except OSError:
            bytes_ = modified_ns = 0
        assert self.levels is not None
        return {
            "file": str(self.file),
            "channels": None if self.channels is None else list(self.channels),
            "bytes": bytes_,
            "modified_ns": modified_ns,
            "levels": self.levels.as_data,
        }


def tasks_of(
    names: Sequence[str], channels: tuple[int, ...] | str | None, left_out: Collection[Path] = ()
) -> list[Task]:
    """A task for each named file, or with EACH for each of its channels.

    names: files, folders (all their sound files) and patterns; missing ones become refused tasks
    left_out: files that folders and patterns do not include
    """
    tasks = [task for text in names for task in _named(text)]
    tasks = list({task.file: task for task in tasks}.values())
    if left_out:
        tasks = [t for t in tasks if str(t.file) in names or _absolute(t.file) not in left_out]
    if channels == EACH:
        return [task for each in tasks for task in _by_channel(each)]
    assert not isinstance(channels, str)
    return [replace(task, channels=channels) for task in tasks]


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (a link stays one)


def _named(text: str) -> list[Task]:
    import soundfile

    path = Path(text)
    if not text:
        return [Task(path, refusal="'' is no name: give a file, a folder or a pattern")]
    try:
        kind = path_kind(path)
    except Mistake as refusal:
        return [Task(path, refusal=str(refusal))]
    if kind == "folder":
        endings = {f".{name.lower()}" for name in soundfile.available_formats()} | MORE_ENDINGS
        try:
            inside = [p for p in sorted(path.iterdir()) if p.suffix.lower() in endings]
        except OSError as error:
            return [Task(path, refusal=f"{path} cannot be read: {error.strerror}")]
        top, nothing = path, f"{path} is a folder without sound files"
    elif not kind and glob.has_magic(text):
        inside = _matching(text)
        top, nothing = _head(path), f"no file matches {text}"
    else:
        return [
            Task(path, below=Path(path.name), refusal="" if kind else f"there is no file {path}")
        ]
    found = [Task(p, below=_below(p, top)) for p in inside]
    return found or [Task(path, refusal=nothing)]


def _below(path: Path, top: Path) -> Path:
    below = path.relative_to(top)
    return Path(path.name) if ".." in below.parts else below


def _matching(pattern: str) -> list[Path]:
    # Not Path.glob, which refuses absolute patterns.
    return [Path(p) for p in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207


def _head(pattern: Path) -> Path:
    """The leading folders of a pattern without wildcards."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts[:-1]))


def _by_channel(task: Task) -> list[Task]:
    try:
        count = 0 if task.refusal else FileSource(task.file, paced=False).channels
    except SourceError as error:
        return [replace(task, refusal=str(error))]
    return [replace(task, channels=(k,)) for k in range(1, count + 1)] or [task]


class BatchCalibration:
    """The calibration of each channel of each sound, according to the options.

    `calibrators` are the recordings of calibrators that it uses.
    """

    def __init__(self, args: AnalyzeOptions) -> None:
        given = {
            "--full-scale-db": args.full_scale_db,
            "--calibrations": args.calibrations,
            "--calibrator": args.calibrator,
        }
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise WrongUsage(f"{' and '.join(names)} both give the calibration: leave one out")
        for flag, value in (("--level", args.level), ("--frequency", args.frequency)):
            if value is not None and args.calibrator is None:
                raise WrongUsage(
                    f"{flag} needs a recording of the calibrator: add --calibrator FILE"
                )
        self._args = args
        self._corrections = tuple(typed_corrections(args) or ())
        for one in dict.fromkeys(filter(None, self._corrections)):
            say(one.in_words())
        self._by_name: dict[str, dict[int | None, Calibration]] = {}
        self._by_folder: dict[Path, Path] = {}
        self._measured: dict[Path, dict[int | None, Calibration] | Mistake] = {}
        self._refusals: dict[Path, Mapping[int, str]] = {}
        self.calibrators: Collection[Path] = ()
        if args.calibrations is not None:
            for (name, channel), level in calibration_table(Path(args.calibrations)).items():
                self._by_name.setdefault(name, {})[channel] = with_uncertainty(level, args)
        elif args.calibrator is None:
            full_scale_db = args.full_scale_db
            every = UNCALIBRATED if full_scale_db is None else Calibration(full_scale_db)
            self._by_name[""] = {None: with_uncertainty(every, args)}
        elif glob.has_magic(args.calibrator) and not path_kind(Path(args.calibrator)):
            self._by_folder = _one_per_folder(args.calibrator)
            self.calibrators = self._by_folder.values()
        else:
            self._by_name[""] = self._of_calibrator(Path(args.calibrator))
            self.calibrators = [_absolute(Path(args.calibrator))]
        self._patterns = [name for name in self._by_name if glob.has_magic(name)]

    @property
    def uncalibrated(self) -> Calibration | None:
        """The stand-in calibration if none was given."""
        every = self._by_name.get("", {}).get(None)
        return every if every is not None and not every.calibrated else None

    def of(self, file: Path) -> SoundLevels:
        """The calibrations of one sound. Raises Mistake if its folder has no usable calibrator.

        A table is searched by path, by name, by the first pattern that matches either, and then
        for an entry for all files. Of several calibrators the nearest is used, in the sound's
        folder or above. Without options, the calibration in a file's comment is used.
        """
        if self._by_folder:
            folders = _absolute(file).parents
            path = next((self._by_folder[one] for one in folders if one in self._by_folder), None)
            if path is None:
                raise Mistake(f"{file}: {self._args.calibrator} has no recording for its folder")
            measured = (self._measured_once(path),)
            return SoundLevels(str(path), measured, self._corrections, self._refusals[path])
        if self.uncalibrated is not None and (found := calibrations_in(file)):
            own: dict[int | None, Calibration] = {
                channel: with_uncertainty(one, self._args) for channel, one in found.items()
            }
            comment = f"the comment of {file}"
            return SoundLevels(comment, (own, {None: self.uncalibrated}), self._corrections)
        names = [name_in_table(str(file)), name_in_table(file.name)]
        matching = [p for p in self._patterns if any(fnmatchcase(name, p) for name in names)]
        keys = dict.fromkeys([*names, *matching, ""])
        source = str(self._args.calibrations or self._args.calibrator)
        by_name = tuple(self._by_name[key] for key in keys if key in self._by_name)
        refusals = self._refusals.get(Path(source), {})
        return SoundLevels(source, by_name, self._corrections, refusals)

    def _measured_once(self, path: Path) -> dict[int | None, Calibration]:
        if path not in self._measured:
            try:
                self._measured[path] = self._of_calibrator(path)
            except (Mistake, SourceError) as error:
                self._measured[path] = Mistake(str(error))
        found = self._measured[path]
        if isinstance(found, Mistake):
            raise found
        return found

    def _of_calibrator(self, path: Path) -> dict[int | None, Calibration]:
        args = self._args
        found, self._refusals[path] = _of_calibrator(path, args.level, args.frequency)
        return {channel: with_uncertainty(one, args) for channel, one in found.items()}


def _one_per_folder(pattern: str) -> dict[Path, Path]:
    """The recordings of calibrators that match a pattern, by folder."""
    recordings: dict[Path, Path] = {}
    for path in map(_absolute, _matching(pattern)):
        if path.parent in recordings:
            raise Mistake(
                f"{recordings[path.parent]} and {path} both match {pattern}: only one calibrator "
                "per folder is allowed"
            )
        recordings[path.parent] = path
    if not recordings:
        raise Mistake(f"no file matches {pattern}: --calibrator names recordings of a calibrator")
    return recordings


def _of_calibrator(
    path: Path, level: float | None, frequency: float | None
) -> tuple[dict[int | None, Calibration], dict[int, str]]:
    """Calibrations by channel, from a recording of a calibrator; one channel stands for all.

    level, frequency: of the calibrator; by default 94 dB at 1 kHz

    Also returns why other channels have none. Raises Mistake if no channel has any.
    """
    source = FileSource(path, paced=False)
    wanted = USUAL_HZ if frequency is None else (frequency,)
    ends = source.description.clips_at
    checks = [
        CalibratorCheck(source.fs, *wanted, recorded=True, clips_at=ends)
        for _ in range(source.channels)
    ]
    for block in source.blocks():
        for check, samples in zip(checks, block.T, strict=True):
            check.push(samples)
    found: dict[int | None, Calibration] = {}
    refusals: dict[int, str] = {}
    for channel, check in enumerate(checks, 1):
        where = f"{path}, channel {channel}"
        try:
            tone = check.finish()
        except Refused as refusal:
            refusals[channel] = f"{where}: {refusal}"
            continue
        if level is None and tone.frequency < PISTONPHONE_HZ:
            raise Mistake(
                f"{where}: the tone is at {tone.frequency:.0f} Hz, as of a pistonphone, which "
                "gives 114 or 124 dB and not 94: add --level DB"
            )
        reference = 94.0 if level is None else level
        record = Record(path.name, channel, reference, tone.level_dbfs, tone.frequency, utc_now())
        found[channel if len(checks) > 1 else None] = record.calibration
    if not found:
        raise Mistake(next(iter(refusals.values())))
    return found, refusals
