"""An engine as data for the messages of a station."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from amt_stream.core.json_types import JsonDict
from amt_stream.sessions import SessionLog
from amt_stream.sessions.events import keeper_in

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.engine.health import Health


def engine_data(engine: "Engine | None", health: "Health | None") -> JsonDict:
    """Health, logs and stored sound of an engine, if there is one."""
    return {
        "health": None if health is None else health_data(health),
        "logs": [] if engine is None else _logs(engine),
        "kept_sound": None if engine is None else _kept_sound(engine),
    }


def faults_of(engine: "Engine", health: "Health") -> list[str]:
    """What is wrong with a running engine, as sentences."""
    faults = [health.note] if health.note else []
    if health.device_state != "running":
        faults.append(f"the input is {health.device_state}")
    return faults + [log["note"] for log in _logs(engine) if log["note"]]


def health_data(health: "Health") -> JsonDict:
    """The health of an engine as data for JSON; calibrations are in the header."""
    each = {
        name: {key: value for key, value in asdict(one).items() if key != "calibration"}
        for name, one in health.microphones.items()
    }
    return {**asdict(replace(health, microphones={})), "microphones": each}


def _logs(engine: "Engine") -> list[JsonDict]:
    return [
        {"path": str(sink.path), "note": sink.note, "dropped": sink.dropped}
        for sink in engine.sinks
        if isinstance(sink, SessionLog)
    ]


def _kept_sound(engine: "Engine") -> JsonDict | None:
    keeper = keeper_in(engine.sinks)
    if keeper is None:
        return None
    data = {"seconds": keeper.keep_s, "folder": str(keeper.folder), "files": keeper.files}
    return {**data, "note": keeper.note}
