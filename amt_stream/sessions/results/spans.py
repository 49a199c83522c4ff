"""Times of a measurement that do not count: gaps, pauses, excluded spans, models switched off."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S
from amt_stream.meters import catalog
from amt_stream.meters.frames import Fault
from amt_stream.sessions.counted_time import pauses
from amt_stream.sessions.results.results import UNCALIBRATED_SOUND, FaultySpan, Results, merged

LEFT_OUT = "gap", "silent", UNCALIBRATED_SOUND

Numbers = NDArray[np.float64]


class UncountedSpans:
    """Times of a measurement that do not count, and how much of other times counts."""

    def __init__(self, results: Results) -> None:
        self._results, self.rows = results, results.rows
        self.time_s: Numbers = results.rows["time_s"]

    def is_excluded(self, begin_s: Numbers, end_s: Numbers) -> NDArray[np.bool_]:
        """Which pieces of time reach into an excluded span."""
        excluded = np.zeros(len(end_s), np.bool_)
        for one in self._results.excluded:
            excluded |= (end_s > one.begin_s + SAME_S) & (begin_s < one.end_s - SAME_S)
        return excluded

    def kept(self, begin_s: float, end_s: float) -> list[tuple[float, float]]:
        """What excluded spans leave between two times."""
        spans, at_s = [], begin_s
        for one in self._results.excluded:
            spans.append((at_s, min(one.begin_s, end_s)))
            at_s = max(at_s, one.end_s)
        return [(a, b) for a, b in (*spans, (at_s, end_s)) if b > a + SAME_S]

    @cached_property
    def pauses(self) -> list[tuple[float, float]]:
        """Begin and end of each pause."""
        return pauses(sorted(self._results.events, key=lambda event: event.time_s))

    def gaps_of(self, model: str) -> list[tuple[float, float]]:
        """Begin and end of each gap in the sound, and of each uncalibrated stretch.

        A model of the digital signal needs no calibration.
        """
        left_out = LEFT_OUT if not model or catalog.is_in_pascal(model) else LEFT_OUT[:-1]
        return [(one.begin_s, one.end_s) for one in self._stretches if one.fault in left_out]

    @cached_property
    def _stretches(self) -> list[FaultySpan]:
        return self._results.stretches

    def off_of(self, model: str) -> list[tuple[float, float]]:
        """Begin and end of each time in which a model was switched off."""
        if model not in self._off:
            self._off[model] = self._off_spans(model)
        return self._off[model]

    @cached_property
    def _off(self) -> dict[str, list[tuple[float, float]]]:
        return {}

    def _off_spans(self, model: str) -> list[tuple[float, float]]:
        columns = self._results.columns.items()
        names = [n for n, one in columns if one.model == model and n in self.rows.columns]
        numbers = [self.rows[name] for name in names if self.rows[name].dtype.kind == "f"]
        off = (self.rows["fault"] & Fault.OFF) > 0
        if not (numbers and off.any()):
            return []
        # It has no values; other models go on.
        off &= np.isnan(numbers).all(axis=0)
        before_s = np.concatenate([[0.0], self.time_s[:-1]])
        edges = np.flatnonzero(np.diff(off, prepend=False, append=False)).tolist()
        return [
            (float(before_s[first]), float(self.time_s[end - 1]))
            for first, end in zip(edges[::2], edges[1::2], strict=True)
        ]

    def paused_s(self, begin_s: float, end_s: float) -> float:
        return sum(max(0.0, min(end_s, b) - max(begin_s, a)) for a, b in self.pauses)

    def counted_s(
        self, begin_s: Numbers, end_s: Numbers, model: str, rest: bool = False
    ) -> Numbers:
        """Seconds of sound in each piece that were present and counted by a model.

        rest: without excluded spans, which were counted when they were measured
        """
        seconds = end_s - begin_s
        excluded = [(one.begin_s, one.end_s) for one in self._results.excluded] if rest else []
        for a, b in merged([*self.gaps_of(model), *self.pauses, *self.off_of(model), *excluded]):
            seconds = seconds - np.clip(np.minimum(end_s, b) - np.maximum(begin_s, a), 0.0, None)
        return np.clip(seconds, 0.0, None)
