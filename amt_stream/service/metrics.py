"""Prometheus metrics: gauges of readings, marks and health, and counters of totals."""

import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.level_names import WEIGHTINGS
from amt_stream.meters.limits import COLORS
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows.block import column_type, is_named
from amt_stream.meters.rows.intervals import accumulates
from amt_stream.meters.state_signs import is_away
from amt_stream.service.identity import Identity
from amt_stream.service.message import MAIN, RUNNING, WAITING, Message
from amt_stream.service.totals import EDGES_SONE, Totals
from amt_stream.service.transports.transport import Unhindered, Wire, missing

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

STATES = ("starting", WAITING, *RUNNING, "stopped", "ended", "failed")
MARKS = ("valid", "settling", "calibrated")
OF = ("microphone",)
"""The label of every metric."""
INPUT = "input"
"""The label of a metric of one channel of the sound card, counted from 1."""
CHANNELS = {"": "", "left": "L", "right": "R"}
OF_UNIT = {"sone": "loudness", "phon": "loudness", "dB": "sound", "acum": "sharpness"}
OF_UNIT |= dict.fromkeys(("LUFS", "LU", "dBTP", "dBFS"), "programme")
"""The quantity of readings by unit, which comes between amt_ and the column in a metric's name."""

COUNTERS = {
    "samples": ("audio_samples", "Input samples received"),
    "lost_samples": ("audio_lost_samples", "Input samples lost, those that were dropped included"),
    "dropped_samples": ("audio_dropped_samples", "Samples dropped because the buffer was full"),
    "overruns": ("audio_overruns", "Blocks lost because the buffer was full"),
    "late_callbacks": ("audio_late_blocks", "Blocks that arrived late"),
    "clipped": ("audio_clipped_samples", "Samples that reach full scale"),
    "non_finite": ("audio_non_finite_samples", "Samples that were NaN or infinite"),
    "broken_frames": ("broken_frames", "Frames with NaN or infinity from a model"),
    "sink_missed": ("sink_missed_rows", "Rows that a slow sink missed"),
    "throttled": ("engine_throttled", "How often a limit of processor time stopped the program"),
}
GAUGES = {
    "load": ("engine_load_ratio", "CPU seconds per second of sound"),
    "processor_used": ("engine_processor_ratio", "Share of time with a processor"),
    "processor_waited": ("engine_processor_wait_ratio", "Share of time ready without a processor"),
    "stopped": ("engine_stopped_ratio", "Share of time in which the program stood still"),
    "stolen": ("computer_stolen_ratio", "Share of processor time that a hypervisor took"),
    "behind_s": ("audio_behind_seconds", "How much less sound than time has passed"),
    "clock_ppm": ("audio_clock_drift_ppm", "Rate of the device's clock against the computer's"),
    "clock_ppm_uncertainty": ("audio_clock_drift_uncertainty_ppm", "Twice its standard error"),
    "utc_ahead_s": ("utc_ahead_seconds", "How far UTC of rows is ahead of the computer's clock"),
    "latency_s": ("audio_latency_seconds", "Delay from the sound to its frame"),
    "queue_s": ("audio_queue_seconds", "Sound waiting to be processed"),
    "overloaded": ("engine_overloaded", "Whether processing is reduced because of overload"),
    "silent": ("audio_silent", "Whether the input is exactly zero"),
}
"""Metrics of `Health`, by field: name and help text; a field may be None until it is known."""


class Metrics(Unhindered):
    """The Prometheus exposition of one measurement.

    identity: name and labels of the station, which all metrics have
    totals: must receive all frames
    """

    name = "metrics"

    def __init__(self, identity: Identity | None = None) -> None:
        self._tags = {} if identity is None else identity.tags
        self.totals = Totals()
        self._header: JsonMap = {}
        self._rows: dict[str, JsonMap] = {}
        self._state: JsonMap = {}
        self._faulty: Counter[tuple[str, str]] = Counter()
        self._registry: CollectorRegistry | None = None

    async def open(self, wire: Wire) -> None:
        try:
            from prometheus_client import CollectorRegistry
        except ModuleNotFoundError as error:
            raise missing("metrics need prometheus-client") from error
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def send(self, message: Message) -> None:
        content = message.content
        if message.kind == "header":
            self._header = content
        elif message.kind == "row":
            self._rows[message.microphone] = content
            self._faulty.update((message.microphone, fault) for fault in content["fault"].split())
        elif message.kind == "state":
            self._state = content
            if content["state"] not in RUNNING:
                self._rows.clear()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Body and content type for a request's header Accept."""
        from prometheus_client.exposition import choose_encoder

        assert self._registry is not None
        encode, kind = choose_encoder(accept)
        return encode(self._registry), kind

    def collect(self) -> "Iterator[Metric]":
        """Yield all metrics, for the registry."""
        of_rows = self._totals(), self._readings(), self._marks()
        for family in itertools.chain(*of_rows, self._health(), self._calibrations()):
            for place, one in enumerate(family.samples):
                family.samples[place] = one._replace(labels={**one.labels, **self._tags})
            yield family

    @property
    def _is_away(self) -> bool:
        """Whether there is no sound, so that nothing is known of now."""
        return is_away({(self._state.get("health") or {}).get("device_state", "")})

    def _totals(self) -> "Iterator[Metric]":
        totals = self.totals
        exposure = _counter(
            "sound_exposure_pascal2_seconds", "Sound exposure", "weighting", *OF, "channel"
        )
        for (microphone, channel), values in totals.exposure.items():
            for weighting, value in zip(WEIGHTINGS, values, strict=True):
                labels = [weighting.upper(), microphone or MAIN, CHANNELS[channel]]
                exposure.add_metric(labels, float(value))
        measured = _counter("sound_measured_seconds", "Duration that sound exposure covers", *OF)
        for microphone, frames in totals.measured.items():
            measured.add_metric([microphone or MAIN], frames * FRAME_S)
        yield from (exposure, measured)
        from prometheus_client.core import HistogramMetricFamily

        loudness = HistogramMetricFamily(
            "amt_loudness_distribution_sone",
            "Frames by loudness: long-term, or by Zwicker's method",
            labels=[*OF, "model"],
        )
        for (microphone, model), (counts, total) in totals.loudness.items():
            edges = [*(f"{edge:.6g}" for edge in EDGES_SONE), "+Inf"]
            upto = counts.cumsum().tolist()
            buckets = list(zip(edges, upto, strict=True))
            loudness.add_metric([microphone or MAIN, model], buckets, total)
        yield loudness

    def _readings(self) -> "Iterator[Metric]":
        """The newest value of each column, except of models with many values at a time."""
        if not self._header.get("statistics"):
            return
        found: JsonDict = {}
        for column in self._header["columns"]:
            if column_type(column["name"]) != "float64":
                continue
            name, channel = metric_name(column)
            text = f"{column['quantity']}, {column['statistic']} ({column['unit']})"
            gauge = found.setdefault(name, _gauge(name, text, *OF, "channel"))
            for microphone, content in self._rows.items():
                if self._is_away and not accumulates(column):
                    continue  # the last value is not of now
                if (value := content.get(column["name"])) is not None:
                    gauge.add_metric([microphone or MAIN, channel], value)
        yield from found.values()

    def _marks(self) -> "Iterator[Metric]":
        marks = {one: _gauge(one, f"Whether the newest row is {one}", *OF) for one in MARKS}
        about = "Whether a reading of the newest row includes clipped sound: it was louder"
        clipped = _gauge("reading_clipped", about, *OF, "reading")
        signed = [one["name"] for one in self._header.get("columns", ()) if "if_clipped" in one]
        newest = _gauge("row_timestamp_seconds", "Unix time of the newest row", *OF)
        limits = _gauge("limit", "State of a limit in the newest row", *OF, "limit", "state")
        for microphone, row in self._rows.items():
            whose = microphone or MAIN
            for one, gauge in marks.items():
                gauge.add_metric([whose], row[one] and not (one == "valid" and self._is_away))
            for one in signed:
                if is_named(one, row.get("clipped_columns")):
                    clipped.add_metric([whose, one], 1)
            if row["utc"] is not None:
                utc = datetime.fromisoformat(row["utc"]).timestamp()
                newest.add_metric([whose], utc)
            for name, state in row.items():
                for one in COLORS if (limit := limit_in(name)) else ():
                    holds = state == one and not self._is_away
                    limits.add_metric([whose, limit, one], holds)
        faulty = _counter("faulty_rows", "Rows with a fault", *OF, "fault")
        for (microphone, fault), count in self._faulty.items():
            faulty.add_metric([microphone or MAIN, fault], count)
        yield from (*marks.values(), clipped, newest, limits, faulty)

    def _health(self) -> "Iterator[Metric]":
        state = _gauge("state", "State of the measurement", "state")
        for one in STATES:
            state.add_metric([one], self._state.get("state") == one)
        info = _gauge("info", "What measures", "version", "preset")
        info.add_metric([__version__, self._state.get("preset", "")], 1)
        missed = _counter("transport_missed_rows", "Rows that a transport dropped", "transport")
        for name, transport in self._state.get("transports", {}).items():
            missed.add_metric([name], transport["missed_rows"])
        yield from (state, info, missed)
        health = self._state.get("health") or {}
        for made, metrics in ((_counter, COUNTERS), (_gauge, GAUGES)):
            for key, (name, text) in metrics.items() if health else ():
                family = made(name, text)
                if health[key] is not None:
                    family.add_metric([], health[key])
                yield family

    def _calibrations(self) -> "Iterator[Metric]":
        """The time of the calibration of each channel, and when the next one is due.

        They are from the header; as times, a monitor can show which are due next month.
        """
        source = self._header.get("source", {})
        whose = {c: name for name, own in source.get("microphones", {}).items() for c in own}
        times = {
            "date": _gauge("calibration_timestamp_seconds", "Unix time of calibration", *OF, INPUT),
            "valid_until": _gauge(
                "calibration_due_timestamp_seconds", "Unix time of the next calibration", *OF, INPUT
            ),
        }
        for one in self._header.get("calibration", ()):
            labels = [whose.get(one["channel"], MAIN), str(one["channel"])]
            for key, gauge in times.items():
                if one["calibrated"] and (when := _unix_s(one.get(key))) is not None:
                    gauge.add_metric(labels, when)
        yield from times.values()


def _unix_s(text: str | None) -> float | None:
    """The Unix time of a date, which a file of calibrations may lack or have in any form."""
    try:
        when = datetime.fromisoformat(text or "")
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


def metric_name(column: JsonMap) -> tuple[str, str]:
    """The metric name of a column without amt_, such as loudness_ltl_sone, and its channel."""
    side, kind = column.get("side", ""), OF_UNIT.get(column["unit"])
    stem = column["name"].replace(f"_{side}_", "_") if side else column["name"]
    return (f"{kind}_{stem}" if kind else stem), CHANNELS[side]


def _gauge(name: str, text: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"amt_{name}", text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(f"amt_{name}", text, labels=labels)
