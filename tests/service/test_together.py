"""One session over all transports at once: the same rows, and commands that do the same."""

import contextlib
import json
import signal
import socket
import struct
import sys
import urllib.request
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pythonosc.osc_message_builder import OscMessageBuilder
from pythonosc.osc_packet import OscPacket
from websockets.sync.client import connect

from amt_stream.core.values import NotAllowed
from amt_stream.service import COMMANDS
from amt_stream.service.identity import parse_label, parse_station
from tests.patience import PATIENCE_S
from tests.service.broker import RealBroker
from tests.service.served import Served, is_row

TOPIC = "amt/all"
NAMED = {"station": "all", "labels": {"city": "Graz", "lat": "-33.9"}}
MEASURED = ["--source", "am-tone", "--model", "zwicker,impulses"]
MEASURED += ["--columns", "zwicker_n_sone,zwicker_n5*"]
COLUMNS = ("zwicker_n_sone", "zwicker_n5_sone", "zwicker_n5_phon")


def datagrams():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    one.bind(("127.0.0.1", 0))
    one.settimeout(PATIENCE_S)
    return one


class Everything:
    """A measurement with all transports, and a peer at each."""

    def __init__(self, folder, stack):
        self.broker = RealBroker(folder, "allow_anonymous true")
        stack.callback(self.broker.end)
        self.paho, self.mqtt = self.broker.subscriber(f"{TOPIC}/#")
        self.udp, self.osc = (stack.enter_context(datagrams()) for _ in range(2))
        with datagrams() as free:
            self.osc_in = free.getsockname()
        ways = ["--web", "0", "--lsl", "--osc-in", str(self.osc_in[1])]
        ways += ["--udp", f"127.0.0.1:{self.udp.getsockname()[1]}"]
        ways += ["--osc", f"127.0.0.1:{self.osc.getsockname()[1]}"]
        ways += ["--mqtt", f"127.0.0.1:{self.broker.port}"]
        ways += ["--station", "all", "--label", "city=Wien", "--label", "lat=-33.9"]
        ways += ["--label", "city=Graz"]
        ways += ["--mqtt-every", "0", "--mqtt-commands", "--event-folder", str(folder / "events")]
        self.served = stack.enter_context(Served(*ways, *MEASURED))
        self.address = self.served.address
        url = self.address.replace("http", "ws") + "ws"
        self.web = stack.enter_context(
            connect(url, proxy=None, close_timeout=0.5, ping_interval=None)
        )
        self.sender = stack.enter_context(datagrams())

    def by_stdio(self, asked):
        self.served.tell(json.dumps(asked))
        return self.served.until(lambda message: "reply" in message)["reply"]

    def by_web(self, asked):
        self.web.send(json.dumps(asked))
        while "reply" not in (message := json.loads(self.web.recv(timeout=PATIENCE_S))):
            continue
        return message["reply"]

    def by_osc(self, asked):
        builder = OscMessageBuilder(f"/amt/command/{asked['command']}")
        builder.add_arg(json.dumps({key: asked[key] for key in asked if key != "command"}))
        self.sender.sendto(builder.build().dgram, self.osc_in)
        (message,) = OscPacket(self.sender.recv(1 << 16)).messages
        return json.loads(message.message.params[3])

    def by_mqtt(self, asked):
        self.paho.publish(f"{TOPIC}/command", json.dumps(asked))
        while (got := self.mqtt.get(timeout=PATIENCE_S))[0] != f"{TOPIC}/reply":
            continue
        return json.loads(got[1])["reply"]


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield Everything(tmp_path_factory.mktemp("broker"), stack)


def rows_of_osc(packet):
    """The row that a bundle tells, if it is one."""
    told = {one.message.address: one.message.params for one in OscPacket(packet).messages}
    if "/amt/main/time" not in told:
        return []
    readings = {name: told.get(f"/amt/main/{name}", [None])[0] for name in COLUMNS}
    valid, settling, calibrated, fault = told["/amt/main/marks"]
    marks = {"valid": valid, "settling": settling, "calibrated": calibrated, "fault": fault}
    assert not {"/amt/main/station", "/amt/main/labels"} & told.keys()
    utc, sample = told["/amt/main/time"]
    return [{"sample": int(sample), "utc": utc, **marks, **readings}]


def rows_of_json(text):
    message = json.loads(text)
    return [message] if is_row(message) else []


def rows_until(last, receive, rows_of):
    """Rows by their samples, as they come, until the last one."""
    found = {}
    while not found or max(found) < last:
        found |= {row["sample"]: row for row in rows_of(receive())}
    return found


def test_each_gets_the_same_rows(all_of_them):
    every, served = all_of_them, all_of_them.served
    first = served.until(is_row)["time_s"]
    served.until(lambda message: is_row(message) and message["time_s"] > first + 1)
    sent = {row["sample"]: row for row in served.past if is_row(row)}
    last = max(sent)

    def of_mqtt():
        topic, text = every.mqtt.get(timeout=PATIENCE_S)
        return text if topic == f"{TOPIC}/main/row" else "{}"

    ways = {
        "udp": (lambda: every.udp.recv(1 << 16), rows_of_json),
        "web": (lambda: every.web.recv(timeout=PATIENCE_S), rows_of_json),
        "mqtt": (of_mqtt, rows_of_json),
        "osc": (lambda: every.osc.recv(1 << 16), rows_of_osc),
    }
    for way, (receive, rows_of) in ways.items():
        rows = rows_until(last, receive, rows_of)
        same = sorted(rows.keys() & sent.keys())[1:]  # before the first some may have been missed
        assert len(same) >= 8, way
        for sample in same:
            row = rows[sample]
            wanted = {key: sent[sample][key] for key in row}
            if way == "osc":
                wanted = {key: as_osc(value) for key, value in wanted.items()}
            assert row == wanted, way
    told = served.ask("status")["transports"]
    assert {name.split()[0] for name in told} >= {"stdio", *ways, "lsl", "osc-in"}
    assert all(not one["note"] for one in told.values())


def test_each_message_and_metric_has_the_name_and_the_labels(all_of_them):
    every, served = all_of_them, all_of_them.served
    assert served.ask("mark", text="named")["done"]
    served.until(lambda message: "state" in message)
    found = {}
    for message in served.past:
        ((kind, content), *_) = [("row", message)] if is_row(message) else message.items()
        found.setdefault(kind, []).append({key: content.get(key) for key in NAMED})
    assert set(found) == {"row", "header", "event", "state", "reply"}
    for kind in ("row", "header", "event", "state"):
        assert all(named == NAMED for named in found[kind]), kind
    with urllib.request.urlopen(f"{every.address}metrics", timeout=PATIENCE_S) as response:
        families = [*text_string_to_metric_families(response.read().decode())]
    samples = [sample for family in families for sample in family.samples]
    tags = {"station": NAMED["station"], **NAMED["labels"]}
    assert len(samples) > 50
    assert all(sample.labels.items() >= tags.items() for sample in samples)


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_station, "a/b", "without any of"),
        (parse_station, "x" * 101, "at most 100"),
        (parse_label, "Graz", "printable text"),
        (parse_label, "9=Graz", "give KEY=VALUE"),
        (parse_label, "channel=1", "already has a meaning"),
        (parse_label, "city= ", "printable text"),
        (parse_label, "city=a\nb", "printable text"),
    ],
)
def test_what_is_no_name_and_no_label_is_refused(parse, text, said):
    with pytest.raises(NotAllowed, match=said):
        parse(text)


def as_osc(value):
    """A number as float32."""
    return float(np.float32(value)) if isinstance(value, float) else value


LSL_PORTS = range(16572, 16605)
"""liblsl binds to all addresses; that these sockets are kept to the loopback is tested apart."""


def places_of(process):
    """Protocol, address and port of each socket of a process and of those that it started.

    Those of connections apart.
    """
    started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    held = set()
    for pid in (process.pid, *started):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                held.add(str(one.readlink()))
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{protocol}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if f"socket:[{inode}]" in held and (protocol[:3] == "udp" or state == "0A"):
                address, port = local.split(":")
                words = struct.iter_unpack("<I", bytes.fromhex(address))
                yield protocol, b"".join(struct.pack(">I", *word) for word in words), int(port, 16)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a table of sockets to read")
def test_nothing_can_be_reached_from_elsewhere(all_of_them):
    all_of_them.served.until(is_row)
    found = list(places_of(all_of_them.served.process))
    assert len(found) >= 5
    beyond = [
        (protocol, port) for protocol, address, port in found if not ip_address(address).is_loopback
    ]
    assert all(port in LSL_PORTS for _, port in beyond), beyond


ASKED = [
    ({"command": "mark", "text": "here"}, "mark"),
    ({"command": "leave_out", "time_s": 1.0, "text": "a door"}, "impulse_left_out"),
    ({"command": "take_in", "time_s": 1.0}, "impulse_counted"),
    ({"command": "leave_out", "time_s": 0.1}, None),
    ({"command": "pause"}, "paused"),
    ({"command": "unpause"}, "continued"),
    ({"command": "reset_readings"}, "readings_reset"),
    ({"command": "undo_reset"}, "reset_undone"),
    ({"command": "undo_reset"}, None),
    ({"command": "reset_filters"}, "filters_reset"),
    ({"command": "calibrate", "full_scale_db": 101}, "calibrated"),
    ({"command": "swap", "settings": {"field": "diffuse"}}, "swapped"),
    ({"command": "replay", "seconds": 0.5}, None),
    ({"command": "status"}, None),
    ({"command": "mark"}, None),
    ({"command": "swap", "settings": {"field": "moon"}}, None),
    ({"command": "start"}, None),
    ({"command": "stop"}, None),
    ({"command": "pause"}, None),
    ({"command": "start"}, None),
]
"""Commands, each with the event that says it was done, if one does."""

WITHOUT_TEXT = "paused", "continued", "readings_reset", "impulse_counted"
REPLIES = {}


@pytest.mark.parametrize("way", ["stdio", "web", "osc", "mqtt"])
def test_a_command_does_the_same_over_each(all_of_them, way):
    assert {asked["command"] for asked, _ in ASKED} == {*COMMANDS}
    ask, served = getattr(all_of_them, f"by_{way}"), all_of_them.served
    replies = []
    for number, (asked, kind) in enumerate(ASKED):
        reply = ask({**asked, "id": f"{way} {number}"})
        assert reply["id"] == f"{way} {number}"
        assert asked["command"] != "replay" or Path(reply["path"]).stat().st_size > 1000
        replies.append([reply[key] for key in ("command", "done", "error", "state")])
        if kind:
            event = served.until(lambda m, kind=kind: m.get("event", {}).get("kind") == kind)
            assert event["event"]["text"] or kind in WITHOUT_TEXT
        if kind == "mark":
            served.until(lambda m: is_row(m) and m["time_s"] > 2.0)  # the first impulse was at 1 s
    assert [done for _, done, *_ in replies].count(False) == 6
    assert replies == REPLIES.setdefault("first", replies)


def test_all_of_it_ends_in_order(all_of_them):
    """The last test here: it ends what the others share."""
    process = all_of_them.served.process
    process.terminate()
    assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM
    with pytest.raises(AssertionError, match="it has ended without"):
        all_of_them.served.said("(did not end in time)")
