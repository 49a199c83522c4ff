"""Models and their rows as an engine has them, without its threads."""

import math
from dataclasses import replace

import torch

from amt_stream.dsp.models import Glasberg2002, Moore2016, ZwickerTimeVarying
from amt_stream.dsp.stages import BS1770, NarrowBandSpectrum, SoundLevel, ThirdOctaves
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.catalog import entry
from amt_stream.meters.rows import Intervals, JoinedRows, Rows, choose, readings_of
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, SourceDescription
from tests.engine.measuring import measuring

FS = 48000
FULL_SCALE = Calibration(120.0, source="test")
CLIPPING = replace(SourceDescription.of_signal(1), clips_at=DEVICE_CLIPS_AT)
MODELS = {
    "moore2016": lambda: Moore2016(fs=FS),
    "gm2002": lambda: Glasberg2002(fs=FS),
    "zwicker": lambda: ZwickerTimeVarying(FS),
    "bs1770": lambda: BS1770(FS, 1),
    "spl": lambda: SoundLevel(FS),
    "third_octave": lambda: ThirdOctaves(FS),
    "spectrum": lambda: NarrowBandSpectrum(FS),
}


def _model(name: str):
    """One of MODELS, or another one of the catalog."""
    return MODELS[name]() if name in MODELS else entry(name).build(FS, channels=1)


class Meters:
    """Models by name on one channel of sound, and their rows: an engine without its threads."""

    def __init__(
        self,
        names,
        step_ms=10,
        columns=None,
        block_ms=10.0,
        pass_on=lambda frames: [frames],
        interval=None,
        epoch=lambda audio_s: math.nan,
    ):
        readings = readings_of(names, 1)
        if columns is not None:
            choose(readings, columns)
        intervals = None if interval is None else Intervals(readings_of(names, 1), interval)
        self.table = JoinedRows(readings, step_ms, FS, intervals=intervals)
        self.size = round(block_ms * FS / 1000)
        self.parts, self.pass_on = [], pass_on
        self.measurements = [
            measuring(
                ReadyStage(_model(name), FS, block_ms, 1),
                self.emit,
                FULL_SCALE,
                slice(0, 1),
                offered=1,
                description=CLIPPING,
                epoch=epoch,
                name=name,
            )
            for name in names
        ]

    def emit(self, frames):
        self.parts += [self.table(one) for one in self.pass_on(frames)]

    def take(self, x, lost=0, flags=0):
        with torch.inference_mode():
            for at in range(0, max(1, len(x)), self.size):
                for one in self.measurements:
                    one.take(x[at : at + self.size, None], lost, flags)
                lost = flags = 0

    @property
    def rows(self):
        return Rows.concatenated(self.parts, self.table.names)
