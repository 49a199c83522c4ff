"""From fractions of full scale to pascal, and where the number came from."""

import errno
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from numbers import Real
from pathlib import Path
from typing import Any

from amt_stream.correction import Correction
from amt_stream.files import NotThatFile, small_text, whole_text_file, why
from amt_stream.plain import brief
from amt_stream.refusal import Refusal

COVERAGE = 2
"""Factor k of all uncertainties here: about 95 % of levels lie within them."""

CALIBRATOR_UNCERTAINTY_DB = 0.25
"""By default: as far as the level of a class 1 calibrator may be off (IEC 60942:2017)."""

MICROPHONE_UNCERTAINTY_DB = 1.0
"""By default, an assumption: a measurement microphone in a free field, its response and place."""

LARGEST_UNCERTAINTY_DB = 20.0


def root_sum_of_squares(*parts_db: float) -> float:
    """Uncertainty in dB of several parts that know nothing of each other (JCGM 100, 5.1.2)."""
    return math.hypot(*parts_db)


@dataclass(frozen=True)
class Calibration:
    """Level in dB SPL of a full-scale sine (peak 1.0), with its origin and date.

    calibration_uncertainty_db: of that level, expanded (k = 2); None where it is not known, or
        there is none
    microphone_uncertainty_db: of the microphone for other sounds than the calibrator's, expanded;
        it counts where the other is known
    frequency_hz: of the tone that it was made with; None where it was none
    correction: of the microphone's response, taken off before anything hears the sound, whether
        the level is known or not

    Raises ValueError for a level or uncertainties out of range.
    """

    full_scale_db_spl: float
    source: str = "given by the user"
    date: str | None = None
    calibrated: bool = True
    calibration_uncertainty_db: float | None = None
    microphone_uncertainty_db: float = MICROPHONE_UNCERTAINTY_DB
    frequency_hz: float | None = None
    correction: Correction | None = None

    def __post_init__(self) -> None:
        given: object = self.full_scale_db_spl
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(
                f"full_scale_db_spl is {given!r}: give a number, the level of a full-scale sine "
                "in dB SPL"
            )
        level = self.full_scale_db_spl
        if not (math.isfinite(level) and 0.0 <= level <= 250.0):
            raise ValueError(
                f"full_scale_db_spl is {level}: give the level of a full-scale sine, "
                "0 to 250 dB SPL"
            )
        parts = self.microphone_uncertainty_db, self.calibration_uncertainty_db or 0.0
        # NaN compares as false.
        if not (min(parts) >= 0 and root_sum_of_squares(*parts) <= LARGEST_UNCERTAINTY_DB):
            raise ValueError(
                f"the uncertainties are {parts[1]} dB of the calibration and {parts[0]} dB of the "
                f"microphone: give 0 to {LARGEST_UNCERTAINTY_DB:g} dB, together no more"
            )

    def __str__(self) -> str:
        corrected = "" if self.correction is None else f", {self.correction}"
        if not self.calibrated:
            level = f"full-scale sine = {self.full_scale_db_spl:g} dB SPL"
            return f"uncalibrated (assumes {level}){corrected}"
        when = "" if self.date is None else f", {self.date}"
        return (
            f"full-scale sine = {self.full_scale_db_spl:.2f} dB SPL{self._doubt}, "
            f"{self.source}{when}{corrected}"
        )

    @property
    def _doubt(self) -> str:
        if self.uncertainty_db is None:
            return ""
        return (
            f" +- {self.uncertainty_db:.1f} dB (k = {COVERAGE}; calibration "
            f"{self.calibration_uncertainty_db:g} dB, microphone "
            f"{self.microphone_uncertainty_db:g} dB)"
        )

    @property
    def uncertainty_db(self) -> float | None:
        """Of every level read with it, expanded (k = 2); None where it is not known."""
        if not self.calibrated or self.calibration_uncertainty_db is None:
            return None
        return root_sum_of_squares(self.calibration_uncertainty_db, self.microphone_uncertainty_db)

    def with_uncertainty(
        self, calibration_db: float | None = None, microphone_db: float | None = None
    ) -> "Calibration":
        """The same with other uncertainties, or with its own where none is given.

        Raises ValueError for an uncertainty of what is not calibrated, and for that of the
        microphone where that of the calibration is not known.
        """
        if calibration_db is None and microphone_db is None:
            return self
        if not self.calibrated:
            raise ValueError(
                "an uncertainty is given and there is no calibration: give the level of a "
                "full-scale sine, or calibrate"
            )
        known = self.calibration_uncertainty_db if calibration_db is None else calibration_db
        if known is None:
            raise ValueError(
                "the microphone's uncertainty is given and that of the calibration is not known: "
                "give both"
            )
        own = self.microphone_uncertainty_db if microphone_db is None else microphone_db
        return replace(self, calibration_uncertainty_db=known, microphone_uncertainty_db=own)

    def with_correction(self, correction: Correction | None) -> "Calibration":
        """The same with another correction, or with none.

        The calibrator's tone went through the microphone too: its reading stays as it was.
        """
        at = None if correction is None else correction.at(self.frequency_hz)
        return replace(self, correction=at)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "Calibration":
        """What `asdict` made a dict of. Raises TypeError or ValueError for anything else."""
        correction = given.get("correction")
        return cls(**{**given, "correction": correction and Correction(**correction)})

    @property
    def pascal_per_unit(self) -> float:
        """Pascal that a sample of 1.0 stands for: the peak of the full-scale sine."""
        from amt_stream.scales import pascal_per_unit  # numpy takes its time

        return pascal_per_unit(self.full_scale_db_spl)


UNCALIBRATED = Calibration(100.0, source="nominal: not calibrated", calibrated=False)


def in_words(calibrations: Sequence[Calibration]) -> str:
    """The calibrations of both ears in one line, each told once."""
    return "; ".join(dict.fromkeys(map(str, calibrations)))


def with_corrections(
    calibrations: Sequence[Calibration], corrections: Sequence[Correction | None]
) -> list[Calibration]:
    """The same with a correction each; one of either goes with each of the other.

    Raises ValueError where their numbers do not fit.
    """
    most = max(len(calibrations), len(corrections))
    if {len(calibrations), len(corrections)} - {1, most}:
        raise ValueError(
            f"{len(corrections)} corrections for {len(calibrations)} channels: give one, or one "
            "for each"
        )
    pairs = zip(_each(calibrations, most), _each(corrections, most), strict=True)
    return [calibration.with_correction(correction) for calibration, correction in pairs]


def _each(given: Sequence[Any], count: int) -> Sequence[Any]:
    return list(given) * count if len(given) == 1 else given


def uncertainty_of(calibrations: Sequence[Calibration]) -> float | None:
    """The larger uncertainty of both ears in dB; None where that of one is not known.

    Both ears are taken to be off by the same, in the same direction.
    """
    known = [c.uncertainty_db for c in calibrations if c.uncertainty_db is not None]
    return max(known) if len(known) == len(calibrations) else None


class CalibrationError(Refusal, RuntimeError):
    """The user's calibration file cannot be used; the message says where and why."""


@dataclass(frozen=True)
class Record:
    """What a calibrator gave on one channel (1, 2, ...) of a device, by what identifies that.

    `measured_dbfs` is the level of the tone that has `reference_db_spl`, where a full-scale sine
    has 0 dBFS. `date` is UTC, RFC 3339. `calibrator_uncertainty_db` is expanded (k = 2), None where
    it was not kept.
    """

    device: str
    channel: int
    reference_db_spl: float
    measured_dbfs: float
    frequency_hz: float
    date: str
    calibrator_uncertainty_db: float | None = None

    @property
    def full_scale_db_spl(self) -> float:
        return self.reference_db_spl - self.measured_dbfs

    def to_dict(self) -> dict[str, Any]:
        """As it is kept, with the level of full scale that follows from it."""
        kept = {key: value for key, value in asdict(self).items() if value is not None}
        return {**kept, "full_scale_db_spl": round(self.full_scale_db_spl, 4)}

    @property
    def calibration(self) -> Calibration:
        tone = f"calibrator of {self.reference_db_spl:g} dB at {self.frequency_hz:.0f} Hz"
        read = f"{self.measured_dbfs:.2f} dBFS on {self.device!r} channel {self.channel}"
        return Calibration(
            self.full_scale_db_spl,
            f"{tone} read {read}",
            self.date,
            calibration_uncertainty_db=self.calibrator_uncertainty_db,
            frequency_hz=self.frequency_hz,
        )


def utc_now() -> str:
    """This second in UTC, RFC 3339."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def calibrations_path() -> Path:
    """The user's file: JSON lines, one `Record` for each channel of each device."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("amt_stream", appauthor=False)) / "calibrations.jsonl"


def read_records(path: Path | None = None) -> list[Record]:
    """The records in the user's file, none where there is no file.

    Raises CalibrationError, naming file and line, for a line that is not a record.
    """
    path = calibrations_path() if path is None else path
    try:
        lines = small_text(path).split("\n")
    except NotThatFile as error:
        if error.errno == errno.ENOENT:
            return []
        raise CalibrationError(f"{path} {error}") from error
    except UnicodeDecodeError as error:
        raise CalibrationError(f"{path} cannot be read: {error}") from error
    records = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                records.append(_record(line))
            except ValueError as error:
                raise CalibrationError(
                    f"{path}, line {number}: {error}; correct the line, or remove it and "
                    "calibrate again"
                ) from error
    return records


_LARGEST = 1e6
"""No channel, level or frequency of a calibrator is beyond this."""


def _record(line: str) -> Record:
    try:
        given: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg} at column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("this is nested too deeply for a record in braces") from error
    kinds: dict[str, type | tuple[type, ...]] = {
        "device": str,
        "channel": int,
        "reference_db_spl": (int, float),
        "measured_dbfs": (int, float),
        "frequency_hz": (int, float),
        "date": str,
    }
    if not isinstance(given, dict):
        raise ValueError("this is not a record in braces")
    given.pop("full_scale_db_spl", None)  # written for the reader; it follows from the others
    if given.get("calibrator_uncertainty_db") is None:  # as in older records
        given.pop("calibrator_uncertainty_db", None)
    else:
        kinds["calibrator_uncertainty_db"] = (int, float)
    if given.keys() != kinds.keys():
        raise ValueError(f"the keys are {brief(', '.join(given))} and not {', '.join(kinds)}")
    for key, kind in kinds.items():
        value = given[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{key} is {brief(repr(value))}, which is no such thing")
        # NaN compares as false.
        if isinstance(value, (int, float)) and not -_LARGEST <= value <= _LARGEST:
            raise ValueError(f"{key} is {brief(value)}, which is no such number")
    record = Record(**given)
    _ = record.calibration
    return record


def write_records(records: Sequence[Record], path: Path | None = None) -> Path:
    """Add records to the user's file, each in place of an older one for its channel; atomic."""
    path = calibrations_path() if path is None else path
    merged = {(r.device, r.channel): r for r in [*read_records(path), *records]}
    lines = [json.dumps(record.to_dict()) + "\n" for record in merged.values()]
    try:
        with whole_text_file(path) as stream:
            stream.writelines(lines)
    except OSError as error:
        raise CalibrationError(f"{path} cannot be written: {why(error)}") from error
    return path


def told_by(comment: str, software: str, where: str) -> dict[int | None, Calibration]:
    """Calibration of each channel, or of all by None, as a recording of ours says; else nothing.

    comment, software: what a file of sound says of itself
    where: what the file is called
    """
    if not software.startswith("amt_stream"):
        return {}
    try:
        told = json.loads(comment)
        if "header" in told:
            return {one["channel"]: _told(one, where) for one in told["header"]["calibration"]}
        # A session's recording: of more than one nobody knows here which channels were heard.
        (one,) = told["calibration"]
        return {None: _told(one, where)}
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}


def _told(one: Mapping[str, Any], where: str) -> Calibration:
    """Raises KeyError, TypeError or ValueError for what is none, and for one that is not known."""
    if one["calibrated"] is not True:
        raise ValueError("not calibrated")
    parts = {
        key: one[key]
        for key in ("calibration_uncertainty_db", "microphone_uncertainty_db")
        if one[key] is not None
    }
    origin = brief(one.get("origin", one.get("source")))
    date = None if one["date"] is None else brief(one["date"])
    return Calibration(one["full_scale_db_spl"], f"as {where} says: {origin}", date, **parts)


def calibrations_of(devices: Collection[str], channels: Sequence[int]) -> list[Calibration]:
    """Calibration of each channel as the user's file has it, UNCALIBRATED for the others.

    devices: the names that the device is kept by
    """
    known = {r.channel: r.calibration for r in read_records() if r.device in devices}
    return [known.get(channel, UNCALIBRATED) for channel in channels]
