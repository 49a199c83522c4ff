"""What Home Assistant wants to know of a measurement, to show it by itself."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from amt_stream import __version__
from amt_stream.rows.block import kind_of

SOUND_PRESSURE = re.compile(r"A-weighted|C-weighted|Z-weighted")
STALE_S = 30.0


def discovery(
    header: Mapping[str, Any], topic: str, topic_of: Callable[[str], str], every_s: float
) -> Iterator[tuple[str, dict[str, Any]]]:
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
    for row in header["source"].get("rows") or [""]:
        for column in header["columns"]:
            name = column["name"]
            one = _fit(f"{row}_{name}") if row else _fit(name)
            yield (
                f"sensor/{node}/{one}",
                shared
                | {
                    "name": f"{row} {_title(column)}".strip(),
                    "unique_id": f"{node}_{one}",
                    "state_topic": topic_of(row),
                    "value_template": f"{{{{ value_json[{name!r}] }}}}",
                    **_kind(column),
                },
            )


def _kind(column: Mapping[str, Any]) -> dict[str, Any]:
    """Its unit, and the class by which it is shown."""
    if kind_of(column["name"]) != "float64":
        return {}
    kind: dict[str, Any] = {"state_class": "measurement", "suggested_display_precision": 1}
    if column["unit"]:
        kind["unit_of_measurement"] = column["unit"]
    weighting = SOUND_PRESSURE.search(column["quantity"])
    if column["unit"] == "dB" and weighting:
        kind["device_class"] = "sound_pressure"
        if weighting[0] == "A-weighted":
            kind["unit_of_measurement"] = "dBA"
    return kind


def _title(column: Mapping[str, Any]) -> str:
    """What it is, and which statistic of it; the unit is told beside it."""
    statistic = column["statistic"]
    told = "" if statistic == "instantaneous" else f", {statistic}"
    return f"{column['quantity']}{told}"


def _fit(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
