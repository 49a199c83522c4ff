"""Comparisons with recordings that are not handed on here, where a folder has them.

AMT_XL2 names a folder with those of github.com/ninoblumer/python-soundlevelmeter,
data/slm-test-01: recordings of a type-approved sound level meter, an NTi XL2-TA, beside the
reports that it printed. AMT_ISO532_1 names one with the recordings of ISO 532-1:2017, Annex B.4
and B.5, which come with the standard, and with MoSQITo.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

METER_FULL_SCALE_DB = 125.09
"""Level of a full-scale sine: the names of the meter's files have its peak, 128.1 dB."""
METER_SOUNDS = {  # by number, as its author describes them
    0: "tone of 1 kHz, 94 dB",
    3: "pink noise",
    4: "pink noise, 54 dB lower",
    5: "pink noise, 54 dB lower, octaves",
}
NOT_OURS = ("Prev", '"', "'", "ImpPen", "Low", "Overload", "Date", "Time")

ISO_FULL_SCALE_DB = 100.0
PRINTED = "14.3592 15.9534 23.9501 29.3141 4.2998 5.9746 8.0772 9.9756 22.6399 9.6059 38.5363 "
PRINTED += "11.2105 12.6468 10.8817 14.8802 9.7188 8.9063 11.1858 9.2751 7.2593"
NMAX = dict(zip(range(6, 26), map(float, PRINTED.split()), strict=True))
"""In sone, by the number of the signal, as jmrplens/phonometry (MIT) has transcribed it."""
DIFFUSE = 15
"""The signal in a diffuse field; the others are in a free one."""

Sound = NDArray[np.float64]
Program = Callable[[Sound, int, str], dict[str, float]]
"""The readings of a sound (channel, time) in pascal, by rate and field; `Nmax` is one of them."""


class Report(NamedTuple):
    """A recording of the meter, and what it printed.

    broadband: its readings by the names that it gives them
    bands: by name and nominal frequency; `octaves` if they are octaves
    """

    number: int
    path: Path
    broadband: dict[str, float]
    bands: dict[tuple[str, float], float]
    octaves: bool


def reports(folder: Path) -> Iterator[Report]:
    """The recordings of a folder that hold sound, in order."""
    for path in sorted(folder.glob("*_Audio_*.wav")):
        if path.stat().st_size:
            stem = path.stem.split("_Audio")[0]
            octaves = (folder / f"{stem}_RTA_Oct_Report.txt").exists()
            bands = folder / f"{stem}_RTA_{'Oct' if octaves else '3rd'}_Report.txt"
            broadband = folder / f"{stem}_123_Report.txt"
            number = int(stem[-3:])
            yield Report(number, path, printed(broadband), printed_bands(bands), octaves)


def cells(path: Path) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("\t")]
        for line in path.read_text(encoding="latin-1").splitlines()
    ]


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def printed(path: Path) -> dict[str, float]:
    """The broadband readings of a report by the names that the meter gives them."""
    rows = cells(path)
    at = next(k for k, row in enumerate(rows) if "LAeq" in row)
    values = ((n, number(v)) for n, v in zip(rows[at], rows[at + 2], strict=False))
    return {name: value for name, value in values if name and value is not None}


def printed_bands(path: Path) -> dict[tuple[str, float], float]:
    """Readings of bands: by name and nominal frequency."""
    rows = cells(path)
    at = next(k for k, row in enumerate(rows) if "Band [Hz]" in row)
    hz = [float(cell) for cell in rows[at][2:] if cell]
    found = {}
    for row in rows[at + 2 :]:
        if len(row) > 2 and row[1].startswith("LZ"):
            for f, cell in zip(hz, row[2:], strict=False):
                if (value := number(cell)) is not None:
                    found[row[1], f] = value
    return found


def ours(name: str) -> str | None:
    """Our name of one of its readings; None for what we do not have."""
    if any(part in name for part in NOT_OURS):
        return None
    stem = name.lower().replace("%", "").replace("pkmax", "peak").removesuffix(".0")
    first, _, second = stem.partition("-")
    return f"{first}_minus_{second}_db" if second else f"{first}_db"


def broadband(report: Report) -> dict[str, tuple[float, float]]:
    """What the meter printed and what we read, by its names of the readings."""
    import soundfile

    from amt_stream import measure

    readings = {name: key for name in report.broadband if (key := ours(name))}
    x, fs = soundfile.read(report.path)
    columns = [key for name, key in readings.items() if "%" in name]
    calibration: Any = METER_FULL_SCALE_DB
    summary = measure(x, fs, "spl", calibration=calibration, columns=columns).summary
    return {
        name: (report.broadband[name], summary[key])
        for name, key in readings.items()
        if key in summary
    }


def bands(report: Report) -> dict[tuple[str, float], tuple[float, float]]:
    """The same for bands, by name and nominal frequency."""
    import soundfile

    from amt_stream import measure
    from amt_stream.dsp.design import band_name

    x, fs = soundfile.read(report.path)
    model, prefix = ("octave", "octave_") if report.octaves else ("third_octave", "")
    calibration: Any = METER_FULL_SCALE_DB
    summary = measure(x, fs, model, calibration=calibration).summary
    found = {}
    for (name, f), value in report.bands.items():
        key = f"{prefix}{name.lower()}_{band_name(f)}_db"
        if key in summary:
            found[name, f] = (value, summary[key])
    return found


def meter_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """A line for each reading of each recording of the meter."""
    for report in reports(folder):
        sound = METER_SOUNDS[report.number]
        for name, (theirs, read) in broadband(report).items():
            yield line(sound, name, theirs, read)
        for (name, f), (theirs, read) in bands(report).items():
            # A tone that is there at once: all bands but its own hear the click of its start.
            if name == "LZeq" and (report.number > 0 or f == 1000):
                yield line(sound, f"LZeq at {f:g} Hz", theirs, read)


def line(sound: str, reading: str, theirs: float, read: float) -> dict[str, Any]:
    return {"sound": sound, "reading": reading, "meter": theirs, "ours": round(read, 3)}


def iso_lines(folder: Path, programs: Mapping[str, Program]) -> Iterator[dict[str, Any]]:
    """A line for each recording of ISO 532-1, with the highest loudness that each program reads."""
    import soundfile

    for path in sorted(folder.rglob("Test signal *.wav"), key=signal_number):
        at = signal_number(path)
        if at in NMAX:
            x, fs = soundfile.read(path)
            pascal = x[None] * 2**0.5 * 20e-6 * 10 ** (ISO_FULL_SCALE_DB / 20)
            field = "diffuse" if at == DIFFUSE else "free"
            read = {n: round(float(of(pascal, fs, field)["Nmax"]), 4) for n, of in programs.items()}
            named = re.search(r"\((.+)\)", path.name)
            yield {"signal": at, "sound": named[1] if named else "", "printed": NMAX[at], **read}


def signal_number(path: Path) -> int:
    found = re.match(r"Test signal (\d+)", path.name)
    return int(found[1]) if found else 0
