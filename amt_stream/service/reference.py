"""A periodic check of the same models with a reference tone, beside the measurement."""

import asyncio
import math
from collections.abc import Mapping

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.engine import Engine
from amt_stream.engine.sinks.feed import RowSink
from amt_stream.engine.sources import SignalSource
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import reading_text, readings_of
from amt_stream.meters.signals import Tone
from amt_stream.service.station import Station

TONE = Tone(level_db=60.0, frequency=1000.0)
TONE_S = 2.0
WORDS = "1 kHz at 60 dB SPL reads"
STEP_MS = 500
APART = 1e-6
"""Relative tolerance; intact stages read the same to the last bit."""


def read_tone(preset: Preset, fs: int, ears: int) -> dict[str, float]:
    """Readings of new models of a preset 2 s after the start of the tone.

    The tone is 1 kHz at 60 dB SPL in all ears, or 70 dB below a full-scale sine for models that
    take full scale. Statistics are left out.
    """
    channels = min(ears, 2)
    rows: list[JsonDict] = []
    source = SignalSource([TONE], fs, TONE_S, paced=False, name="reference tone")
    sinks = [RowSink(rows.append, STEP_MS)]
    models = preset.models(fs, channels)
    with Engine(source, models, sinks, channels=range(1, channels + 1)) as engine:
        engine.wait()
    momentary = {
        column.name
        for readings in readings_of(preset.names, channels, models=models).values()
        for column in readings.columns
        if column.statistic == "instantaneous"
    }
    values = rows[-1] if rows else {}
    return {k: v for k, v in values.items() if k in momentary and isinstance(v, float)}


@thread_checked
class ReferenceTone:
    """Measures the tone at the start and then periodically, and reports the readings.

    An event "checked" has the readings as text. If one differs from the start, the event is
    "check failed", and the station has a fault until the readings agree again.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._first: dict[str, float] = {}
        self._of: tuple[Preset, int, int] | None = None

    async def follow(self, station: Station) -> None:
        """Check until cancelled [loop-thread]."""
        while True:
            await asyncio.sleep(1.0)
            table = station.table
            if table is None or not station.running or station.preset.stages:
                continue
            layouts = table.sound.layouts(station.preset.names).values()
            ears = max(layout.channels for layout in layouts)
            await self._hear(station, (station.preset, table.sound.fs, ears))
            await asyncio.sleep(self._every_s)

    async def _hear(self, station: Station, asked: tuple[Preset, int, int]) -> None:
        try:
            found = await asyncio.to_thread(read_tone, *asked)
        except Exception as error:  # of any kind: the measurement continues
            station.trouble = f"the reference tone could not be measured: {error}"
            station.tell("check failed", station.trouble)
            return
        if asked != self._of:
            self._of, self._first = asked, found
        wrong = [name for name, first in self._first.items() if not same(first, found.get(name))]
        if wrong:
            at_first = _in_words({name: self._first[name] for name in wrong})
            station.trouble = f"{WORDS} {_in_words(found)}, and at the start {at_first}"
            station.tell("check failed", station.trouble)
        else:
            station.trouble = ""
            station.tell("checked", f"{WORDS} {_in_words(found)}, as at the start")


def same(first: float, now: float | None) -> bool:
    """Whether two readings agree."""
    return now is not None and math.isclose(first, now, rel_tol=APART, abs_tol=APART)


def _in_words(values: Mapping[str, float]) -> str:
    """Readings with their names, as text."""
    return ", ".join(f"{name} {reading_text(name, value)}" for name, value in values.items())
