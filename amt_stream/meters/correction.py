"""The frequency response of a microphone from a file, to be compensated."""

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.core.device_store import kept_path, read_kept, write_kept
from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, decoded, require_file, small_content
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.core.tables import decimal_number
from amt_stream.core.words import counted, frequency_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_DB = 40.0
"""Largest response in dB of a usable microphone."""

LEAST_HZ, HIGHEST_HZ = 1000.0, 1e6
"""Lowest allowed end of a response, and upper bound of frequencies."""

COMMENTS = ("*", "#", '"', ";", "/")
"""Beginnings of comment lines."""

REACH_HZ = 20.0, 20000.0
"""The audible range, to which messages are limited."""

_QUOTED_NUMBERS = re.compile(r'"\s*\d')
_SPACE = re.compile(r"\s*[;\t]\s*|\s*,\s+|\s+,\s*|\s+")


class CorrectionError(Refusal, ValueError):
    """A file or numbers are not the response of a microphone."""


@dataclass(frozen=True)
class Correction:
    """The response of a microphone in dB at rising frequencies in hertz, which is compensated.

    inverted: whether the numbers are corrections to add to readings, not the response
    reference_hz: frequency at which readings do not change: that of the calibrator's tone, whose
        level included the response; None for no reference
    name, date, digest: name, date of change and SHA-256 of the file

    Raises CorrectionError for invalid numbers.
    """

    frequencies_hz: tuple[float, ...] = field(repr=False)
    response_db: tuple[float, ...] = field(repr=False)
    name: str = "given by the program"
    date: str | None = None
    digest: str = ""
    inverted: bool = False
    reference_hz: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies_hz", tuple(map(float, self.frequencies_hz)))
        object.__setattr__(self, "response_db", tuple(map(float, self.response_db)))
        _refuse_no_response(self.frequencies_hz, self.response_db, self.name)
        if not self.digest:
            numbers = repr((self.frequencies_hz, self.response_db)).encode()
            object.__setattr__(self, "digest", hashlib.sha256(numbers).hexdigest())

    def __str__(self) -> str:
        when = "" if self.date is None else f" of {self.date}"
        how = ", inverted" if self.inverted else ""
        return f"corrected by {self.name}{when}{how} (sha256 {self.digest[:8]})"

    def at(self, reference_hz: float | None) -> "Correction":
        """A copy that does not change readings at this frequency."""
        return replace(self, reference_hz=reference_hz)

    def gain_db(self, hz: object) -> "NDArray[np.float64]":
        """The correction of readings in dB at `hz`, a number or an array."""
        import numpy as np  # slow to import

        def added(f: object) -> Any:
            over = np.log(np.maximum(np.asarray(f, float), self.frequencies_hz[0] / 2))
            given = np.interp(over, np.log(self.frequencies_hz), self.response_db)
            return given if self.inverted else -given

        there = 0.0 if self.reference_hz is None else added(self.reference_hz)
        gain: NDArray[np.float64] = added(hz) - there
        return gain

    @property
    def gains(self) -> "NDArray[np.float64]":
        """Points (n, 2) of hertz and dB, as `MicrophoneCorrection` takes them."""
        import numpy as np

        return np.stack([np.array(self.frequencies_hz), self.gain_db(self.frequencies_hz)], -1)

    def in_words(self) -> str:
        """A sentence about the largest correction."""
        heard = [f for f in self.frequencies_hz if REACH_HZ[0] <= f <= REACH_HZ[1]]
        hz = max(heard or self.frequencies_hz, key=lambda f: abs(float(self.gain_db(f))))
        gain = float(self.gain_db(hz))
        response = self.response_db[self.frequencies_hz.index(hz)]
        what = "raised" if gain > 0 else "lowered"
        words = f"{response:+.1f} dB at {_hertz(hz)} in {self.name}"
        if not round(gain, 1):
            return f"{words}: readings stay as they are within 0.05 dB"
        stays = "" if self.reference_hz is None else f", against {_hertz(self.reference_hz)}"
        return f"{words}: readings there are {what} by {abs(gain):.1f} dB{stays}"

    def to_dict(self) -> JsonDict:
        """Data for headers."""
        return {
            "name": self.name,
            "date": self.date,
            "sha256": self.digest,
            "inverted": self.inverted,
            "reference_hz": self.reference_hz,
        }


def _hertz(hz: float) -> str:
    return frequency_text(float(f"{hz:.3g}"))


def read_correction(path: str | Path, inverted: bool = False) -> Correction:
    """Read a response from lines of frequency, dB and perhaps a phase, which is ignored.

    Numbers are separated by commas, semicolons, blanks or tabs; the decimal sign is a point, or a
    comma if commas do not separate numbers. Lines that begin with one of COMMENTS, and text before
    the first numbers, are ignored. Raises CorrectionError for any other file.
    """
    path = Path(path)
    try:
        content = small_content(path)
        changed = require_file(path).st_mtime
    except NotThatFile as error:
        raise CorrectionError(f"the correction file {path} {error}") from error
    points = list(_points(path, content))
    return Correction(
        tuple(hz for hz, _ in points),
        tuple(db for _, db in points),
        path.name,
        datetime.fromtimestamp(changed, UTC).strftime("%Y-%m-%d"),
        hashlib.sha256(content).hexdigest(),
        inverted,
    )


def _points(path: Path, content: bytes) -> Iterator[tuple[float, float]]:
    """Yield frequency and dB of each line with numbers."""
    before = 0.0
    # Numbers are the same in all encodings; remarks may differ.
    for place, line in enumerate(decoded(content, errors="replace").splitlines(), 1):
        line = line.strip()
        if _QUOTED_NUMBERS.match(line):
            line = line.replace('"', "")
        if not line or line.startswith(COMMENTS):
            continue
        where = f"the correction file {path}, line {place}"
        try:
            hz, db = _numbers(line)
        except ValueError as error:
            if not before and not line[0].isdigit():
                continue  # text before the first numbers
            raise CorrectionError(f"{where}: {error}") from error
        if not hz > before:  # false for NaN too
            rule = "frequencies above 0 that rise from line to line"
            raise CorrectionError(f"{where}: {hz:g} Hz comes after {before:g} Hz: give {rule}")
        if not abs(db) <= LARGEST_DB:
            raise CorrectionError(f"{where}: {_too_much(hz, db)}")
        before = hz
        yield hz, db


def _numbers(line: str) -> tuple[float, float]:
    """Frequency and dB of a line. Raises ValueError unless it has two or three numbers."""
    fields = [one for one in _SPACE.split(line) if one]
    if len(fields) == 1:
        fields = line.split(",")
    shown = brief(line)
    if not 2 <= len(fields) <= 3:
        raise ValueError(
            f"{shown!r} has {counted(len(fields), 'number')}: give frequency in hertz, dB and "
            "perhaps a phase"
        )
    try:
        hz, db, *_ = map(decimal_number, fields)
    except ValueError as error:
        raise ValueError(f"{shown!r} is not numbers: give frequency in hertz and dB") from error
    return hz, db


def _refuse_no_response(hz: Sequence[float], db: Sequence[float], name: str) -> None:
    if len(hz) != len(db) or len(hz) < 2:
        raise CorrectionError(
            f"{name} has {counted(min(len(hz), len(db)), 'point')}: a response needs two or more, "
            "each a frequency in hertz and dB"
        )
    if not (hz[0] > 0 and all(a < b for a, b in pairwise(hz))):
        raise CorrectionError(f"{name}: the frequencies are not above 0 and rising")
    if not LEAST_HZ <= hz[-1] <= HIGHEST_HZ:
        raise CorrectionError(
            f"{name}: the frequencies end at {hz[-1]:g} Hz: give hertz, and a response to "
            f"{LEAST_HZ:g} Hz at least"
        )
    for f, one in zip(hz, db, strict=True):
        if not (math.isfinite(one) and abs(one) <= LARGEST_DB):
            raise CorrectionError(f"{name}: {_too_much(f, one)}")


def _too_much(hz: float, db: float) -> str:
    return (
        f"{db:g} dB at {hz:g} Hz is beyond +-{LARGEST_DB:g} dB: give a response about 0 dB, as "
        "that re 1 kHz, and no levels"
    )


def corrections_path() -> Path:
    """Path of the user's file: JSON lines, a response for each channel of each device."""
    return kept_path("corrections.jsonl")


def kept_corrections(path: Path | None = None) -> dict[tuple[str, int], Correction]:
    """The corrections in the user's file, by device and channel.

    Raises CalibrationError with file and line for an invalid line.
    """
    return dict(read_kept(path or corrections_path(), _kept))


def stored_corrections(
    devices: Collection[str], channels: Sequence[int]
) -> list[Correction | None]:
    """The stored correction of each channel of a device, by any of its identities."""
    kept = {channel: one for (name, channel), one in kept_corrections().items() if name in devices}
    return [kept.get(channel) for channel in channels]


def keep_corrections(
    device: str, corrections: Mapping[int, Correction | None], path: Path | None = None
) -> Path:
    """Store corrections of a device's channels atomically; None removes one."""
    path = path or corrections_path()
    merged: dict[tuple[str, int], Correction | None] = dict(kept_corrections(path))
    merged |= {(device, channel): one for channel, one in corrections.items()}
    left = {key: one for key, one in merged.items() if one is not None}
    return write_kept(
        path,
        [
            {"device": device, "channel": channel, **asdict(one.at(None))}
            for (device, channel), one in left.items()
        ],
    )


def _kept(given: JsonDict) -> tuple[tuple[str, int], Correction]:
    device, channel = given.pop("device", None), given.pop("channel", None)
    if not (isinstance(device, str) and type(channel) is int):
        raise ValueError("device or channel is missing")
    texts = [given.get(key) for key in ("name", "digest")]
    if not all(isinstance(text, str) for text in texts) or type(given.get("inverted")) is not bool:
        raise ValueError("name, digest or inverted is missing")
    if given.get("reference_hz") is not None:
        raise ValueError("reference_hz belongs to a calibration and is not stored here")
    return (device, channel), Correction(**given)
