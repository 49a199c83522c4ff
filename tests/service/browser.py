"""A real browser without a screen, driven over its own debugging protocol."""

import atexit
import base64
import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from websockets.sync.client import connect

from tests.patience import PATIENCE_S


class Protocol:
    """Calls of the debugging protocol over a socket, in a `with` block."""

    def __init__(self, address):
        self._open = contextlib.ExitStack()
        self._socket = self._open.enter_context(connect(address, max_size=None, proxy=None))
        self._ids = itertools.count(1)

    def ask(self, method, **arguments):
        """The result of a method of the protocol."""
        own = next(self._ids)
        self._socket.send(json.dumps({"id": own, "method": method, "params": arguments}))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if answer.get("id") == own:
                assert "error" not in answer, answer
                return answer["result"]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._open.close()


class Chromium:
    """The process that all pages share; `host` is where its protocol is."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="browser", ignore_cleanup_errors=True)
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [
            "--disable-breakpad",
            "--disable-crash-reporter",
            "--no-first-run",
            "--disable-dev-shm-usage",
            # A microphone that beeps, and sound before anybody has clicked.
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            "--autoplay-policy=no-user-gesture-required",
            "--remote-debugging-port=0",
        ]
        self._process = subprocess.Popen(
            ["chromium", *options, f"--user-data-dir={self._folder.name}", "about:blank"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self._end)
        self.host = f"127.0.0.1:{self._port()}"
        about = f"http://{self.host}/json/version"
        with urllib.request.urlopen(about, timeout=PATIENCE_S) as found:
            self.address = json.load(found)["webSocketDebuggerUrl"]

    def _port(self):
        known = Path(self._folder.name) / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE_S
        while not (known.exists() and known.read_text().count("\n")):
            assert time.monotonic() < until, "the browser did not start"
            time.sleep(0.05)
        return int(known.read_text().splitlines()[0])

    def _end(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()


chromium = functools.cache(Chromium)


class Browser(Protocol):
    """One page in Chromium: `evaluate` runs JavaScript in it, `picture` is what it shows.

    It knows nothing of what other pages have stored.
    """

    def __init__(self, width=1280, height=800, dark=False):
        with Protocol(chromium().address) as browser:
            self._context = browser.ask("Target.createBrowserContext")["browserContextId"]
            made = {"url": "about:blank", "browserContextId": self._context}
            page = browser.ask("Target.createTarget", **made, width=width, height=height)
        super().__init__(f"ws://{chromium().host}/devtools/page/{page['targetId']}")
        self.resize(width, height)
        self._prefer("dark" if dark else "light")

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip

    def _prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def open(self, address):
        self.ask("Page.navigate", url=address)
        page = address.partition("#")[0]  # the page may take away what follows
        self.until(f"document.readyState === 'complete' && location.href.startsWith('{page}')")

    def evaluate(self, expression):
        """The value of JavaScript in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        """Its first value that is true."""
        until = time.monotonic() + PATIENCE_S
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < until, f"{expression} stays {value!r}"
            time.sleep(0.1)
        return value

    def picture(self):
        """What it shows, as a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def __exit__(self, *error):
        super().__exit__(*error)
        with Protocol(chromium().address) as browser:
            browser.ask("Target.disposeBrowserContext", browserContextId=self._context)
