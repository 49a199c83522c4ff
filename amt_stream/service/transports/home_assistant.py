"""MQTT discovery messages for Home Assistant."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.rows import column_named
from amt_stream.meters.rows.block import column_type
from amt_stream.meters.state_signs import AWAY

STALE_S = 30.0

FITS = {"/": "_", "+": "_"}
"""Characters of topics and names of channels in identifiers; others by their code point."""

GIVES_SOUND = (
    "{{ 'offline' if (value_json.health or {}).device_state in "
    f"{list(AWAY)!r}"
    " else 'online' }}"
)
"""A template of Home Assistant: without sound, sensors have no value, and no old one."""


def discovery(
    header: JsonMap, topic: str, topic_of: Callable[[str], str], every_s: float
) -> Iterator[tuple[str, JsonDict]]:
    """The discovery topics and payloads of each column of each microphone.

    topic: topic of the measurement
    topic_of: topic of the rows of a microphone by its name, "" if there is only one
    every_s: seconds between rows
    """
    device = {
        "identifiers": [topic],
        "name": f"amt_stream {header.get('station') or header.get('host', '')}".strip(),
        "manufacturer": "amt_stream",
        "model": ", ".join(model["name"] for model in header["models"]),
        "sw_version": __version__,
    }
    shared = {
        "availability": [
            {"topic": f"{topic}/availability"},
            {"topic": f"{topic}/state", "value_template": GIVES_SOUND},
        ],
        "availability_mode": "all",
        "expire_after": round(max(STALE_S, 5 * every_s, 5e-3 * header["step_ms"])),
        "device": device,
    }
    node = _fit(topic)
    for microphone in header["source"].get("microphones") or [""]:
        for column in header["columns"]:
            name = column["name"]
            one = _fit(f"{microphone}_{name}") if microphone else _fit(name)
            yield (
                f"sensor/{node}/{one}",
                shared
                | {
                    "name": f"{microphone} {_title(column)}".strip(),
                    "unique_id": f"{node}_{one}",
                    "state_topic": topic_of(microphone),
                    "value_template": f"{{{{ value_json[{name!r}] }}}}",
                    **_kind(column),
                },
            )


class Sensors:
    """Discovery topics of a measurement's sensors, with those that a broker keeps of earlier runs.

    every: topic to subscribe to for those that the broker keeps; "" without a prefix
    """

    def __init__(self, prefix: str, topic: str) -> None:
        self._prefix = prefix
        self.every = f"{prefix}/sensor/{_fit(topic)}/+/config" if prefix else ""
        self._kept: set[str] = set()
        self._announced = False

    def announced(self, told: Iterable[tuple[str, JsonDict]]) -> dict[str, str]:
        """The text for each topic, of `discovery`; an empty one removes a sensor that is gone."""
        texts = {f"{self._prefix}/{topic}/config": json.dumps(config) for topic, config in told}
        gone = sorted(self._kept - texts.keys())
        self._kept, self._announced = {*texts}, True
        return dict.fromkeys(gone, "") | texts

    def is_one(self, topic: str) -> bool:
        begin, _, end = self.every.partition("+")
        return bool(begin) and topic.startswith(begin) and topic.endswith(end)

    def is_gone(self, topic: str) -> bool:
        """Take a topic that the broker keeps; True if its sensor is gone."""
        if self._announced:
            return topic not in self._kept
        self._kept.add(topic)
        return False


def _kind(column: JsonMap) -> JsonDict:
    """The unit and the device class of a column."""
    if column_type(column["name"]) != "float64":
        return {}
    kind: JsonDict = {"state_class": "measurement", "suggested_display_precision": 1}
    if column["unit"]:
        kind["unit_of_measurement"] = column["unit"]
    known = column_named(column["name"])
    weighting = "" if known is None else known.weighting
    if column["unit"] == "dB" and weighting:
        kind["device_class"] = "sound_pressure"
        if weighting == "A":
            kind["unit_of_measurement"] = "dBA"
    return kind


def _title(column: Mapping[str, object]) -> str:
    """The quantity and the statistic of a column."""
    statistic = column["statistic"]
    detail = "" if statistic == "instantaneous" else f", {statistic}"
    return f"{column['quantity']}{detail}"


def _fit(name: str) -> str:
    """The name in the letters that identifiers may have; different for each name."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda one: FITS.get(one[0], f"_{ord(one[0]):x}_"), name)
