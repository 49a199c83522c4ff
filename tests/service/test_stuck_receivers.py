"""Receivers of HTTP that misbehave: each is away, what waits is bounded, and it may come back."""

import asyncio
import gc
import socket
import threading
import time
from pathlib import Path

import pytest

from amt_stream.service.identity import Identity
from amt_stream.service.message import Message
from amt_stream.service.metrics import Metrics
from amt_stream.service.transports import http_request, http_sender, mqtt
from amt_stream.service.transports.http_endpoint import Endpoint, Recipient
from amt_stream.service.transports.http_request import HttpRequest
from amt_stream.service.transports.http_sender import HttpSender
from amt_stream.service.transports.influx import Influx
from amt_stream.service.transports.mqtt import Broker, Mqtt
from amt_stream.service.transports.transport import ServiceError
from amt_stream.service.transports.webhook import Webhook
from tests.service.served import Served
from tests.service.stuck import (
    EACH,
    Stuck,
    drip,
    drips_headers_without_end,
    request_of,
    says_nothing,
)

DOCS = Path(__file__).parents[2] / "docs"
DEADLINES_S = http_request.PATIENCE_S, http_request.CONNECT_S


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Deadlines and pauses of less than a second."""
    monkeypatch.setattr(http_request, "PATIENCE_S", 0.5)
    monkeypatch.setattr(http_request, "CONNECT_S", 0.2)
    monkeypatch.setattr(http_request, "WORDS_S", 0.2)
    monkeypatch.setattr(http_sender, "FIRST_S", 0.05)
    monkeypatch.setattr(http_sender, "LONGEST_S", 0.05)


@pytest.fixture
def sender_to():
    """Starts senders, and ends them."""
    started = []

    def start(url, joins=False):
        started.append(HttpSender(Endpoint(url), joins))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.close()
        assert not one._thread.is_alive()


def until(condition):
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


@pytest.mark.parametrize(("behave", "said"), EACH.items(), ids=[one.__name__ for one in EACH])
def test_a_receiver_is_away_until_it_is_mended(sender_to, behave, said):
    with Stuck(behave) as server:
        sender = sender_to(f"http://{server.place}/hook")
        for part in (b"first" * 50_000, b"second"):
            assert sender.put(part)
        server.meets()
        until(lambda: sender.note)
        assert sender.note.startswith(f"{server.place} {said}")
        assert len(sender.note) < 500
        server.meets()  # it is tried again
        server.mended.set()
        assert [server.accepts(), server.accepts()] == [b"first" * 50_000, b"second"]
        until(lambda: not sender.note)
    assert sender.lost == 0


def test_an_answer_counts_although_its_body_never_ends(sender_to):
    def accepts_and_drips(server, connection):
        server.accepted.put(request_of(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not server.pause():
            connection.sendall(b"x")

    with Stuck(accepts_and_drips) as server:
        sender = sender_to(f"http://{server.place}/hook")
        for part in (b"one", b"two", b"three"):
            sender.put(part)
        assert [server.accepts() for _ in range(3)] == [b"one", b"two", b"three"]
        assert sender.note == ""


def test_what_is_refused_for_good_is_lost_although_its_reason_drips(sender_to):
    def refuses_and_drips(server, connection):
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: 1000\r\n\r\n")
        while not server.pause():
            connection.sendall(b"x")

    with Stuck(refuses_and_drips) as server:
        sender = sender_to(f"http://{server.place}/hook")
        sender.put(b"bad")
        until(lambda: sender.lost == 1)
        server.mended.set()
        sender.put(b"good")
        assert server.accepts() == b"good"
        until(lambda: sender.note == f"{server.place} answers again; messages lost: 1")


def test_a_handshake_that_never_ends(monkeypatch):
    with Stuck(says_nothing) as server:
        with HttpRequest(Endpoint(f"https://{server.place}/hook")) as request:
            answers = {request.post(b"part").words for _ in range(3)}
        assert answers == {"has not answered within 0.2 s"}
        gc.collect()  # a connection that was left open would be an error here


def test_connections_that_nobody_takes(sender_to):
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(3)]
        for one in others:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        sender = sender_to(f"http://127.0.0.1:{full.getsockname()[1]}/hook")
        sender.put(b"part")
        until(lambda: "has not answered within 0.2 s" in sender.note)
        for one in others:
            one.close()


def test_a_name_server_that_is_silent_holds_up_no_end(sender_to, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60))
    sender = sender_to("http://nowhere.example/hook")
    sender.put(b"part")
    until(lambda: "has not answered within 0.2 s" in sender.note)
    sender.close()
    assert not sender._thread.is_alive()
    assert sender.lost == 1
    over.set()


def test_a_request_under_way_ends_with_its_sender(sender_to, monkeypatch):
    monkeypatch.setattr(http_request, "PATIENCE_S", 600.0)
    with Stuck(drips_headers_without_end) as server:
        sender = sender_to(f"http://{server.place}/hook")
        sender.put(b"part")
        server.meets()
        sender.close()
        assert not sender._thread.is_alive()
        assert sender.lost == 1


@pytest.mark.parametrize("kind", ["webhook", "influx"])
def test_what_finds_no_room_is_counted_and_said(kind, monkeypatch):
    """Events and states too, in the state of the station and its metrics."""
    monkeypatch.setattr(http_sender, "MOST_WAITING", 2000)
    event = {"kind": "lost", "utc": "2026-11-22T20:41:32.929Z", "text": "x" * 300}
    event |= {"sample": 0, "samples": 0}
    with Stuck(says_nothing) as server:
        url = f"http://{server.place}/hook"
        if kind == "webhook":
            transport = Webhook("post", Recipient(url), Identity("roof"))
        else:
            transport = Influx(Endpoint(url), Identity("roof"))
        transport._sender.start()
        sent = 0
        while not transport.missed:
            transport.send(Message("event", event))
            sent += 1
        for _ in range(9):
            transport.send(Message("event", event))
        assert transport.missed == 10
        assert transport._sender._bytes <= 2000
        until(lambda: transport.note)
        transport.send(Message("event", event))
        assert transport.note.endswith("has not answered within 0.5 s; messages lost: 11")
        metrics = Metrics()
        state = {"state": "measuring", "preset": "", "health": None}
        state["transports"] = {"one": {"note": transport.note, "missed_rows": transport.missed}}
        metrics.send(Message("state", state))
        (family,) = [one for one in metrics._health() if "missed" in one.name]
        assert family.samples[0].value == 11
        server.mended.set()
        bodies = b""
        while bodies.count(b"x" * 300) < sent - 1:
            bodies += server.accepts()
        until(lambda: transport.note == f"{server.place} answers again; messages lost: 11")
        monkeypatch.setattr(http_sender.time, "monotonic", lambda: 1e12)
        assert transport.note == ""
        monkeypatch.undo()
        transport._sender.close()


def test_a_proxy_that_cannot_be_used_is_refused(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nothing://of-the-kind")
    with pytest.raises(ServiceError, match=r"proxy .*correct or unset ALL_PROXY"):
        HttpRequest(Endpoint("http://127.0.0.1:9/"))


def test_a_station_says_that_its_receivers_are_stuck_and_ends():
    """The finding as it was made: an answer byte by byte, while all looked well."""
    with Stuck(drips_headers_without_end) as hook, Stuck(drips_headers_without_end) as lines:
        asked = ["--source", "am-tone", "--model", "spl", "--columns", "laf_db"]
        asked += ["--limit", "laf_db>10", "--post", f"http://{hook.place}/"]
        asked += ["--influx", f"http://{lines.place}/write"]
        with Served(*asked) as served:

            def both_said(message):
                why = " ".join(message["state"]["why"]) if "state" in message else ""
                return all(f"{one.place} has not answered" in why for one in (hook, lines))

            served.until(both_said)
            hook.mended.set()
            lines.mended.set()
            served.until(lambda message: "state" in message and not message["state"]["why"])
            assert served.end()[0] == 0
        assert b'"kind": "limit"' in hook.accepts()
        assert lines.accepts().startswith(b"amt")


def drips_a_welcome(server, connection):
    connection.recv(1000)
    drip(server, connection, b"\x20\xff\xff\xff\x7f" + bytes(1000))


@pytest.mark.parametrize("behave", [says_nothing, drips_a_welcome])
def test_a_broker_that_is_stuck_is_away_and_the_station_ends(behave, monkeypatch):
    with Stuck(behave) as server:
        asked = ["--source", "am-tone", "--model", "spl", "--columns", "laf_db"]
        with Served(*asked, "--mqtt", server.place) as served:
            served.until(
                lambda message: (
                    "state" in message
                    and f"the MQTT broker {server.place} does not answer"
                    in str(message["state"]["why"])
                )
            )
            assert served.end()[0] == 0


def test_a_broker_whose_name_is_not_found_out_holds_up_no_end(monkeypatch):
    """The look-up of a name cannot be broken off, so nobody may wait for it."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60))
    monkeypatch.setattr(mqtt, "CONNECT_S", 0.1)
    transport = Mqtt(Broker("nowhere.example", 1883, False), "amt/test")

    async def connect():
        await transport.open(None)
        while not transport.note:
            await asyncio.sleep(0.01)
        await transport.close()

    asyncio.run(connect())
    assert not over.is_set()
    over.set()
    assert "does not answer: timeout" in transport.note


def test_the_documents_have_these_times():
    words = (DOCS / "wire.md").read_text().partition("### InfluxDB\n")[2].partition("### Webh")[0]
    patience_s, connect_s = DEADLINES_S
    assert f"does not answer within {patience_s:g} s ({connect_s:g} s to connect)" in words
    assert f"{http_sender.MOST_WAITING >> 20} MiB of lines wait" in words
    assert (http_sender.TOLD_S, "for a minute" in words) == (60, True)
    assert 2 * connect_s < patience_s
