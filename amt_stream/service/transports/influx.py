"""Rows, events and states as line protocol, to InfluxDB and other servers that accept it."""

import asyncio
import socket
import time
from collections.abc import Mapping

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.core.words import counted
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows.block import MICROPHONE
from amt_stream.service.identity import Identity
from amt_stream.service.message import MAIN, RUNNING, LeftOut, Message
from amt_stream.service.metrics import COUNTERS, GAUGES
from amt_stream.service.transports.http_endpoint import Endpoint
from amt_stream.service.transports.http_sender import ByHttp, HttpSender

ROWS, EVENTS, STATES = "amt", "amt_event", "amt_state"
"""Measurements, in InfluxDB's sense."""

STATE_S = 10.0
ROOM_S = 0.005
MS = 1_000_000
NOT_FIELDS = frozenset(("time_s", "utc", MICROPHONE, "station", "labels"))
Value = str | bool | int | float

_CONTROL = dict.fromkeys((*range(32), 127, ord("\\")), "_")
_NAME = str.maketrans({**_CONTROL, ",": "\\,", " ": "\\ "})
_KEY = str.maketrans({**_CONTROL, ",": "\\,", " ": "\\ ", "=": "\\="})
_STRING = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": " ", "\r": " "})


def protocol_line(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value], stamp_ns: int
) -> bytes:
    r"""One line of line protocol; tags without a value are left out.

    >>> protocol_line("amt", {"station": "roof top"}, {"laf_db": 51.5, "sample": 9}, 1)
    b'amt,station=roof\\ top laf_db=51.5,sample=9i 1\n'
    """
    named = "".join(
        f",{key.translate(_KEY)}={value.translate(_KEY)}" for key, value in tags.items() if value
    )
    valued = ",".join(f"{key.translate(_KEY)}={_typed(value)}" for key, value in fields.items())
    return f"{measurement.translate(_NAME)}{named} {valued} {stamp_ns}\n".encode()


def _typed(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_STRING)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value}i" if isinstance(value, int) else repr(float(value))


class Influx(ByHttp):
    """A transport to a server of line protocol; rows of unknown time are not sent.

    Readings, marks and states of limits of a row are fields of "amt", with the tags of the station
    and of the microphone. Events are in "amt_event", state and health in "amt_state".
    """

    def __init__(self, endpoint: Endpoint, identity: Identity) -> None:
        self.name = f"influx {endpoint}"
        self._tags = identity.tags or {"host": socket.gethostname()}
        self._sender = HttpSender(endpoint, joins=True)
        self._left_out = LeftOut()
        self._timeless = 0
        self._keys: tuple[str, ...] = ()
        self._event_ns = 0
        self._state: tuple[object, ...] = ()
        self._state_at = 0.0

    @property
    def note(self) -> str:
        if self._timeless and not self._sender.note:
            return f"{counted(self._timeless, 'row')} not sent to {self.name}: UTC is unknown"
        return self._sender.note

    @property
    def missed(self) -> int:
        return self._timeless + self._sender.lost

    def send(self, message: Message) -> None:
        content = message.content
        if message.kind == "header":
            # Columns without a model say which cell a row is of.
            self._keys = tuple(
                one["name"]
                for one in content["columns"]
                if not (one["model"] or limit_in(one["name"]) or one["name"] == MICROPHONE)
            )
        elif message.kind == "row":
            self._send_row(message)
        elif message.kind == "event" and content["utc"] is not None:
            stamp = ns_of(content["utc"])
            # Points of the same time and tags would replace each other.
            same = stamp // MS == self._event_ns // MS
            self._event_ns = self._event_ns + 1 if same else stamp
            tags = {"microphone": message.microphone, "kind": content["kind"]}
            fields = {key: content[key] for key in ("text", "sample", "samples")}
            self._put(EVENTS, tags, fields, self._event_ns)
        elif message.kind == "state":
            self._send_state(content)

    async def drain(self) -> None:
        while not self._sender.has_room:
            await asyncio.sleep(ROOM_S)

    def _send_row(self, message: Message) -> None:
        if message.content["utc"] is None:
            self._timeless += 1
            self._left_out.add()
            return
        content = self._left_out.before(message).content
        tags = {"microphone": message.microphone or MAIN}
        tags |= {key: str(content[key]) for key in self._keys if content[key] is not None}
        fields = {
            key: value
            for key, value in content.items()
            if value is not None and key not in NOT_FIELDS and key not in self._keys
        }
        if not self._put(ROWS, tags, fields, ns_of(content["utc"])):
            self._left_out.add()

    def _send_state(self, content: JsonMap) -> None:
        """Send the state when it changes, and now and then."""
        new, now = (content["state"], *content["why"]), time.monotonic()
        if new == self._state and now - self._state_at < STATE_S:
            return
        self._state, self._state_at = new, now
        health = content["health"] or {}
        fields = {"state": content["state"], "well": not content["why"]}
        fields |= {"why": "; ".join(content["why"]), "running": content["state"] in RUNNING}
        fields |= {key: int(health[key]) for key in COUNTERS if health.get(key) is not None}
        fields |= {key: float(health[key]) for key in GAUGES if health.get(key) is not None}
        self._put(STATES, {}, fields, time.time_ns())

    def _put(
        self, measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value], stamp_ns: int
    ) -> bool:
        return self._sender.put(
            protocol_line(measurement, {**self._tags, **tags}, fields, stamp_ns)
        )


def ns_of(utc: str) -> int:
    """A time in RFC 3339 as nanoseconds since 1970."""
    return int(np.datetime64(utc.removesuffix("Z"), "ns").astype(np.int64))
