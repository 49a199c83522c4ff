"""Rows as Lab Streaming Layer (LSL) streams, to be recorded beside other signals."""

import asyncio
import contextlib
import math
import os
import socket
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.limits import COLORS
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows.block import FAULTS_OF, column_type
from amt_stream.service.message import LeftOut, Message
from amt_stream.service.transports.transport import ServiceError, Unhindered, Wire, missing

if TYPE_CHECKING:
    from pylsl import StreamInfo, StreamOutlet

NAME = "amt_stream"
LOOPBACK = """[ports]
IPv6=disable
[multicast]
ResolveScope=machine
ListenAddress=127.0.0.1
[log]
level=-2
"""
"""Configuration of liblsl for discovery on this computer only."""

LIMIT_UNIT = "0 green, 1 amber, 2 red"
MARKS = ("valid", "settling", "calibrated", "fault")
MARK_UNIT = "0 or 1"
YOUNGEST_S, OLDEST_S = -1.0, 60.0
"""Rows are never older; if one seems to be, the computer's clock was changed."""

LAST_S = 0.2


class Lsl(Unhindered):
    """LSL streams: type Loudness with the rows of each microphone, type Markers with events.

    network: visible on the network, as liblsl is configured; otherwise only on this computer,
        whatever the configuration
    named: prefix of the stream names, different for each station on a network
    """

    name = "lsl"

    def __init__(self, network: bool = False, named: str = NAME) -> None:
        self._network, self._named = network, named
        self._clock = _Clock()
        self._outlets: dict[str, StreamOutlet] = {}
        self._events: StreamOutlet | None = None
        self._header: JsonMap = {}
        self._channels: list[str] = []
        self._left_out = LeftOut()

    @property
    def missed(self) -> int:  # type: ignore[override]
        return self._left_out.count

    async def open(self, wire: Wire) -> None:
        try:
            import pylsl

            if not self._network:
                pylsl.set_config_content(LOOPBACK)
        except ModuleNotFoundError as error:
            raise missing("LSL needs pylsl", "lsl") from error
        except RuntimeError as error:  # or NotImplementedError if liblsl is too old
            raise ServiceError(
                "LSL needs liblsl 1.17.7 or newer, which does not come with pylsl for this system, "
                "as on ARM: conda install -c conda-forge liblsl, or name its file in PYLSL_LIB"
            ) from error
        info = pylsl.StreamInfo(
            f"{self._named} events",
            "Markers",
            1,
            pylsl.IRREGULAR_RATE,
            pylsl.cf_string,
            self._id("events"),
        )
        try:
            self._events = self._outlet(info)
        except OSError as error:
            raise ServiceError(
                f"LSL cannot be limited to this computer ({error.strerror}): --lsl-network opens "
                "it to the network"
            ) from error

    def send(self, message: Message) -> None:
        assert self._events is not None
        if message.kind == "header":
            self._header = message.content
            channels = [one["name"] for one in message.content["columns"]]
            channels = [n for n in channels if column_type(n) == "float64" or limit_in(n)]
            if channels != self._channels:
                self._channels, self._outlets = channels, {}
        elif message.kind == "row":
            try:
                outlet = self._outlets.get(message.microphone) or self._begun(message.microphone)
            except (OSError, RuntimeError) as error:
                self.note = f"LSL cannot make a stream for rows: {error}"
                self._left_out.add()
                return
            content = self._left_out.before(message).content
            outlet.push_sample(self._values(content), self._clock.of(content))
        elif message.kind == "event":
            self._events.push_sample([message.text], self._clock.of(message.content))

    def _values(self, row: Mapping[str, object]) -> list[float]:
        values = (row.get(name) for name in (*self._channels, *MARKS[:-1]))
        return [*map(_number, values), float(FAULTS_OF[str(row["fault"])])]

    async def close(self) -> None:
        """Close the outlets; samples not sent yet are lost."""
        outlets = [*self._outlets.values(), *([self._events] if self._events else [])]
        if any(outlet.have_consumers() for outlet in outlets):
            await asyncio.sleep(LAST_S)
        self._outlets, self._events = {}, None

    def _id(self, what: str) -> str:
        """The source id, by which a recorder recognizes the stream after a restart."""
        return f"{self._named} {socket.gethostname()} {what}"

    def _begun(self, row: str) -> "StreamOutlet":
        import pylsl

        name = f"{self._named} {row}".strip()
        rate = 1000 / self._header["step_ms"]
        # Models with a row per cell have several rows at a time.
        rate = pylsl.IRREGULAR_RATE if "modulation_hz" in self._channels else rate
        count = len(self._channels) + len(MARKS)
        info = pylsl.StreamInfo(
            name, "Loudness", count, rate, pylsl.cf_double64, self._id(f"row {row}".strip())
        )
        columns = {one["name"]: one for one in self._header["columns"]}
        channels = info.desc().append_child("channels")
        for one in (*self._channels, *MARKS):
            column = columns.get(
                one, {"unit": "bits" if one == "fault" else MARK_UNIT, "quantity": one}
            )
            channel = channels.append_child("channel").append_child_value("label", one)
            unit = LIMIT_UNIT if limit_in(one) else column["unit"]
            channel.append_child_value("unit", unit)
            channel.append_child_value("type", column["quantity"])
        info.desc().append_child_value("header", Message("header", self._header).text)
        self._outlets[row] = self._outlet(info)
        return self._outlets[row]

    def _outlet(self, info: "StreamInfo") -> "StreamOutlet":
        import pylsl

        before = _open_to_all()
        outlet = pylsl.StreamOutlet(info)
        if not self._network:
            for fd in _open_to_all() - before:
                _keep_to_loopback(fd)
        return outlet


def _number(value: object) -> float:
    """A reading or the state of a limit as a number."""
    if value in COLORS:
        return float(COLORS.index(value))
    return float(value) if isinstance(value, int | float) else math.nan


class _Clock:
    """Converts the time of sound to the monotonic clock of liblsl."""

    def __init__(self) -> None:
        self._last = (math.nan, math.nan)

    def of(self, content: JsonMap) -> float:
        """The time of a row or an event."""
        import pylsl

        now, (then, then_s) = pylsl.local_clock(), self._last
        utc = content["utc"]
        age_s = math.nan if utc is None else time.time() - datetime.fromisoformat(utc).timestamp()
        if not YOUNGEST_S < age_s < OLDEST_S:
            age_s = 0.0 if math.isnan(then) else now - then - (content["time_s"] - then_s)
        self._last = (now - age_s, content["time_s"])
        return now - age_s


def _open_to_all() -> set[int]:
    """File descriptors of this process that listen on all addresses; on Linux only."""
    found = set()
    for one in Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ():
        # Skip other descriptors: a duplicate would keep a pipe open.
        with contextlib.suppress(OSError):  # closed meanwhile
            if one.is_socket():
                with socket.socket(fileno=os.dup(int(one.name))) as held:
                    if held.family == socket.AF_INET and held.getsockname()[0] == "0.0.0.0":
                        found.add(int(one.name))
    return found


def _keep_to_loopback(fd: int) -> None:
    """Bind a socket to loopback, as liblsl binds its ports to all addresses."""
    with socket.socket(fileno=os.dup(fd)) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
