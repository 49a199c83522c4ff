"""The table of intervals: statistics and measured duration of each."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from amt_stream.core.clock import SAME_S, Interval, local_text, zone_text
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.meters.annoyance import annoyances
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.block import FAULT_TEXTS, MICROPHONE, Rows, in_seven_digits, utc_text
from amt_stream.meters.rows.column import EQUIVALENT, Column
from amt_stream.meters.rows.readings import RELATIVE, Readings

SPANS = (
    Column("time_s", "s", "when the interval begins, in seconds of sound since the first sample"),
    Column("utc", "", "when it begins, in UTC"),
    Column("local", "", "when it begins, by the clock of the table"),
    Column("end_s", "s", "when it ends, in seconds of sound since the first sample"),
    Column("measured_s", "s", "how much of it was measured"),
    Column("excluded_s", "s", "how much of it was lost, or left out after a fault"),
    Column("paused_s", "s", "how much of it was left out by a pause"),
    Column("partial", "", "whether it is not a whole interval of the clock, as the first and last"),
)
BEFORE = tuple(column.name for column in SPANS)
"""Columns before the readings."""

AFTER = ("fault", "calibrated")
"""Columns after them."""

COUNTED = ("measured_s", "excluded_s", "paused_s")

CLOCK_S = 0.002
"""Resolution of UTC in seconds."""

SHORT = 0.999
"""Tolerance of the length of an interval: it has less sound if the clock was changed."""


@dataclass
class _IntervalTrack:
    """Statistics of one model for the current interval and earlier ones.

    results: results of each interval whose end this model has reached, but another has not
    """

    reached_s: float = -math.inf
    paused_s: float = 0.0
    fault: int = 0
    empty: bool = True
    results: list[JsonDict] = field(default_factory=list)


@dataclass
class _End:
    """The end of an interval: in seconds of sound, and in UTC.

    on_time: whether it is a regular time of the clock
    """

    time_s: float
    utc_s: float
    on_time: bool = True


class _Ends:
    """When intervals end: by the clock, or in elapsed time.

    begin: of the current interval
    waiting: ends that some model has not reached
    from_s, to_s: the part of the sound that is covered
    """

    def __init__(self, interval: Interval, elapsed: bool) -> None:
        self._interval, self.elapsed = interval, elapsed
        self.from_s, self.to_s = 0.0, math.inf
        self.begin = _End(0.0, math.nan)
        self.waiting: list[_End] = []
        # Time up to which all ends are known; the next end by the clock; UTC of time 0.
        self._known_s, self._next, self._epoch = -math.inf, math.nan, math.nan

    @property
    def clock(self) -> Interval:
        return Interval(self._interval.seconds) if self.elapsed else self._interval

    def find(self, reached_s: float, epoch: float) -> None:
        """Find the ends of intervals up to `reached_s`; `epoch` is UTC of time 0 here."""
        reached_s = min(reached_s, self.to_s)
        if math.isnan(self._next):
            self.elapsed |= math.isnan(epoch)
            self._epoch = 0.0 if self.elapsed else epoch
            self.begin = _End(self.from_s, self._epoch + self.from_s)
            self.begin.on_time = (
                abs(self.clock.begin(self.begin.utc_s) - self.begin.utc_s) < CLOCK_S
            )
            self._next = self.clock.end(self.begin.utc_s)
        elif not self.elapsed and math.isfinite(epoch):
            self._epoch = epoch
        while self._next - self._epoch <= reached_s + SAME_S:
            at_s = max(self._next - self._epoch, self._known_s, self.from_s)
            # After the clock was set forward, this may be past.
            jumped = at_s + self._epoch > self._next + CLOCK_S
            self.waiting.append(
                _End(at_s, at_s + self._epoch if jumped else self._next, not jumped)
            )
            self._next = self.clock.end(self.waiting[-1].utc_s)
        self._known_s = max(self._known_s, reached_s)

    def finish(self, end_s: float) -> bool:
        """Find the last end, that of the sound; whether there was any sound."""
        if math.isnan(self._next):
            return False
        self.find(end_s, math.nan)
        last_s = self.waiting[-1].time_s if self.waiting else self.begin.time_s
        end_s = min(end_s, self.to_s)
        if end_s > last_s + SAME_S:
            self.waiting.append(_End(end_s, end_s + self._epoch, on_time=False))
        return True

    @property
    def progress(self) -> JsonDict:
        """The state as data for JSON."""
        return {
            "begin": asdict(self.begin),
            "ends": [asdict(end) for end in self.waiting],
            "clock": [self._known_s, self._next, self._epoch],
            "elapsed": self.elapsed,
        }

    def go_on(self, state: JsonMap) -> None:
        """Continue with a `progress`. Raises KeyError, TypeError or ValueError."""
        self.begin = _End(**state["begin"])
        self.waiting = [_End(**end) for end in state["ends"]]
        self._known_s, self._next, self._epoch = map(float, state["clock"])
        self.elapsed = bool(state["elapsed"])


class Intervals(Resumable):
    """A row for each interval of the clock, from the frames of all models.

    readings: readings for these intervals only, by model; they are reset at the end of each
        interval
    interval: length and time zone
    columns: names of readings besides the default ones of intervals
    row: name of the microphone, if there are several
    elapsed: whether intervals are of elapsed time, as for a file; they always are if frames have no
        UTC

    A frame belongs to the interval in which it ends, so intervals are exact to a frame. They
    continue through a reset of readings, and exclude pauses.

    Raises ValueError for models without statistics.
    """

    kept = ("readings", "progress")

    def __init__(
        self,
        readings: Mapping[str, Readings],
        interval: Interval,
        columns: Sequence[Column] = (),
        microphone: str = "",
        elapsed: bool = False,
    ) -> None:
        self.readings, self.interval, self.microphone = dict(readings), interval, microphone
        self._columns: list[Column] = []
        for one in self.readings.values():
            one.choose([])
            summary = one.summary()
            own = {column.name: column for name in one.of_interval for column in one.matching(name)}
            own |= {c.name: c for c in columns if c.model == one.model and accumulates(c.to_dict())}
            # Columns of the summary cost nothing extra.
            one.choose([column for column in own.values() if column.name not in summary])
            self._columns += own.values()
        counting = [name for name, one in self.readings.items() if one.counts]
        if not counting:
            raise ValueError(
                f"{', '.join(self.readings)} has no statistics, of which intervals are made: leave "
                "the interval out"
            )
        # Equivalent levels are averaged by measured time.
        equivalent = {column.model for column in self._columns if column.statistic == EQUIVALENT}
        self._timed = next(
            (n for n in counting if self.readings[n].model in equivalent), counting[0]
        )
        self._tracks = {name: _IntervalTrack() for name in self.readings}
        self._ends = _Ends(interval, elapsed)
        self._done: list[dict[str, object]] = []

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of each row except `row`, `fault` and `calibrated`."""
        return (*SPANS, *self._columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of a row."""
        microphone = (MICROPHONE,) if self.microphone else ()
        return (*BEFORE, *microphone, *(column.name for column in self._columns), *AFTER)

    @property
    def needed(self) -> frozenset[str]:
        """Models that have columns here."""
        models = {column.model for column in self._columns}
        return frozenset(name for name, one in self.readings.items() if one.model in models)

    @property
    def described(self) -> JsonDict:
        """Length and time zone for the header."""
        clock = "elapsed time" if self._ends.elapsed else zone_text(self.interval.zone)
        columns = [column.to_dict() for column in self.columns]
        return {"seconds": self.interval.seconds, "clock": clock, "columns": columns}

    def cover(self, from_s: float, to_s: float) -> None:
        """Count only this part of the sound, like `Readings`."""
        self._ends.from_s, self._ends.to_s = from_s, to_s
        for one in self.readings.values():
            one.cover(from_s, to_s)

    def pause(self, paused: bool) -> None:
        """Pause or continue counting."""
        for one in self.readings.values():
            one.paused = paused

    def take(self, frames: Frames) -> None:
        """Count further frames of one model."""
        readings, track = self.readings[frames.model], self._tracks[frames.model]
        self._ends.find(frames.end_s, frames.end_utc - frames.end_s)
        begin_s, end_s, count = frames.begin_s, frames.end_s, len(frames)
        lost = frames.skipped + frames.missed
        before_s = track.reached_s if math.isfinite(track.reached_s) else begin_s
        period_s = (begin_s - before_s) / (lost + 1)
        passed = at = 0
        ends = self._ends.waiting[len(track.results) :]
        ends = [one for one in ends if one.time_s <= end_s + SAME_S]
        for end in [*ends, None]:
            until_s = math.inf if end is None else end.time_s + SAME_S
            if passed < lost:  # missing frames before these
                there = lost
                if until_s < begin_s and period_s:
                    there = min(lost, max(passed, math.floor((until_s - before_s) / period_s)))
                readings.skip(there - passed)
                if there > passed:
                    self._reach(track, before_s + there * period_s, readings.paused)
                    track.fault |= int(frames.fault[0])
                passed = there
            stop = count
            if until_s < end_s:
                stop = int(np.searchsorted(frames.time_s, until_s, side="right"))
            if stop > at:
                part = frames if stop - at == count else frames.between(at, stop)
                readings.judge(part)
                readings.take(part)
                self._reach(track, part.end_s, readings.paused)
                if math.isinf(part.calm_s):
                    track.fault |= int(np.bitwise_or.reduce(part.fault))
                at = stop
            if end is not None:
                self._close(frames.model)

    def tail(self, frames: Frames) -> None:
        """Take output of a model after the end of the sound, like `Readings`."""
        readings = self.readings[frames.model]
        readings.tail(frames)
        if readings.clipped(frames).any():
            self._tracks[frames.model].fault |= int(Fault.CLIP)

    def _reach(self, track: _IntervalTrack, end_s: float, paused: bool) -> None:
        """Add the time up to `end_s`, measured or not."""
        if paused:
            after_s = max(track.reached_s, self._ends.from_s)
            track.paused_s += max(0.0, min(end_s, self._ends.to_s) - after_s)
        track.reached_s = end_s
        track.empty = False

    def _close(self, model: str) -> None:
        """End the interval of this model."""
        readings, track = self.readings[model], self._tracks[model]
        values: dict[str, object] = {"calibrated": readings.level != RELATIVE, "fault": track.fault}
        if not track.empty:
            summary = readings.summary()
            own = [column.name for column in self._columns if column.model == readings.model]
            values |= {name: summary.get(name) for name in own}
            if model == self._timed:
                values |= {**readings.counted_s(), "paused_s": track.paused_s}
            readings.begin_interval()
        track.paused_s, track.fault, track.empty = 0.0, 0, True
        track.results.append(values)
        while all(one.results for one in self._tracks.values()):
            self._end_row([one.results.pop(0) for one in self._tracks.values()])

    def _end_row(self, of_models: Sequence[JsonMap]) -> None:
        begin, end = self._ends.begin, self._ends.waiting.pop(0)
        self._ends.begin = end
        if end.time_s - begin.time_s < SAME_S:
            return
        clock = self._ends.clock
        long_s = clock.end(begin.utc_s) - clock.begin(begin.utc_s)
        short = end.time_s - begin.time_s < SHORT * long_s
        values = {name: value for one in of_models for name, value in one.items()}
        values |= annoyances(values)
        # A model continues after the end of the sound.
        left_s = end.time_s - begin.time_s - sum(values.get(name) or 0.0 for name in COUNTED[::2])
        values["excluded_s"] = max(0.0, min(values.get("excluded_s") or 0.0, left_s))
        utc_s = None if self._ends.elapsed else begin.utc_s
        row = {
            "time_s": round(begin.time_s, 6),
            "utc": None if utc_s is None else utc_text(utc_s),
            "local": None if utc_s is None else local_text(utc_s, self.interval.zone),
            "end_s": round(end.time_s, 6),
            **{name: round(values.get(name) or 0.0, 6) for name in COUNTED},
            "partial": short or not (begin.on_time and end.on_time),
            **({MICROPHONE: self.microphone} if self.microphone else {}),
            **self._readings_of(values),
            "fault": FAULT_TEXTS[int(np.bitwise_or.reduce([one["fault"] for one in of_models]))],
            "calibrated": all(one["calibrated"] for one in of_models),
        }
        self._done.append(row)

    def _readings_of(self, values: Mapping[str, object]) -> dict[str, float | None]:
        names = [column.name for column in self._columns]
        numbers = in_seven_digits(np.array([values.get(name) for name in names], np.float64))
        pairs = zip(names, numbers.tolist(), strict=True)
        return {name: None if value != value else value for name, value in pairs}

    def finish(self, end_s: float) -> None:
        """End the current interval at the end of the sound."""
        if not self._ends.finish(end_s):
            return
        for name, track in self._tracks.items():
            for _ in self._ends.waiting[len(track.results) :]:
                self._close(name)

    def ended(self) -> Rows:
        """The intervals that have ended since the last call."""
        done, self._done = self._done, []
        return Rows.of(done) if done else Rows.concatenated([], self.names)

    @property
    def progress(self) -> str:
        """The progress of the intervals, without their readings, as JSON."""
        tracks = {name: asdict(track) for name, track in self._tracks.items()}
        return json.dumps(self._ends.progress | {"tracks": tracks})

    @progress.setter
    def progress(self, given: str) -> None:
        try:
            state = json.loads(given)
            self._ends.go_on(state)
            self._tracks = {name: _IntervalTrack(**state["tracks"][name]) for name in self._tracks}
        except (KeyError, TypeError, ValueError) as error:
            raise Unfitting(f"the state of intervals is invalid: {error}") from error


def header_of_intervals(header: JsonMap) -> JsonDict:
    """The header of a table of intervals, from the header of the rows."""
    interval = dict(header["interval"])
    columns = interval.pop("columns")
    data = {key: value for key, value in header.items() if key != "limits"}
    return data | {"step_ms": 1000 * interval["seconds"], "interval": interval, "columns": columns}


def accumulates(column: Mapping[str, object]) -> bool:
    """Whether a column accumulates over the whole sound, according to the header."""
    statistic = str(column["statistic"])
    return statistic not in ("instantaneous", "forecast") and "last " not in statistic
