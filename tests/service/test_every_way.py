"""One measurement over all transports at once: the same rows, and commands that do the same."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client
from websockets.sync.client import connect

from amt_stream.service import COMMANDS
from tests.service.served import ROOT, Served, is_row
from tests.service.test_mqtt import RealBroker
from tests.service.test_osc import built, free_port, told

PATIENCE_S = 30
TOPIC = "amt/here"


class Listening:
    """A socket that keeps each datagram it got."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_S)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def next(self):
        return self._socket.recv(1 << 16)

    def ask(self, port, packet):
        self._socket.sendto(packet, ("127.0.0.1", port))
        return self._socket.recv(1 << 16)

    def close(self):
        self._socket.close()


class Everywhere:
    """A station with every transport, and a peer at the other end of each."""

    def __init__(self, folder):
        self.broker = RealBroker(folder, "allow_anonymous true")
        self.udp, self.osc, self.asking = Listening(), Listening(), Listening()
        self.osc_in = free_port()
        ways = ["--web", "0", "--udp", self.udp.address, "--osc", self.osc.address]
        ways += ["--osc-in", str(self.osc_in), "--mqtt", f"127.0.0.1:{self.broker.port}"]
        ways += ["--mqtt-topic", TOPIC, "--mqtt-every", "0", "--mqtt-commands"]
        self.mqtt = queue.Queue()
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda *given: self.mqtt.put(given[-1])
        self._client.connect("127.0.0.1", self.broker.port)
        self._client.subscribe(f"{TOPIC}/#")
        self._client.loop_start()
        sound = ["--model", "spl", "--source", "am-tone", "--columns", "laf_db,laeq_db,lafmax_db"]
        self.stdio = Served(*sound, *ways, "--event-folder", str(folder / "sounds"))
        self._open = contextlib.ExitStack()
        address = self.stdio.address.replace("http", "ws") + "ws"
        self.web = self._open.enter_context(connect(address, proxy=None, close_timeout=0.5))
        self.stdio.until(is_row)

    def close(self):
        self._open.close()
        self.stdio.__exit__()
        self._client.loop_stop()
        self._client.disconnect()
        self.broker.kill()
        for one in (self.udp, self.osc, self.asking):
            one.close()

    def ask(self, way, command, **arguments):
        """The reply to a command that is sent this way."""
        asked = {"command": command, **arguments}
        if way == "stdio":
            return self.stdio.ask(command, **arguments)
        if way == "web":
            self.web.send(json.dumps(asked))
            while "reply" not in (message := json.loads(self.web.recv(timeout=PATIENCE_S))):
                pass
            return message["reply"]
        if way == "osc":
            packet = built(f"/amt/command/{command}", json.dumps(arguments))
            return json.loads(told(self.asking.ask(self.osc_in, packet))["/amt/reply"][3])
        self._client.publish(f"{TOPIC}/command", json.dumps(asked))
        return json.loads(self.next_of_mqtt("reply"))["reply"]

    def next_of_mqtt(self, kind):
        while not (message := self.mqtt.get(timeout=PATIENCE_S)).topic.endswith(f"/{kind}"):
            pass
        return message.payload


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    one = Everywhere(tmp_path_factory.mktemp("everywhere"))
    yield one
    one.close()


def test_rows_are_the_same_on_all_of_them(everywhere):
    own = {}
    for _ in range(15):
        row = everywhere.stdio.until(is_row)
        own[row["sample"]] = row
    samples = sorted(own)[6:12]

    def rows_of(next_message):
        """Those of these samples, as they come."""
        found = {}
        while samples[-1] not in found:
            message = next_message()
            found |= {message["sample"]: message} if is_row(message) else {}
        return [found[sample] for sample in samples]

    wanted = [own[sample] for sample in samples]
    assert rows_of(lambda: json.loads(everywhere.web.recv(timeout=PATIENCE_S))) == wanted
    assert rows_of(lambda: json.loads(everywhere.udp.next())) == wanted
    assert rows_of(lambda: json.loads(everywhere.next_of_mqtt("row"))) == wanted
    of_osc = {}
    while str(samples[-1]) not in of_osc:
        packet = told(everywhere.osc.next())
        if "/amt/main/time" in packet:
            of_osc[packet["/amt/main/time"][1]] = packet
    for sample, row in zip(samples, wanted, strict=True):
        packet = of_osc[str(sample)]
        for name in ("laf_db", "laeq_db", "lafmax_db"):
            assert packet[f"/amt/main/{name}"][0] == pytest.approx(row[name], rel=1e-7)
        marks = [int(row[name]) for name in ("valid", "settling", "calibrated")]
        assert packet["/amt/main/marks"] == [*marks, row["fault"]]


# Of each command: its arguments, the state after it, the event that it makes.
TOLD = {
    "status": ({}, "measuring", None),
    "mark": ({"text": "door"}, "measuring", "mark"),
    "pause": ({}, "paused", "paused"),
    "resume": ({}, "measuring", "continued"),
    "reset": ({"what": "models"}, "measuring", "reset"),
    "calibrate": ({"full_scale_db": 120.5}, "measuring", "calibrated"),
    "swap": ({"settings": {}}, "measuring", "swapped"),
    "replay": ({"seconds": 0.5}, "measuring", "sound_kept"),
    "stop": ({}, "stopped", None),
    "start": ({}, "measuring", None),
}


@pytest.mark.parametrize("way", ["stdio", "web", "osc", "mqtt"])
def test_each_command_does_the_same_wherever_it_comes_from(everywhere, way):
    assert set(TOLD) == set(COMMANDS)
    for command, (arguments, state, event) in TOLD.items():
        everywhere.stdio.past.clear()
        reply = everywhere.ask(way, command, **arguments)
        assert (reply["command"], reply["done"], reply["error"]) == (command, True, "")
        assert reply["state"] == state
        if event is not None:
            is_event = lambda m: m.get("event", {}).get("kind") == event  # noqa: E731, B023
            if not any(map(is_event, everywhere.stdio.past)):
                everywhere.stdio.until(is_event)
    wrong = everywhere.ask(way, "mark")
    assert (wrong["done"], wrong["error"]) == (False, "mark needs text: the words")


def test_another_language_talks_over_standard_input_and_output():
    program = Path(__file__).parents[2] / "docs" / "embedding" / "meter.mjs"
    done = subprocess.run(
        ["node", str(program), "--source", "demo", "--model", "moore2016"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
        env=environment(),
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert sum("phon" in line for line in lines) >= 10
    assert any("marked" in line for line in lines)


def environment():
    """One in which `amt-stream` is the command of this environment."""
    here = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
