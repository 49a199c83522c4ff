"""Mean powers of consecutive pieces of sound, from rows or a table of intervals."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S
from amt_stream.meters.rows.block import unix_s
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.sessions.results.results import Results
from amt_stream.sessions.results.spans import Numbers, UncountedSpans

FINEST_S = 1.0
"""The longest window of levels that are taken before differences of an accumulated one."""


@dataclass(frozen=True)
class Pieces:
    """Mean powers re (20 uPa)^2 of consecutive pieces of sound (n,).

    begin_s, end_s: bounds in seconds of sound
    measured_s: measured duration
    utc_s: Unix time of the end, NaN if unknown
    how: description of the source
    """

    begin_s: Numbers
    end_s: Numbers
    utc_s: Numbers
    measured_s: Numbers
    power: Numbers
    how: str

    def level_db(self, begin_s: float, end_s: float) -> float | None:
        """The equivalent level between two times; pieces across a bound count in proportion."""
        overlap = np.minimum(self.end_s, end_s) - np.maximum(self.begin_s, begin_s)
        share = np.clip(overlap, 0.0, None) / np.maximum(self.end_s - self.begin_s, SAME_S)
        weight = share * self.measured_s
        if not weight.sum() > 0:
            return None
        mean = float((self.power * weight).sum() / weight.sum())
        return 10 * math.log10(mean) if mean > 0 else None


class PiecesOfRows:
    """Makes pieces of the equivalent levels of `results`, a measurement."""

    def __init__(self, results: Results, spans: UncountedSpans) -> None:
        self.results, self._spans, self.rows = results, spans, results.rows
        self.time_s: Numbers = results.rows["time_s"]

    def best(self) -> Pieces | None:
        """A-weighted mean powers from the best source; None without one."""
        return self.of_intervals() or self.of_rows()

    def of_rows(self) -> Pieces | None:
        """A-weighted mean powers from the rows, ignoring a table of intervals."""
        return self.of("laeq_db") if "laeq_db" in self.results.known else None

    def of_intervals(self, name: str = "laeq_db") -> Pieces | None:
        """Mean powers of a level in a table of intervals; None without one."""
        table = self.results.intervals
        if table is None or not len(table) or name not in table.columns:
            return None
        seconds = self.results.header["interval"]["seconds"]
        utc_s = unix_s(table["utc"]) + table["end_s"] - table["time_s"]
        power = _power(table[name])
        spans = table["time_s"], table["end_s"], utc_s, table["measured_s"], power
        whose = "the log's own" if len(self.rows) else "a table of"
        return Pieces(*spans, f"{whose} intervals of {seconds} s")

    def of(self, name: str) -> Pieces | None:
        """Pieces of an equivalent level; those that reach into an excluded span measure 0 s."""
        if name not in self._made:
            made = self._make_pieces(name)
            if made is not None:
                excluded = self._spans.is_excluded(made.begin_s, made.end_s)
                made = replace(made, measured_s=np.where(excluded, 0.0, made.measured_s))
            self._made[name] = made
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Pieces | None]:
        return {}

    def _make_pieces(self, name: str) -> Pieces | None:
        quantity, step_s = self.results.known[name].quantity, self.results.step_s
        windows = {
            column.window_s: other
            for other, column in self.results.columns.items()
            if column.quantity == quantity and column.statistic.startswith(EQUIVALENT)
            if other in self.rows.columns
        }
        counting = windows.pop(0.0, None)
        whole = [w for w in windows if w >= step_s and math.isclose(w / step_s, round(w / step_s))]
        # An excluded span must not reach far into what is beside it.
        fine = [w for w in whole if w <= FINEST_S] if self.results.excluded and counting else whole
        if fine:
            window = min(fine)
            each = round(window / step_s)
            steps = np.rint(self.time_s / step_s).astype(np.int64)
            places = np.flatnonzero((steps % each == 0) & (steps > 0))
            return self._windows(windows[window], places, window, windows[window])
        if counting is not None:
            return self._differences(counting)
        if windows and not self.results.excluded:
            window = max(windows)
            how = f"{windows[window]}, of {window:g} s every {step_s:g} s"
            return self._windows(windows[window], np.flatnonzero(self.time_s > 0), step_s, how)
        if name != "laeq_db" or "laf_db" not in self.rows.columns:
            return None
        how = f"laf_db every {1000 * step_s:g} ms"
        return self._windows("laf_db", np.flatnonzero(self.time_s > 0), step_s, how)

    def _windows(self, name: str, places: NDArray[np.int64], window_s: float, how: str) -> Pieces:
        values = self.rows[name][places]
        places, values = places[np.isfinite(values)], values[np.isfinite(values)]
        end_s = self.time_s[places]
        begin_s = np.maximum(end_s - window_s, 0.0)
        utc_s = unix_s(self.rows["utc"][places])
        heard_s = self._spans.counted_s(begin_s, end_s, self.results.known[name].model)
        return Pieces(begin_s, end_s, utc_s, heard_s, _power(values), how)

    def _differences(self, name: str) -> Pieces:
        """Pieces of an accumulated level: the energy added since the row before."""
        values = self.rows[name]
        places = np.flatnonzero(np.isfinite(values) & (self.time_s > 0))
        end_s, utc_s = self.time_s[places], unix_s(self.rows["utc"][places])
        begin_s = np.concatenate(
            [
                [min(one["from_s"] for one in self.results.header["statistics"].values())],
                end_s[:-1],
            ]
        )[: len(end_s)]
        heard_s = self._spans.counted_s(begin_s, end_s, self.results.known[name].model)
        total_s = np.concatenate([[0.0], np.cumsum(heard_s)])
        # The begin of the accumulation: the start, or the last reset.
        resets = np.array(
            [0.0, *(e.time_s for e in self.results.events if e.kind == "readings_reset")]
        )
        since = np.searchsorted(resets, end_s, side="left") - 1
        counted_s = total_s[1:] - total_s[np.searchsorted(end_s, resets)[since]]
        energy = _power(values[places]) * counted_s
        begins = np.diff(since, prepend=-1) > 0
        came = np.where(begins, energy, np.diff(energy, prepend=0.0))
        power = np.clip(came, 0.0, None) / np.maximum(heard_s, SAME_S)
        how = f"changes of {name} from row to row"
        return Pieces(begin_s, end_s, utc_s, heard_s, np.where(heard_s > 0, power, 0.0), how)


def _power(level_db: NDArray[np.floating]) -> Numbers:
    return np.where(np.isfinite(level_db), 10.0 ** (np.nan_to_num(level_db) / 10.0), 0.0)
