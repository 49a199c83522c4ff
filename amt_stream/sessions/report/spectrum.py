"""Third-octave levels as SVG: the equivalent and the highest level of each band."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from amt_stream.sessions.report import chart
from amt_stream.sessions.results import Results

WIDTH, HEIGHT = 720.0, 120.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 20.0, 20.0
AIR_DB = 3.0
EVERY = 3
"""Step between labeled bands: an octave."""


@dataclass(frozen=True)
class Band:
    """A band: its midband frequency in hertz, and its levels in dB; the highest may be None."""

    hz: float
    level_db: float
    highest_db: float | None


def bands(results: Results) -> list[Band]:
    """The bands with levels of the whole sound, in order of frequency."""
    values = results.summary or results.last
    whole = [one for one in results.known.values() if one.band_hz and not one.side]
    most = {
        (one.model, one.band_hz): values.get(one.name)
        for one in whole
        if (one.of, one.kind) == ("lzf", "max")
    }
    found = []
    for one in whole:
        value = values.get(one.name)
        if one.kind == "eq" and isinstance(value, (int, float)):
            highest = None if one.window else most.get((one.model, one.band_hz))
            found.append(Band(one.band_hz, float(value), highest))
    return sorted(found, key=lambda one: one.hz)


def spectrum(found: list[Band]) -> str:
    """The chart of bands as SVG."""
    title = "equivalent and highest level of each third octave"
    return chart.drawing(title, WIDTH, HEIGHT, _parts(found))


def _parts(bands: list[Band]) -> Iterator[str]:
    tops = [max(one.level_db, one.highest_db or one.level_db) for one in bands]
    low = min(one.level_db for one in bands) - AIR_DB
    high = max(tops) + AIR_DB
    step = chart.rounded(high - low, 5)
    wide = (WIDTH - LEFT - RIGHT) / len(bands)

    def y(level_db: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (level_db - low) / (high - low)

    for k in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield chart.segment(LEFT, y(k * step), WIDTH - RIGHT, y(k * step))
        yield chart.text(LEFT - 6, y(k * step) + 4, f"{k * step:g}", chart.SECOND, "end")
    for at, one in enumerate(bands):
        x = LEFT + at * wide
        yield (
            f'<rect x="{x + 0.15 * wide:.1f}" y="{y(one.level_db):.1f}" width="{0.7 * wide:.1f}" '
            f'height="{HEIGHT - BOTTOM - y(one.level_db):.1f}" fill="{chart.PALE}"/>'
        )
        if one.highest_db is not None:
            top = y(one.highest_db)
            yield chart.segment(x + 0.1 * wide, top, x + 0.9 * wide, top, chart.ACCENT, 1.6)
        if at % EVERY == 0:
            hz = f"{one.hz / 1000:g}k" if one.hz >= 1000 else f"{one.hz:g}"
            yield chart.text(x + wide / 2, HEIGHT - 5, hz, chart.SECOND, "middle")
    yield chart.text(LEFT - 6, TOP - 8, "dB", chart.INK, "end")
    yield chart.text(
        LEFT + 6, TOP - 7, "third octaves, Hz: equivalent and highest level (F)", chart.INK
    )
