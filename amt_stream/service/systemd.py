"""What a service manager is told, by the protocol of systemd (sd_notify(3))."""

import contextlib
import os
import socket
import time

from amt_stream.plain import plain
from amt_stream.service.message import RUNNING, Message
from amt_stream.service.transport import Unhindered, Wire

ALIVE_S = 1.0


def manager() -> "Manager | None":
    """The service manager that has started this process, if one did that wants to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    return Manager(address) if address else None


class Manager(Unhindered):
    """Told that the station is ready, how it stands, and, as long as rows come, that it lives."""

    name = "systemd"

    def __init__(self, address: str) -> None:
        # A name that begins with @ is one of no file.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._told = 0.0

    async def open(self, wire: Wire) -> None:
        """There is nothing to wait for."""

    def send(self, message: Message) -> None:
        if message.kind == "state":
            state, error = message.content["state"], message.content["error"]
            ready = ["READY=1"] if state in RUNNING else []
            words = plain(": ".join(filter(None, (state, error))))
            self._tell(*ready, f"STATUS={words}")
            # Nobody measures, and somebody wants it so.
            if state == "stopped":
                self._tell("WATCHDOG=1")
        elif message.kind == "row" and time.monotonic() > self._told + ALIVE_S:
            self._told = time.monotonic()
            self._tell("WATCHDOG=1")

    async def close(self) -> None:
        self._tell("STOPPING=1")
        self._socket.close()

    def _tell(self, *lines: str) -> None:
        # One that does not listen has its own ways to find out.
        with contextlib.suppress(OSError):
            self._socket.sendto("\n".join(lines).encode(), self._address)
