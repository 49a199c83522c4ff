"""A reference tone, heard now and then by the same models beside the measurement."""

import asyncio
import math
from collections.abc import Mapping

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.engine import Engine
from amt_stream.engine.feed import RowSink
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
"""Relative; the same stages read the same to the last bit, unless something befell them."""


def read_tone(preset: Preset, fs: int, ears: int) -> dict[str, float]:
    """What new models of a preset read of the tone, 2 s after its start, by column.

    1 kHz at 60 dB SPL in all ears, which is 70 dB below a full-scale sine to a model that hears
    that. What accumulates is left out.
    """
    heard = min(ears, 2)
    rows: list[JsonDict] = []
    source = SignalSource([TONE], fs, TONE_S, paced=False, name="reference tone")
    sinks = [RowSink(rows.append, STEP_MS)]
    models = preset.models(fs, heard)
    with Engine(source, models, sinks, channels=range(1, heard + 1)) as engine:
        engine.wait()
    momentary = {
        column.name
        for readings in readings_of(preset.names, heard, models=models).values()
        for column in readings.columns
        if column.statistic == "instantaneous"
    }
    values = rows[-1] if rows else {}
    return {k: v for k, v in values.items() if k in momentary and isinstance(v, float)}


@thread_checked
class ReferenceTone:
    """Hears the tone at the start and then every so many seconds, and tells what it read.

    An event "checked" has the readings in words. Where one is another than at the start, it is an
    event "check failed", and the station is not well until it is the same again.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._first: dict[str, float] = {}
        self._of: tuple[Preset, int, int] | None = None

    async def follow(self, station: Station) -> None:
        """Go on until it is cancelled [loop-thread]."""
        while True:
            await asyncio.sleep(1.0)
            table = station.table
            if table is None or not station.running or station.preset.stages:
                continue
            await self._hear(station, (station.preset, table.sound.fs, table.ears))
            await asyncio.sleep(self._every_s)

    async def _hear(self, station: Station, asked: tuple[Preset, int, int]) -> None:
        try:
            found = await asyncio.to_thread(read_tone, *asked)
        except Exception as error:  # whatever it is, the measurement goes on
            station.trouble = f"the reference tone could not be heard: {error}"
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
    """Whether a reading is as it was."""
    return now is not None and math.isclose(first, now, rel_tol=APART, abs_tol=APART)


def _in_words(values: Mapping[str, float]) -> str:
    """Readings with their names."""
    return ", ".join(f"{name} {reading_text(name, value)}" for name, value in values.items())
