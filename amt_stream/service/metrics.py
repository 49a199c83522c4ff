"""Numbers for Prometheus: readings, marks and health as they stand, and totals that only grow."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.accumulators.sound_level import FRAME_S, WEIGHTINGS
from amt_stream.meters.limits import COLORS, STATE
from amt_stream.meters.rows.block import column_type
from amt_stream.service.message import MAIN, RUNNING, WAITING, Message
from amt_stream.service.totals import EDGES_SONE, Totals
from amt_stream.service.transport import Unhindered, Wire, missing

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

STATES = ("starting", WAITING, *RUNNING, "stopped", "ended", "failed")
MARKS = ("valid", "settling", "calibrated")
OF = ("microphone",)
"""Every number has this label."""
CHANNELS = {"": "", "left": "L", "right": "R"}
OF_UNIT = {"sone": "loudness", "phon": "loudness", "dB": "sound", "acum": "sharpness"}
OF_UNIT |= dict.fromkeys(("LUFS", "LU", "dBTP", "dBFS"), "programme")
"""What readings in a unit are of, between amt_ and the name of their column."""

COUNTERS = {
    "samples": ("audio_samples", "Input samples heard"),
    "lost_samples": ("audio_lost_samples", "Input samples that are missing"),
    "overruns": ("audio_overruns", "Blocks of sound for which there was no room"),
    "late_callbacks": ("audio_late_blocks", "Blocks of sound that came to a halt before"),
    "clipped": ("audio_clipped_samples", "Samples that reach full scale"),
    "non_finite": ("audio_non_finite_samples", "Samples that were no number"),
    "broken_frames": ("broken_frames", "Frames of which a model made no number"),
    "sink_missed": ("sink_missed_rows", "Rows that a slow sink did not get"),
}
GAUGES = {
    "load": ("engine_load_ratio", "CPU seconds for each second of sound"),
    "latency_s": ("audio_latency_seconds", "From the sound to its frame"),
    "queue_s": ("audio_queue_seconds", "Sound that waits"),
    "overloaded": ("engine_overloaded", "Whether processing does without something"),
    "silent": ("audio_silent", "Whether only exact zeros come"),
}
"""Of health, by its own names: the name here, and what it is."""


class Metrics(Unhindered):
    """Gives the exposition of one measurement, in a registry of its own.

    totals: to be handed all frames
    """

    name = "metrics"

    def __init__(self) -> None:
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
        told = message.content
        if message.kind == "header":
            self._header = told
        elif message.kind == "row":
            self._rows[message.microphone] = told
            self._faulty.update((message.microphone, fault) for fault in told["fault"].split())
        elif message.kind == "state":
            self._state = told
            if told["state"] not in RUNNING:
                self._rows.clear()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Body and content type, by the header Accept of who asks."""
        from prometheus_client.exposition import choose_encoder

        assert self._registry is not None
        encode, kind = choose_encoder(accept)
        return encode(self._registry), kind

    def collect(self) -> "Iterator[Metric]":
        """All of it, as a registry asks for it."""
        yield from self._totals()
        yield from self._readings()
        yield from self._marks()
        yield from self._health()

    def _totals(self) -> "Iterator[Metric]":
        totals = self.totals
        exposure = _counter(
            "sound_exposure_pascal2_seconds", "Sound exposure", "weighting", *OF, "channel"
        )
        for (microphone, channel), values in totals.exposure.items():
            for weighting, value in zip(WEIGHTINGS, values, strict=True):
                labels = [weighting.upper(), microphone or MAIN, CHANNELS[channel]]
                exposure.add_metric(labels, float(value))
        measured = _counter("sound_measured_seconds", "Time that sound exposure is of", *OF)
        for microphone, frames in totals.measured.items():
            measured.add_metric([microphone or MAIN], frames * FRAME_S)
        yield from (exposure, measured)
        from prometheus_client.core import HistogramMetricFamily

        loudness = HistogramMetricFamily(
            "amt_loudness_distribution_sone",
            "Frames by their loudness: long-term, or that of Zwicker's method",
            labels=[*OF, "model"],
        )
        for (microphone, model), (counts, total) in totals.loudness.items():
            edges = [*(f"{edge:.6g}" for edge in EDGES_SONE), "+Inf"]
            upto = counts.cumsum().tolist()
            buckets = list(zip(edges, upto, strict=True))
            loudness.add_metric([microphone or MAIN, model], buckets, total)
        yield loudness

    def _readings(self) -> "Iterator[Metric]":
        """The newest of each column; of models that give many at a time there are too many."""
        if not self._header.get("statistics"):
            return
        found: JsonDict = {}
        for column in self._header["columns"]:
            if column_type(column["name"]) != "float64":
                continue
            name, channel = metric_name(column)
            told = f"{column['quantity']}, {column['statistic']} ({column['unit']})"
            gauge = found.setdefault(name, _gauge(name, told, *OF, "channel"))
            for microphone, content in self._rows.items():
                if (value := content.get(column["name"])) is not None:
                    gauge.add_metric([microphone or MAIN, channel], value)
        yield from found.values()

    def _marks(self) -> "Iterator[Metric]":
        marks = {one: _gauge(one, f"Whether the newest row is {one}", *OF) for one in MARKS}
        newest = _gauge("row_timestamp_seconds", "When the newest row was, since 1970", *OF)
        limits = _gauge("limit", "How the newest row stands to a limit", *OF, "limit", "state")
        for microphone, told in self._rows.items():
            whose = microphone or MAIN
            for one, gauge in marks.items():
                gauge.add_metric([whose], told[one])
            if told["utc"] is not None:
                utc = datetime.fromisoformat(told["utc"]).timestamp()
                newest.add_metric([whose], utc)
            for name, state in told.items():
                for one in COLORS if name.startswith(STATE) else ():
                    limits.add_metric([whose, name.removeprefix(STATE), one], state == one)
        faulty = _counter("faulty_rows", "Rows with a fault", *OF, "fault")
        for (microphone, fault), count in self._faulty.items():
            faulty.add_metric([microphone or MAIN, fault], count)
        yield from (*marks.values(), newest, limits, faulty)

    def _health(self) -> "Iterator[Metric]":
        state = _gauge("state", "How the measurement stands", "state")
        for one in STATES:
            state.add_metric([one], self._state.get("state") == one)
        info = _gauge("info", "What measures", "version", "preset")
        info.add_metric([__version__, self._state.get("preset", "")], 1)
        missed = _counter("transport_missed_rows", "Rows that found no way out", "transport")
        for name, told in self._state.get("transports", {}).items():
            missed.add_metric([name], told["missed_rows"])
        yield from (state, info, missed)
        health = self._state.get("health") or {}
        for made, given in ((_counter, COUNTERS), (_gauge, GAUGES)):
            for key, (name, told) in given.items() if health else ():
                family = made(name, told)
                family.add_metric([], health[key])
                yield family


def metric_name(column: JsonMap) -> tuple[str, str]:
    """What a column is called, without amt_, and its channel: amt_loudness_ltl_sone."""
    side, kind = column.get("side", ""), OF_UNIT.get(column["unit"])
    stem = column["name"].replace(f"_{side}_", "_") if side else column["name"]
    return (f"{kind}_{stem}" if kind else stem), CHANNELS[side]


def _gauge(name: str, told: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"amt_{name}", told, labels=labels)


def _counter(name: str, told: str, *labels: str) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(f"amt_{name}", told, labels=labels)
