"""Calibration: the factor from full scale to pascal, its origin and its uncertainty."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from numbers import Real
from pathlib import Path
from typing import TypeVar

from amt_stream.core.device_store import kept_path, read_kept, write_kept
from amt_stream.core.importing import has_torch
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.core.words import counted, one_or_each
from amt_stream.meters.correction import (
    Correction,
    keep_corrections,
    kept_corrections,
    stored_corrections,
)
from amt_stream.meters.source_description import InputGain

COVERAGE = 2
"""Coverage factor k of all uncertainties here, for about 95 %."""

CALIBRATOR_UNCERTAINTY_DB = 0.25
"""Default: the tolerance of the level of a class 1 calibrator (IEC 60942:2017)."""

MICROPHONE_UNCERTAINTY_DB = 1.0
"""Default, an assumption: response and position of a measurement microphone in a free field."""

LARGEST_UNCERTAINTY_DB = 20.0

VALID_DAYS = 90
"""Default, an assumption: how long a microphone and its input gain are stable."""

LONGEST_VALID_DAYS = 36500

One = TypeVar("One")


def root_sum_of_squares(*parts_db: float) -> float:
    """Combined uncertainty in dB of independent parts (JCGM 100, 5.1.2)."""
    return math.hypot(*parts_db)


@dataclass(frozen=True)
class Calibration:
    """Level in dB SPL of a full-scale sine (peak 1.0), with its origin and date.

    calibration_uncertainty_db: expanded uncertainty (k = 2) of that level; None if unknown
    microphone_uncertainty_db: expanded uncertainty of the microphone for sounds other than the
        calibrator's tone; used if the other one is known
    frequency_hz: frequency of the calibrator's tone; None without one
    valid_days: days until the next calibration is due; None if unknown
    correction: response of the microphone, which is compensated before the models, whether or not
        the level is known
    input_gain: gain of the input that it was made at; None if unknown. It holds for that one only

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
    input_gain: InputGain | None = None

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
                f"microphone: give 0 to {LARGEST_UNCERTAINTY_DB:g} dB, also combined"
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
        """Expanded uncertainty (k = 2) of levels; None if unknown."""
        if not self.calibrated or self.calibration_uncertainty_db is None:
            return None
        return root_sum_of_squares(self.calibration_uncertainty_db, self.microphone_uncertainty_db)

    def with_uncertainty(
        self, calibration_db: float | None = None, microphone_db: float | None = None
    ) -> "Calibration":
        """A copy with these uncertainties; None leaves one unchanged.

        Raises ValueError if it is not calibrated, or if the microphone's uncertainty is given and
        that of the calibration is unknown.
        """
        if calibration_db is None and microphone_db is None:
            return self
        if not self.calibrated:
            raise ValueError(
                "an uncertainty needs a calibration: give the level of a full-scale sine, or "
                "calibrate"
            )
        known = self.calibration_uncertainty_db if calibration_db is None else calibration_db
        if known is None:
            raise ValueError(
                "the microphone's uncertainty needs that of the calibration, which is unknown: "
                "give both"
            )
        own = self.microphone_uncertainty_db if microphone_db is None else microphone_db
        return replace(self, calibration_uncertainty_db=known, microphone_uncertainty_db=own)

    @property
    def valid_until(self) -> datetime | None:
        """When the next calibration is due; None if unknown."""
        if self.valid_days is None or self.date is None:
            return None
        try:
            made = datetime.fromisoformat(self.date)
            made = made if made.tzinfo is not None else made.replace(tzinfo=UTC)
            return made + timedelta(days=self.valid_days)
        except (OverflowError, ValueError):  # no date, or an impossible one
            return None

    def reminder(self, now: datetime | None = None) -> str:
        """A sentence if the next calibration is due, else ""."""
        until, now = self.valid_until, now or datetime.now(UTC)
        if until is None or now <= until:
            return ""
        assert self.valid_days is not None
        age = (now - until).days + self.valid_days
        return (
            f"the calibration of {str(self.date)[:10]} is {counted(round(age), 'day')} old and "
            f"was valid for {self.valid_days:g}: calibrate again"
        )

    def with_correction(self, correction: Correction | None) -> "Calibration":
        """A copy with another correction, or with none.

        The reading of the calibrator's tone does not change, as its level included the response.
        """
        if correction is None and self.correction is None:
            return self
        at = None if correction is None else correction.at(self.frequency_hz)
        return replace(self, correction=at)

    @classmethod
    def from_dict(cls, given: JsonMap) -> "Calibration":
        """Make a calibration from its `asdict`. Raises TypeError or ValueError."""
        correction, gain = given.get("correction"), given.get("input_gain")
        more = {"correction": correction and Correction(**correction)}
        more |= {"input_gain": gain and InputGain.from_dict(gain)}
        return cls(**{**given, **more})

    @property
    def pascal_per_unit(self) -> float:
        """Pascal per unit of samples: the peak of the full-scale sine."""
        from amt_stream.dsp.scales import pascal_per_unit  # numpy is slow to import

        return pascal_per_unit(self.full_scale_db_spl)


UNCALIBRATED = Calibration(100.0, source="nominal: not calibrated", calibrated=False)


def one_each(given: Sequence[One], count: int) -> list[One]:
    """A calibration or correction for each of `count` channels; a single one is for all."""
    return [*given] * (count if len(given) == 1 else 1)


def calibration_words(calibrations: Sequence[Calibration]) -> str:
    """The calibrations of both ears in one line, equal ones once."""
    return "; ".join(dict.fromkeys(map(str, calibrations)))


def with_corrections(
    calibrations: Sequence[Calibration], corrections: Sequence[Correction | None]
) -> list[Calibration]:
    """Calibrations with corrections; a single one of either is combined with all of the other.

    Raises ValueError if their numbers differ.
    """
    most = max(len(calibrations), len(corrections))
    if {len(calibrations), len(corrections)} - {1, most}:
        raise ValueError(one_or_each(len(corrections), "correction", len(calibrations)))
    pairs = zip(one_each(calibrations, most), one_each(corrections, most), strict=True)
    return [calibration.with_correction(correction) for calibration, correction in pairs]


def reminder_of(calibrations: Sequence[Calibration]) -> str:
    """The first reminder of a due calibration, or ""."""
    return next((reminder for one in calibrations if (reminder := one.reminder())), "")


def uncertainty_of(calibrations: Sequence[Calibration]) -> float | None:
    """The larger uncertainty of both ears in dB, of which models give a band of their readings.

    Both ears are assumed to have the same error. None if that of one is unknown, and for models
    that were compiled ahead, which give no band.
    """
    if not has_torch():
        return None
    known = [c.uncertainty_db for c in calibrations if c.uncertainty_db is not None]
    return max(known) if len(known) == len(calibrations) else None


@dataclass(frozen=True)
class Record:
    """The measurement of a calibrator on a channel (1, 2, ...) of a device, given by its identity.

    `measured_dbfs` is the level of the tone of `reference_db_spl`, re a full-scale sine. `date` is
    UTC, RFC 3339. `calibrator_uncertainty_db` is expanded (k = 2), None if unknown. The next
    calibration is due after `valid_days`; None is the default. `input_gain` is the gain of the
    input then, None if the system did not tell it; `name` is the name of the device for people.
    """

    device: str
    channel: int
    reference_db_spl: float
    measured_dbfs: float
    frequency_hz: float
    date: str
    calibrator_uncertainty_db: float | None = None
    valid_days: float | None = None
    input_gain: InputGain | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the device; of older records the one that they are stored by."""
        return self.name or self.device

    @property
    def full_scale_db_spl(self) -> float:
        return self.reference_db_spl - self.measured_dbfs

    def to_dict(self) -> JsonDict:
        """Data for the user's file, with the resulting level of full scale."""
        kept = {key: value for key, value in asdict(self).items() if value not in (None, "")}
        if self.input_gain is not None:
            kept["input_gain"] = self.input_gain.to_dict()
        return {**kept, "full_scale_db_spl": round(self.full_scale_db_spl, 4)}

    @property
    def calibration(self) -> Calibration:
        tone = f"calibrator of {self.reference_db_spl:g} dB at {self.frequency_hz:.0f} Hz"
        read = f"{self.measured_dbfs:.2f} dBFS on {self.title!r} channel {self.channel}"
        return Calibration(
            self.full_scale_db_spl,
            f"{tone} read {read}",
            self.date,
            calibration_uncertainty_db=self.calibrator_uncertainty_db,
            frequency_hz=self.frequency_hz,
            valid_days=VALID_DAYS if self.valid_days is None else self.valid_days,
            input_gain=self.input_gain,
        )


def utc_now() -> str:
    """The present time in UTC to the second, RFC 3339."""
    return rfc3339(datetime.now(UTC))


def rfc3339(moment: datetime) -> str:
    """A time in UTC to the second, RFC 3339."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def calibrations_path() -> Path:
    """Path of the user's file: JSON lines, a `Record` for each channel of each device."""
    return kept_path("calibrations.jsonl")


def read_records(path: Path | None = None) -> list[Record]:
    """Read the records in the user's file; none without a file.

    Raises CalibrationError with file and line for an invalid line.
    """
    return read_kept(path or calibrations_path(), _record)


_LARGEST = 1e6
"""Bounds of channels, levels and frequencies."""


_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "calibrator_uncertainty_db": (int, float),
    "valid_days": (int, float),
    "input_gain": dict,
    "name": str,
}
"""Keys that older records lack."""


def _record(given: JsonDict) -> Record:
    kinds: dict[str, type | tuple[type, ...]] = {
        "device": str,
        "channel": int,
        "reference_db_spl": (int, float),
        "measured_dbfs": (int, float),
        "frequency_hz": (int, float),
        "date": str,
    }
    given.pop("full_scale_db_spl", None)  # for human readers; it follows from the others
    for key, kind in _OPTIONAL.items():
        if given.get(key) is None:
            given.pop(key, None)
        else:
            kinds[key] = kind
    if given.keys() != kinds.keys():
        raise ValueError(f"the keys are {brief(', '.join(given))} and not {', '.join(kinds)}")
    for key, kind in kinds.items():
        value = given[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{key} has the invalid value {brief(repr(value))}")
        # NaN compares as false.
        if isinstance(value, (int, float)) and not -_LARGEST <= value <= _LARGEST:
            raise ValueError(f"{key} is {brief(value)}, which is out of range")
    if not 0 < given.get("valid_days", 1) <= LONGEST_VALID_DAYS:
        raise ValueError(f"valid_days is {given['valid_days']}: give 1 to {LONGEST_VALID_DAYS}")
    gain = given.pop("input_gain", None)
    record = Record(**given, input_gain=gain and InputGain.from_dict(gain))
    _ = record.calibration
    return record


def write_records(records: Sequence[Record], path: Path | None = None) -> Path:
    """Add records to the user's file atomically, replacing older ones of their channels."""
    path = path or calibrations_path()
    merged = {(r.device, r.channel): r for r in [*read_records(path), *records]}
    return write_kept(path, [record.to_dict() for record in merged.values()])


def remove_record(device: str, channel: int) -> None:
    """Remove a channel from the user's file."""
    path = calibrations_path()
    records = read_records(path)
    left = [record for record in records if (record.device, record.channel) != (device, channel)]
    if len(left) < len(records):
        write_kept(path, [record.to_dict() for record in left])


def calibrations_of_comment(comment: str, software: str, where: str) -> dict[int, Calibration]:
    """Calibrations by channel (1, 2, ...) in the comment of a recording of amt_stream; else none.

    Uncalibrated channels are left out.

    comment, software: tags of the sound file
    where: name of the file

    Raises ValueError if the comment of such a recording cannot be read.
    """
    if not software.startswith("amt_stream"):
        return {}
    try:
        about = json.loads(comment)
        if "whole" in about:
            raise ValueError("the rest of the comment is missing")
        each = {one["channel"]: dict(one) for one in about["calibration"]}
        found = {}
        for channel, one in each.items():
            del one["channel"]
            calibration = Calibration.from_dict(one)
            if not isinstance(channel, int):
                raise TypeError(f"channel {channel!r}")
            if calibration.calibrated is True:
                source = f"as {where} says: {brief(calibration.source)}"
                found[channel] = replace(calibration, source=source, valid_days=None)
        return found
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} was recorded by amt_stream, but its comment no longer has the calibration: "
            "give the level of a full-scale sine in dB SPL (--full-scale-db)"
        ) from error


def calibrations_of(devices: Collection[str], channels: Sequence[int]) -> list[Calibration]:
    """The stored calibration of each channel, or UNCALIBRATED.

    devices: identities of the device in the user's files
    """
    known = {r.channel: r.calibration for r in read_records() if r.device in devices}
    return [
        known.get(channel, UNCALIBRATED).with_correction(correction)
        for channel, correction in zip(channels, stored_corrections(devices, channels), strict=True)
    ]


@dataclass(frozen=True)
class Kept:
    """The stored calibration or correction of a channel of a device, or both."""

    device: str
    channel: int
    record: Record | None = None
    correction: Correction | None = None

    @property
    def title(self) -> str:
        """The name of the device for people, if it is known."""
        return self.device if self.record is None else self.record.title

    @property
    def calibration(self) -> Calibration:
        """The calibration with the correction."""
        known = UNCALIBRATED if self.record is None else self.record.calibration
        return known.with_correction(self.correction)

    def forget(self) -> None:
        """Delete it from the user's files."""
        remove_record(self.device, self.channel)
        if self.correction is not None:
            keep_corrections(self.device, {self.channel: None})

    def to_dict(self) -> JsonDict:
        """Data for JSON."""
        calibration = self.calibration
        until = calibration.valid_until
        data: dict[str, object] = {"device": self.device, "channel": self.channel}
        if self.record is not None:
            data |= self.record.to_dict()
        if until is not None:
            data |= {"valid_until": rfc3339(until), "overdue": bool(calibration.reminder())}
        if calibration.correction is not None:
            data["correction"] = calibration.correction.to_dict()
        return data


def kept_channels() -> list[Kept]:
    """All stored calibrations and corrections, by device and channel.

    Raises CalibrationError if the files cannot be read.
    """
    records = {(one.device, one.channel): one for one in read_records()}
    responses = kept_corrections()
    keys = sorted({*records, *responses})
    return [Kept(*key, records.get(key), responses.get(key)) for key in keys]


def titles_of(kept: Sequence[Kept]) -> list[str]:
    """The name of each device for people, with what tells it apart from another of that name."""
    devices: dict[str, set[str]] = {}
    for one in kept:
        devices.setdefault(one.title, set()).add(one.device)
    several = {title for title, of_it in devices.items() if len(of_it) > 1}
    return [f"{one.title} ({one.device})" if one.title in several else one.title for one in kept]


def uncalibrated(calibrations: Sequence[Calibration]) -> list[Calibration]:
    """Uncalibrated copies with the same corrections; a single one if they are all equal."""
    each = [UNCALIBRATED.with_correction(one.correction) for one in calibrations]
    return each[:1] if len(set(each)) == 1 else each
