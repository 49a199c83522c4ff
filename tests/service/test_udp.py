"""`serve --udp`: real datagrams, to sockets that listen."""

import asyncio
import contextlib
import json
import socket

import pytest

from amt_stream.service.message import Message
from amt_stream.service.transports.transport import ServiceError
from amt_stream.service.transports.udp import Udp
from tests.patience import PATIENCE_S
from tests.service.served import Served, is_row


@pytest.fixture
def listeners():
    """Sockets for datagrams, of IPv4 and IPv6."""
    with contextlib.ExitStack() as stack:
        found = []
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            listening = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            listening.bind((host, 0))
            listening.settimeout(PATIENCE_S)
            found.append(listening)
        yield found


def test_each_message_is_a_datagram(listeners):
    old, new = (one.getsockname()[1] for one in listeners)
    addresses = ["--udp", f"127.0.0.1:{old}", "--udp", f"[::1]:{new}"]
    asked = ["--model", "spl", "--source", "am-tone", "--duration", "2", "--fast"]
    with Served(*asked, *addresses) as served:
        status, told = served.end(close=False)
    assert status == 0
    for listening in listeners:
        assert [json.loads(listening.recv(1 << 16)) for _ in told] == told
    assert sum(map(is_row, told)) == 21


def test_what_is_no_address_of_one_computer_is_refused():
    for host in ("255.255.255.255", "224.0.0.1", "ff02::1", "0.0.0.0", "::"):
        with pytest.raises(ServiceError, match="is not one computer: give the address"):
            asyncio.run(Udp(host, 9000).open(None))
    with pytest.raises(ServiceError, match="nothing can be sent to no host:9000: "):
        asyncio.run(Udp("no host", 9000).open(None))


def test_what_is_too_large_is_told(listeners):
    listening, _ = listeners

    async def send():
        udp = Udp(*listening.getsockname()[:2])
        await udp.open(None)
        udp.send(Message("header", {"columns": "x" * 66_000}))
        udp.send(Message("row", {"fault": ""}))
        udp.send(Message("row", {"fault": "", "columns": "x" * 66_000}))
        udp.send(Message("row", {"fault": ""}))
        await udp.close()
        return udp

    udp = asyncio.run(send())
    assert listening.recv(1 << 16) == b'{"fault":""}\n'
    assert listening.recv(1 << 16) == b'{"fault":"overload"}\n'
    assert udp.note.startswith("a message (row) of 66026 bytes is too large for a datagram")
    assert udp.missed == 1
