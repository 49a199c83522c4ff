"""What a service manager is told, by the protocol of systemd (sd_notify(3))."""

import contextlib
import os
import socket
import time

from amt_stream.core.json_types import JsonMap
from amt_stream.core.safe_text import plain
from amt_stream.service.message import RUNNING, WAITING, Message
from amt_stream.service.transport import Unhindered, Wire

ALIVE_S = 1.0
START_S = 300.0
"""So long models may compile, while nothing else shows that it lives."""


def manager() -> "Manager | None":
    """The service manager that has started this process, if one did that wants to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    return Manager(address) if address else None


class Manager(Unhindered):
    """Told that the station is ready, how it stands, and that it lives.

    It is ready once it measures, or waits for its device. It lives as long as rows come, and while
    there can be none: the device is away, nobody wants a measurement, or one is just beginning.
    """

    name = "systemd"

    def __init__(self, address: str) -> None:
        # A name that begins with @ is one of no file.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._told = 0.0
        self._state, self._since = "", 0.0

    async def open(self, wire: Wire) -> None:
        """There is nothing to wait for."""

    def send(self, message: Message) -> None:
        if message.kind == "state":
            state, why = message.content["state"], "; ".join(message.content["why"])
            ready = ["READY=1"] if state in (*RUNNING, WAITING) else []
            words = why if why and state not in RUNNING else ": ".join(filter(None, (state, why)))
            self._tell(*ready, f"STATUS={plain(words)}")
            if self._lives_without_rows(message.content):
                self._tell("WATCHDOG=1")
        elif message.kind == "row" and time.monotonic() > self._told + ALIVE_S:
            self._told = time.monotonic()
            self._tell("WATCHDOG=1")

    def _lives_without_rows(self, told: JsonMap) -> bool:
        if told["state"] != self._state:
            self._state, self._since = told["state"], time.monotonic()
        if self._state == "starting":
            return time.monotonic() < self._since + START_S
        away = told["health"] is not None and told["health"]["device_state"] == "lost"
        return self._state in ("stopped", WAITING) or (self._state in RUNNING and away)

    async def close(self) -> None:
        self._tell("STOPPING=1")
        self._socket.close()

    def _tell(self, *lines: str) -> None:
        # One that does not listen has its own ways to find out.
        with contextlib.suppress(OSError):
            self._socket.sendto("\n".join(lines).encode(), self._address)
