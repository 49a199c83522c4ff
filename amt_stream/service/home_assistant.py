"""What Home Assistant wants to know of a measurement, to show it by itself."""

import re
from collections.abc import Callable, Iterator, Mapping

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.rows.block import column_type

SOUND_PRESSURE = re.compile(r"A-weighted|C-weighted|Z-weighted")
STALE_S = 30.0


def discovery(
    header: JsonMap, topic: str, topic_of: Callable[[str], str], every_s: float
) -> Iterator[tuple[str, JsonDict]]:
    """For each column of each row the topic, below that of discovery, and what is told there.

    topic: of the measurement; topic_of: of a row by its name, "" where one alone is heard
    every_s: from row to row
    """
    device = {
        "identifiers": [topic],
        "name": f"amt_stream {header.get('host', '')}".strip(),
        "manufacturer": "amt_stream",
        "model": ", ".join(model["name"] for model in header["models"]),
        "sw_version": __version__,
    }
    shared = {
        "availability_topic": f"{topic}/availability",
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


def _kind(column: JsonMap) -> JsonDict:
    """Its unit, and the class by which it is shown."""
    if column_type(column["name"]) != "float64":
        return {}
    kind: JsonDict = {"state_class": "measurement", "suggested_display_precision": 1}
    if column["unit"]:
        kind["unit_of_measurement"] = column["unit"]
    weighting = SOUND_PRESSURE.search(column["quantity"])
    if column["unit"] == "dB" and weighting:
        kind["device_class"] = "sound_pressure"
        if weighting[0] == "A-weighted":
            kind["unit_of_measurement"] = "dBA"
    return kind


def _title(column: Mapping[str, object]) -> str:
    """What it is, and which statistic of it; the unit is told beside it."""
    statistic = column["statistic"]
    told = "" if statistic == "instantaneous" else f", {statistic}"
    return f"{column['quantity']}{told}"


def _fit(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
