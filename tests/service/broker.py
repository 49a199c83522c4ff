"""A mosquitto of one's own, and paho's clients of it."""

import os
import queue
import shutil
import socket
import subprocess
import time

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client

from tests.patience import PATIENCE_S


def mosquitto():
    found = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip("mosquitto is not installed")
    return found


class RealBroker:
    """A mosquitto of one's own; what it published, as pairs of topic and text."""

    def __init__(self, folder, *lines):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        me = ["user root"] if os.geteuid() == 0 else []
        lines = [f"listener {self.port} 127.0.0.1", *me, *lines]
        self._config = folder / "mosquitto.conf"
        self._config.write_text("\n".join(lines) + "\n")
        self._clients = []
        self.start()

    def start(self):
        command = [mosquitto(), "-c", str(self._config)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("mosquitto did not start")

    def kill(self):
        self._process.kill()
        self._process.wait()

    def subscriber(self, *topics):
        client, heard, ready = Client(CallbackAPIVersion.VERSION2), queue.Queue(), queue.Queue()
        client.on_message = lambda client, data, m: heard.put((m.topic, m.payload.decode()))
        client.on_subscribe = lambda *given: ready.put(True)
        client.connect("127.0.0.1", self.port)
        client.subscribe([(topic, 1) for topic in topics])
        client.loop_start()
        ready.get(timeout=PATIENCE_S)
        self._clients.append(client)
        return client, heard

    def end(self):
        for client in self._clients:
            client.disconnect()
            client.loop_stop()
        self.kill()


def until(heard, wanted):
    """What comes until something wanted does, as pairs of topic and text."""
    found = []
    while not found or not wanted(*found[-1]):
        found.append(heard.get(timeout=PATIENCE_S))
    return found
