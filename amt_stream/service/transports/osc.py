"""Messages and commands by Open Sound Control 1.0 over UDP."""

import asyncio
import json
import struct
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from amt_stream.core.json_types import JsonMap
from amt_stream.core.words import counted
from amt_stream.meters.rows.block import AFTER, BEFORE, MICROPHONE
from amt_stream.service.message import MAIN, Message
from amt_stream.service.transports.stdio import asked_in
from amt_stream.service.transports.transport import ServiceError, Unhindered, Wire, missing
from amt_stream.service.transports.udp import Udp

COMMAND = "/amt/command/"
LOCAL = "127.0.0.1"
MOST_WAITING = 32
SINCE_1900_S = 2_208_988_800
AT_ONCE = b"#bundle\0" + struct.pack(">Q", 1)
UNFIT = str.maketrans(dict.fromkeys(" #*,/?[]{}", "_"))
"""Characters not allowed in a part of an address."""

APART = frozenset((*BEFORE, MICROPHONE, *AFTER, "valid", "station", "labels"))


class Osc(Udp):
    """Sends a row as a bundle with one message per value, and other messages singly."""

    kind = "osc"

    def encoded(self, message: Message) -> bytes:
        content = message.content
        if message.kind == "row":
            return _bundle(content)
        if message.kind == "event":
            texts = (content["kind"], content["text"], str(content["sample"]), content["utc"] or "")
            return packed("/amt/event", *texts, message.microphone)
        if message.kind == "state":
            return packed("/amt/state", content["state"], content["error"], json.dumps(content))
        return packed(f"/amt/{message.kind}", json.dumps(content))


class OscIn(Unhindered):
    """Accepts commands from programs on this computer, and answers the sender."""

    def __init__(self, port: int) -> None:
        self.name = f"osc-in {LOCAL}:{port}"
        self._port = port
        self._left_out = 0
        self._waiting: set[asyncio.Task[None]] = set()
        self._wire: Wire | None = None
        self._way: asyncio.DatagramTransport | None = None

    @property
    def note(self) -> str:  # type: ignore[override]
        return (
            f"{counted(self._left_out, 'command')} by OSC dropped: too many at once"
            if self._left_out
            else ""
        )

    async def open(self, wire: Wire) -> None:
        try:
            import pythonosc  # noqa: F401
        except ModuleNotFoundError as error:
            raise missing("commands by OSC need python-osc") from error
        self._wire = wire
        try:
            self._way, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: _Ear(self), local_addr=(LOCAL, self._port)
            )
        except OSError as error:
            raise ServiceError(
                f"port {self._port} is not available ({error.strerror}): give another one with "
                "--osc-in PORT"
            ) from error

    def send(self, message: Message) -> None:
        """Send nothing: this transport only receives."""

    async def close(self) -> None:
        if self._way is not None:
            self._way.close()

    def hear(self, data: bytes, sender: object) -> None:
        """Answer the commands of one datagram."""
        for asked in commands_in(data):
            if len(self._waiting) >= MOST_WAITING:
                self._left_out += 1
                continue
            task = asyncio.create_task(self._answer(asked, sender), name="command by OSC")
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _answer(self, asked: object, sender: Any) -> None:
        assert self._wire is not None
        reply = await self._wire.answer(asked)
        content = reply.content
        assert self._way is not None
        done = (
            str(content["command"] or ""),
            int(content["done"]),
            content["error"],
            json.dumps(content),
        )
        self._way.sendto(packed("/amt/reply", *done), sender)


class _Ear(asyncio.DatagramProtocol):
    def __init__(self, osc: OscIn) -> None:
        self._osc = osc

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._osc.hear(data, addr)


def commands_in(data: bytes) -> list[object]:
    """The commands in a datagram; an invalid one becomes a text, which is refused."""
    from pythonosc.osc_packet import OscPacket

    try:
        found = [one.message for one in OscPacket(data).messages]
    except Exception:  # the library raises anything on malformed data
        return ["the OSC datagram"]
    return [_asked(one.address, one.params) for one in found]


def _asked(address: str, values: Sequence[Any]) -> object:
    """A command from names and values in turn, or from one JSON text."""
    if not address.startswith(COMMAND):
        return address
    command = {"command": address.removeprefix(COMMAND)}
    if len(values) == 1:
        arguments = asked_in(values[0]) if isinstance(values[0], str) else values[0]
        return {
            **(arguments if isinstance(arguments, Mapping) else {str(values[0]): ""}),
            **command,
        }
    if len(values) % 2 or not all(isinstance(name, str) for name in values[::2]):
        return f"{address} {values}"
    return {**dict(zip(values[::2], values[1::2], strict=True)), **command}


def _bundle(content: JsonMap) -> bytes:
    """A row as a bundle: its time, its marks, and each reading that has a value."""
    row = str(content.get(MICROPHONE) or MAIN)
    marks = (int(content[name]) for name in ("valid", "settling", "calibrated"))
    messages = [
        packed(address_of(row, "time"), content["utc"] or "", str(content["sample"])),
        packed(address_of(row, "marks"), *marks, content["fault"]),
    ]
    for name, value in content.items():
        if name not in APART and value is not None:
            number = value if isinstance(value, str) else float(value)
            messages.append(packed(address_of(row, name), number))
    parts = (struct.pack(">i", len(one)) + one for one in messages)
    return _time_tag(content["utc"]) + b"".join(parts)


def _time_tag(utc: str | None) -> bytes:
    """The head of a bundle; receivers would wait until a time in the future."""
    then = None if utc is None else datetime.fromisoformat(utc).timestamp()
    if then is None or then > time.time():
        return AT_ONCE
    return b"#bundle\0" + struct.pack(">Q", round((then + SINCE_1900_S) * 2**32))


@lru_cache(4096)
def address_of(row: str, name: str) -> str:
    return f"/amt/{row.translate(UNFIT)}/{name}"


def packed(address: str, *arguments: str | float) -> bytes:
    """Encode one message: text as string, whole numbers as int32, others as float32."""
    types = "".join({str: "s", int: "i", float: "f"}[type(one)] for one in arguments)
    coded = (
        _text(one) if isinstance(one, str) else struct.pack(f">{kind}", one)
        for kind, one in zip(types, arguments, strict=True)
    )
    return _text(address) + _text(f",{types}") + b"".join(coded)


def _text(text: str) -> bytes:
    """Encode text with 1 to 4 zeros at the end, to a multiple of 4 bytes."""
    coded = text.replace("\0", "").encode(errors="replace")
    return coded + bytes(4 - len(coded) % 4)
