"""The part of docs/conformance.md, with its pictures, that shows other programs and recordings.

It is made from docs/others.json and docs/recordings.json, which `tools/others.py` writes.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COLORS = {"ours": "#3b0f7a", "mosqito": "#f59e55", "phonometry": "#0a66c2"}
COLORS |= {"torch_amt": "#2a9d8f", "pyloudnorm": "#c81e2b"}
TEXT = """
## Other programs

Other programs and ours measured the same sounds, each where it has the reading.
Deviations are from the value of the standard or of the independent calculation: in LU for LUFS,
otherwise in per cent. `python tools/others.py` runs the programs ({programs}).

![Deviations of other programs and of ours](pictures/conformance_others.svg)

{others}

## A type-approved sound level meter

An NTi XL2-TA recorded signals of a generator and printed its readings of them, to 0.1 dB.
Recordings and readings are those of ninoblumer/python-soundlevelmeter, data/slm-test-01;
full scale is 125.09 dB. A difference is our reading minus the meter's.
The meter's filters had settled before a recording began; ours start with it.
The recording of the tone starts within a period, as a step: so LZPKmax differs, and only the band
of the tone is compared. From 1 s on, all peaks of the tone agree within 0.1 dB.
The Z weighting of the meter has another lower limit than ours.

![Differences from the meter in bands](pictures/conformance_meter.svg)

{meter}

## Recordings of ISO 532-1

The highest loudness in sone of the recordings of Annex B.4 and B.5: the printed value, and what
the programs read. The recordings come with the standard and are not in this repository;
`AMT_ISO532_1=FOLDER python tools/others.py` reads them.

![Deviations from the printed loudness of recordings](pictures/conformance_recordings.svg)

{iso532_1}
"""


def kept(name: str) -> dict[str, list[Line]]:
    parts: dict[str, list[Line]] = json.loads((DOCS / name).read_text(encoding="utf-8"))
    return parts


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def deviation(one: Line, got: float) -> float:
    """In per cent; of LUFS, in LU."""
    off: float = got - one["expected"]
    return off if one["unit"] == "LUFS" else 100 * off / one["expected"]


def in_groups(readings: Sequence[Line]) -> Iterator[tuple[str, str, str, list[Line]]]:
    """Model, reading, program and lines of each group, in order."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for one in readings:
        groups.setdefault((one["model"], one["reading"], one["program"]), []).append(one)
    for key, lines in groups.items():
        yield (*key, lines)


def worst(values: Iterable[float]) -> float:
    return max(values, key=abs)


def by_reading(ours: Sequence[Line]) -> dict[tuple[str, str, str], float]:
    """What we read, in the first way that was played."""
    return {
        (one["model"], one["sound"], one["reading"]): next(iter(one["got"].values()))
        for one in ours
    }


def other_rows(readings: Sequence[Line], ours: Sequence[Line]) -> Iterator[Sequence[str]]:
    read = by_reading(ours)
    for model, reading, program, lines in in_groups(readings):
        unit = "LU" if lines[0]["unit"] == "LUFS" else "%"
        theirs = [deviation(one, one["got"]) for one in lines]
        same = [deviation(one, read[model, one["sound"], reading]) for one in lines]
        middle = sorted(map(abs, theirs))[len(theirs) // 2]
        middle_of_ours = sorted(map(abs, same))[len(same) // 2]
        yield (
            *(f"`{model}`", reading, f"{program} {lines[0]['version']}", f"{len(lines)}"),
            *(f"{middle:.2g} {unit}", f"{worst(theirs):+.2g} {unit}"),
            *(f"{middle_of_ours:.2g} {unit}", f"{worst(same):+.2g} {unit}"),
        )


def meter_rows(lines: Sequence[Line]) -> Iterator[Sequence[str]]:
    for bands in (False, True):
        for sound in dict.fromkeys(one["sound"] for one in lines):
            of = {
                one["reading"]: one["ours"] - one["meter"]
                for one in lines
                if one["sound"] == sound and (" at " in one["reading"]) is bands
            }
            furthest = max(of, key=lambda name: abs(of[name]))
            rms = math.sqrt(sum(d * d for d in of.values()) / len(of))
            kind = "LZeq of bands" if bands else "levels"
            yield sound, kind, f"{len(of)}", f"{rms:.2f} dB", f"{of[furthest]:+.2f} dB, {furthest}"


def iso_rows(lines: Sequence[Line], programs: Sequence[str]) -> Iterator[Sequence[str]]:
    for one in lines:
        read = (f"{one[name]:.4f} ({one[name] / one['printed'] - 1:+.3%})" for name in programs)
        yield f"{one['signal']}", one["sound"], f"{one['printed']:.4f}", *read


def programs_of(lines: Sequence[Line]) -> list[str]:
    return [name for name in lines[0] if name in COLORS]


def markdown(ours: Sequence[Line]) -> str:
    """The part of the page; `ours` is what docs/conformance.json has."""
    readings, found = kept("others.json")["readings"], kept("recordings.json")
    versions = dict.fromkeys(f"{one['program']} {one['version']}" for one in readings)
    columns = ["model", "reading", "program", "values", "median", "largest"]
    iso = found["iso532_1"]
    return TEXT.format(
        programs=", ".join(versions),
        others=table([*columns, "median of ours", "largest of ours"], other_rows(readings, ours)),
        meter=table(
            ["recording", "readings", "values", "root mean square", "largest difference"],
            meter_rows(found["meter"]),
        ),
        iso532_1=table(
            ["signal", "sound", "printed", *programs_of(iso)], iso_rows(iso, programs_of(iso))
        ),
    )


def draw(ours: Sequence[Line]) -> None:
    """The three pictures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "amt_stream"
    from matplotlib import pyplot

    readings, found = kept("others.json")["readings"], kept("recordings.json")
    read = by_reading(ours)

    def save(figure: Any, name: str) -> None:
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(color="#eeeeee")
            axes.set_axisbelow(True)
        figure.savefig(DOCS / "pictures" / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)

    groups = list(dict.fromkeys((one["model"], one["reading"]) for one in readings))
    figure, rows = pyplot.subplots(
        len(groups), 1, figsize=(8, 1.5 * len(groups)), layout="constrained", squeeze=False
    )
    for axes, (model, reading) in zip(rows[:, 0], groups, strict=True):
        lines = [one for one in readings if (one["model"], one["reading"]) == (model, reading)]
        programs = list(dict.fromkeys(one["program"] for one in lines))
        same = {one["sound"]: one for one in lines}
        dots = {"ours": [deviation(o, read[model, o["sound"], reading]) for o in same.values()]}
        for name in programs:
            dots[name] = [deviation(o, o["got"]) for o in lines if o["program"] == name]
        for place, (name, values) in enumerate(dots.items()):
            axes.plot(values, [place] * len(values), "o", color=COLORS[name], alpha=0.5)
        axes.axvline(0, color="#999999")
        axes.set_yticks(range(len(dots)), list(dots))
        axes.set_ylim(len(dots) - 0.5, -0.5)
        largest = max(abs(v) for values in dots.values() for v in values)
        if largest > 1:
            axes.set_xscale("symlog", linthresh=0.1)
        unit = "LU" if lines[0]["unit"] == "LUFS" else "%"
        axes.set_title(f"{model}, {reading}: deviation in {unit}", fontsize=9, loc="left")
    save(figure, "conformance_others")

    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    for sound, color, mark in zip(
        dict.fromkeys(one["sound"] for one in found["meter"]),
        ("#3b0f7a", "#de4968", "#f59e55", "#0a66c2"),
        "os^D",
        strict=True,
    ):
        bands = [o for o in found["meter"] if o["sound"] == sound and " at " in o["reading"]]
        hz = [float(one["reading"].split()[-2]) for one in bands]
        axes.semilogx(hz, [o["ours"] - o["meter"] for o in bands], mark, color=color, label=sound)
    axes.axhline(0, color="#999999")
    axes.set_ylim(-1.5, 1.5)
    axes.set_xlabel("band (Hz)")
    axes.set_ylabel("LZeq, ours minus the meter's (dB)")
    axes.legend(frameon=False, fontsize=8)
    save(figure, "conformance_meter")

    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    iso = found["iso532_1"]
    for name, mark in zip(programs_of(iso), "osD", strict=False):
        off = [100 * (one[name] / one["printed"] - 1) for one in iso]
        axes.plot([one["signal"] for one in iso], off, mark, color=COLORS[name], label=name)
    axes.axhline(0, color="#999999")
    axes.ticklabel_format(axis="y", style="plain")
    axes.set_xticks([one["signal"] for one in iso])
    axes.set_xlabel("test signal of ISO 532-1, Annex B.4 and B.5")
    axes.set_ylabel("deviation of Nmax (%)")
    axes.legend(frameon=False, fontsize=8)
    save(figure, "conformance_recordings")
