"""`serve --osc` and `--osc-in`, with python-osc on the other side."""

import json
import socket
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pythonosc.osc_message_builder import OscMessageBuilder
from pythonosc.osc_packet import OscPacket

from amt_stream.service.message import Message
from amt_stream.service.transports.osc import Osc, commands_in
from tests.service.served import Served, is_row


@pytest.fixture
def listening():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        one.settimeout(20)
        yield one


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def told(packet):
    """The arguments of each message of a packet, by address."""
    return {one.message.address: one.message.params for one in OscPacket(packet).messages}


def built(address, *arguments):
    builder = OscMessageBuilder(address)
    for one in arguments:
        builder.add_arg(one)
    return builder.build().dgram


def test_a_measurement_goes_out_and_is_commanded(listening):
    port = free_port()
    ways = ["--osc", f"127.0.0.1:{listening.getsockname()[1]}", "--osc-in", str(port)]
    asked = ["--model", "spl", "--source", "am-tone", "--columns", "laf_db,l10_db"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.settimeout(20)
        with Served(*asked, *ways) as served:

            def ask(address, *arguments):
                sending.sendto(built(address, *arguments), ("127.0.0.1", port))
                (found,) = told(sending.recv(1 << 16)).items()
                assert found[0] == "/amt/reply"
                assert json.loads(found[1][3])["error"] == found[1][2]
                return found[1][:3]

            served.until(is_row)
            assert ask("/amt/command/mark", "text", "door", "id", 3) == ["mark", 1, ""]
            settings = json.dumps({"full_scale_db": 100})
            assert ask("/amt/command/calibrate", settings) == ["calibrate", 1, ""]
            assert ask("/amt/command/pause")[:2] == ["pause", 1]
            assert "has no argument 'loud'" in ask("/amt/command/mark", "loud")[2]
            assert "'/amt/main/laf_db' is not a command" in ask("/amt/main/laf_db", 3.0)[2]
            assert "is not a command" in ask("/amt/command/mark", "text", "a", "b")[2]
            sending.sendto(b"nonsense", ("127.0.0.1", port))
            assert "is not a command" in told(sending.recv(1 << 16))["/amt/reply"][2]
            assert ask("/amt/command/stop")[:2] == ["stop", 1]
            last = lambda m: m.get("state", {}).get("state") == "stopped"  # noqa: E731
            served.until(last)
    heard = [listening.recv(1 << 16) for message in served.past]
    for message, packet in zip(served.past, heard, strict=True):
        if is_row(message):
            found = told(packet)
            assert found.pop("/amt/main/time") == [message["utc"], str(message["sample"])]
            marks = [message[name] for name in ("valid", "settling", "calibrated", "fault")]
            assert found.pop("/amt/main/marks") == marks
            there = [name for name in ("laf_db", "l10_db") if message[name] is not None]
            assert list(found) == [f"/amt/main/{name}" for name in there]
            for name in there:
                assert found[f"/amt/main/{name}"] == [pytest.approx(message[name], rel=1e-7)]
        else:
            ((kind, _),) = message.items()
            ((address, arguments),) = told(packet).items()
            assert address == f"/amt/{kind}"
            if kind == "event":
                assert arguments[:2] == [message["event"]["kind"], message["event"]["text"]]
            else:
                assert json.loads(arguments[-1]) == message[kind]


def row_at(utc, name="a b/c"):
    marks = {"fault": "", "settling": False, "settling_columns": "", "clipped_columns": ""}
    marks["calibrated"] = True
    return Message(
        "row",
        {"time_s": 1.0, "utc": utc, "sample": 2**40, "row": name, "x_db": 1.5}
        | {"limit_state": "red", "valid": True}
        | marks,
    )


def test_a_bundle_stands_at_its_time_and_never_later_than_now():
    packet = Osc("127.0.0.1", 1).encoded(row_at("2026-11-22T11:46:04.500Z"))
    (seconds,) = struct.unpack(">Q", packet[8:16])
    assert seconds / 2**32 - 2_208_988_800 == pytest.approx(1795347964.5, abs=1e-3)
    found = told(packet)
    assert found["/amt/a_b_c/x_db"] == [1.5]
    assert found["/amt/a_b_c/limit_state"] == ["red"]
    assert found["/amt/a_b_c/time"][1] == str(2**40)
    for late in (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)), None):
        packet = Osc("127.0.0.1", 1).encoded(row_at(late))
        assert packet[8:16] == bytes(7) + b"\x01"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda b: b"#bundle\0" + bytes(8) + b))
def test_any_bytes_are_answered(data):
    assert all(isinstance(one, str | dict) for one in commands_in(data))


def test_a_packet_of_packets_is_answered():
    data = built("/amt/command/status")
    for _ in range(3000):
        data = b"#bundle\0" + bytes(7) + b"\x01" + struct.pack(">i", len(data)) + data
    assert commands_in(data) == ["the OSC datagram"]
