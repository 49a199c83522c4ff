"""From fractions of full scale to pascal, and where the number came from."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from numbers import Real
from pathlib import Path
from typing import Any

from amt_stream.core.device_store import kept_path, read_kept, write_kept
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.meters.correction import (
    Correction,
    keep_corrections,
    kept_corrections,
    stored_corrections,
)

COVERAGE = 2
"""Factor k of all uncertainties here: about 95 % of levels lie within them."""

CALIBRATOR_UNCERTAINTY_DB = 0.25
"""By default: as far as the level of a class 1 calibrator may be off (IEC 60942:2017)."""

MICROPHONE_UNCERTAINTY_DB = 1.0
"""By default, an assumption: a measurement microphone in a free field, its response and place."""

LARGEST_UNCERTAINTY_DB = 20.0

VALID_DAYS = 90
"""By default, an assumption: so long a microphone and its input gain stay as they were."""

LONGEST_VALID_DAYS = 36500


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
    valid_days: after which it is to be made again; None where nobody knows
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
    valid_days: float | None = None

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

    @property
    def valid_until(self) -> datetime | None:
        """When it is to be made again, where that is known."""
        if self.valid_days is None or self.date is None:
            return None
        try:
            made = datetime.fromisoformat(self.date)
            made = made if made.tzinfo is not None else made.replace(tzinfo=UTC)
            return made + timedelta(days=self.valid_days)
        except (OverflowError, ValueError):  # no date, or none that a calendar has
            return None

    def reminder(self, now: datetime | None = None) -> str:
        """A sentence where it is older than it was to hold, else ""."""
        until, now = self.valid_until, now or datetime.now(UTC)
        if until is None or now <= until:
            return ""
        assert self.valid_days is not None
        age = (now - until).days + self.valid_days
        return (
            f"the calibration of {str(self.date)[:10]} is {age:.0f} days old, and was to hold for "
            f"{self.valid_days:g}: calibrate again"
        )

    def with_correction(self, correction: Correction | None) -> "Calibration":
        """The same with another correction, or with none.

        The calibrator's tone went through the microphone too: its reading stays as it was.
        """
        if correction is None and self.correction is None:
            return self
        at = None if correction is None else correction.at(self.frequency_hz)
        return replace(self, correction=at)

    @classmethod
    def from_dict(cls, given: JsonMap) -> "Calibration":
        """What `asdict` made a dict of. Raises TypeError or ValueError for anything else."""
        correction = given.get("correction")
        return cls(**{**given, "correction": correction and Correction(**correction)})

    @property
    def pascal_per_unit(self) -> float:
        """Pascal that a sample of 1.0 stands for: the peak of the full-scale sine."""
        from amt_stream.dsp.scales import pascal_per_unit  # numpy takes its time

        return pascal_per_unit(self.full_scale_db_spl)


UNCALIBRATED = Calibration(100.0, source="nominal: not calibrated", calibrated=False)


def one_each(given: Sequence[Calibration], count: int) -> list[Calibration]:
    """A calibration for each of `count` channels; a single one stands for all of them."""
    return [*given] * (count if len(given) == 1 else 1)


def calibration_words(calibrations: Sequence[Calibration]) -> str:
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


def _each(given: Sequence[object], count: int) -> Sequence[Any]:
    return list(given) * count if len(given) == 1 else given


def reminder_of(calibrations: Sequence[Calibration]) -> str:
    """Of one that is older than it was to hold, the first of them; else ""."""
    return next((told for one in calibrations if (told := one.reminder())), "")


def uncertainty_of(calibrations: Sequence[Calibration]) -> float | None:
    """The larger uncertainty of both ears in dB; None where that of one is not known.

    Both ears are taken to be off by the same, in the same direction.
    """
    known = [c.uncertainty_db for c in calibrations if c.uncertainty_db is not None]
    return max(known) if len(known) == len(calibrations) else None


@dataclass(frozen=True)
class Record:
    """What a calibrator gave on one channel (1, 2, ...) of a device, by what identifies that.

    `measured_dbfs` is the level of the tone that has `reference_db_spl`, where a full-scale sine
    has 0 dBFS. `date` is UTC, RFC 3339. `calibrator_uncertainty_db` is expanded (k = 2), None where
    it was not kept. After `valid_days` it is to be made again; None for as many as by default.
    """

    device: str
    channel: int
    reference_db_spl: float
    measured_dbfs: float
    frequency_hz: float
    date: str
    calibrator_uncertainty_db: float | None = None
    valid_days: float | None = None

    @property
    def full_scale_db_spl(self) -> float:
        return self.reference_db_spl - self.measured_dbfs

    def to_dict(self) -> JsonDict:
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
            valid_days=VALID_DAYS if self.valid_days is None else self.valid_days,
        )


def utc_now() -> str:
    """This second in UTC, RFC 3339."""
    return rfc3339(datetime.now(UTC))


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def calibrations_path() -> Path:
    """The user's file: JSON lines, one `Record` for each channel of each device."""
    return kept_path("calibrations.jsonl")


def read_records(path: Path | None = None) -> list[Record]:
    """The records in the user's file, none where there is no file.

    Raises CalibrationError, naming file and line, for a line that is not a record.
    """
    return read_kept(path or calibrations_path(), _record)


_LARGEST = 1e6
"""No channel, level or frequency of a calibrator is beyond this."""


_OPTIONAL = ("calibrator_uncertainty_db", "valid_days")
"""Keys of a record that older ones lack."""


def _record(given: JsonDict) -> Record:
    kinds: dict[str, type | tuple[type, ...]] = {
        "device": str,
        "channel": int,
        "reference_db_spl": (int, float),
        "measured_dbfs": (int, float),
        "frequency_hz": (int, float),
        "date": str,
    }
    given.pop("full_scale_db_spl", None)  # written for the reader; it follows from the others
    for key in _OPTIONAL:
        if given.get(key) is None:
            given.pop(key, None)
        else:
            kinds[key] = (int, float)
    if given.keys() != kinds.keys():
        raise ValueError(f"the keys are {brief(', '.join(given))} and not {', '.join(kinds)}")
    for key, kind in kinds.items():
        value = given[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{key} is {brief(repr(value))}, which is no such thing")
        # NaN compares as false.
        if isinstance(value, (int, float)) and not -_LARGEST <= value <= _LARGEST:
            raise ValueError(f"{key} is {brief(value)}, which is no such number")
    if not 0 < given.get("valid_days", 1) <= LONGEST_VALID_DAYS:
        raise ValueError(f"valid_days is {given['valid_days']}: give 1 to {LONGEST_VALID_DAYS}")
    record = Record(**given)
    _ = record.calibration
    return record


def write_records(records: Sequence[Record], path: Path | None = None) -> Path:
    """Add records to the user's file, each in place of an older one for its channel; atomic."""
    path = path or calibrations_path()
    merged = {(r.device, r.channel): r for r in [*read_records(path), *records]}
    return write_kept(path, [record.to_dict() for record in merged.values()])


def remove_record(device: str, channel: int, path: Path | None = None) -> bool:
    """Take out of the user's file what is kept of a channel; whether there was something."""
    path = path or calibrations_path()
    records = read_records(path)
    left = [record for record in records if (record.device, record.channel) != (device, channel)]
    if len(left) < len(records):
        write_kept(path, [record.to_dict() for record in left])
    return len(left) < len(records)


def told_by(comment: str, software: str, where: str) -> dict[int, Calibration]:
    """Calibration by channel (1, 2, ...) as a recording of ours says; of other files nothing.

    A channel that was not calibrated is not there.

    comment, software: what a file of sound says of itself
    where: what the file is called

    Raises ValueError for a recording of ours that says nothing that can be read.
    """
    if not software.startswith("amt_stream"):
        return {}
    try:
        about = json.loads(comment)
        if "whole" in about:
            raise ValueError("the rest of the comment is not there")
        each = {one["channel"]: dict(one) for one in about["calibration"]}
        found = {}
        for channel, one in each.items():
            del one["channel"]
            calibration = Calibration.from_dict(one)
            if not isinstance(channel, int):
                raise TypeError(f"channel {channel!r}")
            if calibration.calibrated is True:
                said = f"as {where} says: {brief(calibration.source)}"
                found[channel] = replace(calibration, source=said, valid_days=None)
        return found
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} was recorded by amt_stream, and its comment no longer says how it was "
            "calibrated: give the level in dB SPL of a full-scale sine yourself (--full-scale-db)"
        ) from error


def calibrations_of(devices: Collection[str], channels: Sequence[int]) -> list[Calibration]:
    """Calibration of each channel as the user's files have it, UNCALIBRATED for the others.

    devices: the names that the device is kept by
    """
    known = {r.channel: r.calibration for r in read_records() if r.device in devices}
    return [
        known.get(channel, UNCALIBRATED).with_correction(correction)
        for channel, correction in zip(channels, stored_corrections(devices, channels), strict=True)
    ]


@dataclass(frozen=True)
class Kept:
    """What is kept of one channel of a device: a calibration, a correction, or both."""

    device: str
    channel: int
    record: Record | None = None
    correction: Correction | None = None

    @property
    def calibration(self) -> Calibration:
        """What readings of it rest on."""
        known = UNCALIBRATED if self.record is None else self.record.calibration
        return known.with_correction(self.correction)

    def forget(self) -> None:
        """Keep it no more."""
        remove_record(self.device, self.channel)
        if self.correction is not None:
            keep_corrections(self.device, {self.channel: None})

    def to_dict(self) -> JsonDict:
        """As data for JSON."""
        calibration = self.calibration
        until = calibration.valid_until
        told: dict[str, object] = {"device": self.device, "channel": self.channel}
        if self.record is not None:
            told |= self.record.to_dict()
        if until is not None:
            told |= {"valid_until": rfc3339(until), "overdue": bool(calibration.reminder())}
        if calibration.correction is not None:
            told["correction"] = calibration.correction.to_dict()
        return told


def kept_channels() -> list[Kept]:
    """All that is kept, by device and channel.

    Raises CalibrationError for files that cannot be read.
    """
    records = {(one.device, one.channel): one for one in read_records()}
    responses = kept_corrections()
    keys = sorted({*records, *responses})
    return [Kept(*key, records.get(key), responses.get(key)) for key in keys]


def uncalibrated(calibrations: Sequence[Calibration]) -> list[Calibration]:
    """No level for any of these, each with its own correction; one that stands for all alike."""
    each = [UNCALIBRATED.with_correction(one.correction) for one in calibrations]
    return each[:1] if len(set(each)) == 1 else each
