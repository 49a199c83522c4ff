"""Notifications to a service manager, by the protocol of systemd (sd_notify(3))."""

import contextlib
import os
import socket
import time

from amt_stream.core.json_types import JsonMap
from amt_stream.core.safe_text import plain
from amt_stream.meters.state_signs import AWAY
from amt_stream.service.message import RUNNING, WAITING, Message
from amt_stream.service.transports.transport import Unhindered, Wire

ALIVE_S = 1.0
START_S = 300.0
"""Models may compile for this long without another sign of life."""


def manager() -> "Manager | None":
    """The service manager that started this process, if it expects notifications."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    return Manager(address) if address else None


class Manager(Unhindered):
    """Notifies the service manager of readiness, state and liveness.

    The station is ready once it measures or waits for its device. It is alive while rows come, and
    while there can be none: the device is missing or silent, or the measurement is stopped or
    starting.
    """

    name = "systemd"

    def __init__(self, address: str) -> None:
        # A name that begins with @ is an abstract socket.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._reported_at = 0.0
        self._state, self._since = "", 0.0

    async def open(self, wire: Wire) -> None:
        """Open nothing: the socket is connected when it is needed."""

    def send(self, message: Message) -> None:
        if message.kind == "state":
            state, why = message.content["state"], "; ".join(message.content["why"])
            ready = ["READY=1"] if state in (*RUNNING, WAITING) else []
            words = why if why and state not in RUNNING else ": ".join(filter(None, (state, why)))
            self._tell(*ready, f"STATUS={plain(words)}")
            if self._lives_without_rows(message.content):
                self._tell("WATCHDOG=1")
        elif message.kind == "row" and time.monotonic() > self._reported_at + ALIVE_S:
            self._reported_at = time.monotonic()
            self._tell("WATCHDOG=1")

    def _lives_without_rows(self, state: JsonMap) -> bool:
        if state["state"] != self._state:
            self._state, self._since = state["state"], time.monotonic()
        if self._state == "starting":
            return time.monotonic() < self._since + START_S
        away = state["health"] is not None and state["health"]["device_state"] in AWAY
        return self._state in ("stopped", WAITING) or (self._state in RUNNING and away)

    async def close(self) -> None:
        self._tell("STOPPING=1")
        self._socket.close()

    def _tell(self, *lines: str) -> None:
        # If the manager does not listen, its watchdog notices.
        with contextlib.suppress(OSError):
            self._socket.sendto("\n".join(lines).encode(), self._address)
