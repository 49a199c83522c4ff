"""Messages as UDP datagrams of JSON."""

import asyncio
import errno
import ipaddress
import socket
from typing import Any

from amt_stream.service.message import LeftOut, Message
from amt_stream.service.transports.transport import ServiceError, Unhindered, Wire, host_and_port

LONGEST = 65_507
"""Largest payload of a datagram in bytes."""


class Udp(Unhindered):
    """Sends to one address, without confirmation."""

    kind = "udp"

    def __init__(self, host: str, port: int) -> None:
        self._to = Datagrams(host, port)
        self.name = f"{self.kind} {self._to}"
        self._left_out = LeftOut()

    @property
    def note(self) -> str:  # type: ignore[override]
        return self._to.note

    @property
    def missed(self) -> int:  # type: ignore[override]
        return self._left_out.count

    async def open(self, wire: Wire) -> None:
        await self._to.open()

    def send(self, message: Message) -> None:
        row = message.kind == "row"
        sent = self._left_out.before(message) if row else message
        if not self._to.send(self.encoded(sent), f"a message ({message.kind})") and row:
            self._left_out.add()

    def encoded(self, message: Message) -> bytes:
        return message.text.encode() + b"\n"

    async def close(self) -> None:
        self._to.close()


class Datagrams:
    """A socket for datagrams to one address of one computer, never multicast or broadcast."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._too_large = self._unsent = ""
        self._address: Any = None
        self._socket: socket.socket | None = None

    def __str__(self) -> str:
        return host_and_port(self._host, self._port)

    @property
    def note(self) -> str:
        """Which message was too large, or why nothing can be sent at the moment."""
        return self._unsent or self._too_large

    async def open(self) -> None:
        """Resolve the address. Raises ServiceError unless it is that of one computer."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._port, type=socket.SOCK_DGRAM
            )
            # Programs that listen at "localhost" mostly use IPv4.
            family, *_, self._address = min(found, key=lambda one: one[0] != socket.AF_INET)
            # Broadcast stays off, so the system refuses broadcast addresses too.
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ServiceError(f"nothing can be sent to {self}: {why}") from error
        self._socket.setblocking(False)
        address = ipaddress.ip_address(self._address[0])
        if address.is_multicast or address.is_unspecified or str(address) == "255.255.255.255":
            self.close()
            raise ServiceError(f"{self} is not one computer: give the address of the receiver")
        if address.is_loopback:
            # Connected, so that it receives from nobody else.
            self._socket.bind((str(address), 0))

    def send(self, data: bytes, what: str) -> bool:
        """Send one datagram; if it fails, the note says why."""
        assert self._socket is not None
        try:
            if len(data) > LONGEST:
                raise OSError(errno.EMSGSIZE, "")
            self._socket.sendto(data, self._address)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                self._too_large = (
                    f"{what} of {len(data)} bytes is too large for a datagram to {self}"
                )
            else:
                self._unsent = f"nothing can be sent to {self}: {error.strerror}"
            return False
        self._unsent = ""
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
