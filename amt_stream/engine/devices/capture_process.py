"""The client side of the process that runs PortAudio for one device."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from amt_stream.core.json_types import JsonDict
from amt_stream.core.processes import NoInterpreter, interpreter, is_own_interpreter, module_command
from amt_stream.engine.devices.portaudio import HEADER
from amt_stream.engine.sources import SourceError

PROGRAM = Path(__file__).with_name("portaudio.py")
ANSWER_S = 3.0
TURN_S = 0.05
LEAVE_S = 0.6


class CaptureMessage(NamedTuple):
    """A message from the process: see `HEADER` in portaudio.py; `time_s` is when it was sent."""

    kind: bytes
    time_s: float
    age_s: float
    lost: int
    data: bytes
    dropped: int = 0


class NoAnswer(SourceError):
    """The sound system, or the process that uses it, does not answer or has ended."""


def _command(paths: str) -> list[str]:
    if is_own_interpreter():
        return module_command("amt_stream.engine.devices.portaudio", paths)
    try:
        # -I and -S skip site-packages; sys.path is passed on, so that sounddevice is found.
        return [interpreter(), "-I", "-S", str(PROGRAM), paths]
    except NoInterpreter as error:
        raise NoAnswer(
            f"recording from a microphone needs a Python process, and {error}"
        ) from error


def _never() -> bool:
    return False


class CaptureProcess:
    """PortAudio in a separate process, so that failures of the sound system stay there.

    If a sound server hangs, dies or crashes its libraries, the process is killed and replaced. Its
    output is discarded. It ends by itself when this program does, however that ends.

    settings: extra environment variables
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        paths = json.dumps([path or str(Path.cwd()) for path in sys.path])
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NO_WINDOW}
        try:
            self._process = subprocess.Popen(
                _command(paths),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **(settings or {})},
                **options,
            )
        except OSError as error:
            raise NoAnswer(f"the recording process cannot be started: {error.strerror}") from error
        self.messages: queue.SimpleQueue[CaptureMessage | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="capture", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id, by which a sound server knows it too."""
        return self._process.pid

    def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            while len(head := pipe.read(HEADER.size)) == HEADER.size:
                kind, size, time_s, age_s, lost, dropped = HEADER.unpack(head)
                data = pipe.read(size)
                if len(data) < size:
                    break
                self.messages.put(CaptureMessage(kind, time_s, age_s, lost, data, dropped))
        self.messages.put(None)

    def ask(
        self,
        do: str,
        give_up: Callable[[], bool] = _never,
        timeout: float = ANSWER_S,
        **about: object,
    ) -> JsonDict:
        """The answer to a request. Raises SourceError, and NoAnswer after the timeout."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps({"do": do, **about}).encode() + b"\n")
            self._process.stdin.flush()
        end = time.monotonic() + timeout
        while time.monotonic() < end and not give_up():
            try:
                message = self.messages.get(timeout=TURN_S)
            except queue.Empty:
                continue
            if message is None:
                raise NoAnswer("the sound system is not available: its library failed")
            if message.kind == b"R":
                answer: dict[str, object] = json.loads(message.data)
                if "error" in answer:
                    raise SourceError(answer["error"])
                return answer
        raise NoAnswer(
            f"the sound system has not answered for {timeout:g} s: its server may be stopped"
        )

    def close(self, kill: bool = False) -> None:
        """End it, within two seconds in any case; `kill` if it is known to hang."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            if kill:
                process.kill()
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LEAVE_S)
        self._reader.join(LEAVE_S)
        if not self._reader.is_alive():
            process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *raised: object) -> None:
        self.close(kill=kind is not None)
