"""Totals that only grow, so that clients may poll them at any rate."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.accumulators.sound_level import MEMORY_S
from amt_stream.meters.frames import Frames
from amt_stream.meters.level_names import WEIGHTINGS
from amt_stream.meters.names import sides_of
from amt_stream.meters.rows import Readings
from amt_stream.meters.rows.models.loudness import LoudnessReadings
from amt_stream.meters.rows.models.sound_level import SoundLevelReadings
from amt_stream.meters.rows.models.zwicker import ZwickerReadings

EDGES_SONE = 2.0 ** (np.arange(-16, 33) / 4)
"""Upper edges of the classes of loudness: 0.0625 to 256 sone, from 1 sone in steps of 2.5 phon."""

Values = NDArray[np.float64]


@thread_checked
class Totals:
    """Sound exposure and a histogram of loudness, of the same sound as the rows.

    Microphones are by name, "" if there is only one. Nothing is ever reset: a new measurement
    continues the totals. Paused time does not count.

    exposure: by microphone and channel ("left", "right", or "" for one channel), A, C and Z
        weighted, in Pa^2 s (3,)
    measured: by microphone, number of frames of 10 ms that exposure covers
    loudness: by microphone and model, the number of frames in each class (50,), the last one above
        all edges, and their sum in sone; of long-term loudness or Zwicker's, in the louder channel
    """

    def __init__(self) -> None:
        self.exposure: Mapping[tuple[str, str], Values] = {}
        self.measured: Mapping[str, int] = {}
        self.loudness: Mapping[tuple[str, str], tuple[NDArray[np.int64], float]] = {}

    def take(self, frames: Frames, readings: Readings) -> None:
        """Count frames that the readings count too [sink-thread]."""
        if readings.paused or not len(frames):
            return
        if isinstance(readings, SoundLevelReadings):
            self._expose(frames, readings)
        elif isinstance(readings, LoudnessReadings):
            self._sort(frames, readings, frames.values.ltl)
        elif isinstance(readings, ZwickerReadings):
            self._sort(frames, readings, np.max(frames.values.n, axis=0))

    def _expose(self, frames: Frames, readings: Readings) -> None:
        squares = np.asarray(frames.values.mean_square, np.float64)
        counts = readings.counted(frames, MEMORY_S) & np.isfinite(squares).all((0, 1))
        of_each = np.where(counts, squares, 0.0).sum(axis=-1) * FRAME_S
        exposure, microphone = dict(self.exposure), frames.microphone
        for side, of_one in zip(sides_of(len(of_each))[-len(of_each) :], of_each, strict=True):
            before = exposure.get((microphone, side), np.zeros(len(WEIGHTINGS)))
            exposure[microphone, side] = before + of_one
        measured = self.measured.get(microphone, 0) + int(np.count_nonzero(counts))
        # Replaced and not changed, as another thread may be reading them.
        self.exposure = exposure
        self.measured = {**self.measured, microphone: measured}

    def _sort(self, frames: Frames, readings: Readings, sone: NDArray[np.floating]) -> None:
        there = sone[readings.counted(frames) & np.isfinite(sone)]
        places = np.searchsorted(EDGES_SONE, there)
        key = frames.microphone, readings.model
        counts, total = self.loudness.get(key, (np.zeros(len(EDGES_SONE) + 1, np.int64), 0.0))
        counts = counts + np.bincount(places, minlength=len(counts))
        total += float(there.sum(dtype=np.float64))
        self.loudness = {**self.loudness, key: (counts, total)}
