"""The page, its WebSocket, /health and /metrics: in a process of their own."""

import asyncio
import contextlib
import importlib.util
import json
from collections.abc import Sequence
from typing import Protocol

from amt_stream.core.processes import module_command
from amt_stream.service.message import LeftOut, Message
from amt_stream.service.page.entrance import Entrance, PageError
from amt_stream.service.page.pipe import LONGEST, parts, pipe_line
from amt_stream.service.stdio import asked_in
from amt_stream.service.transport import Unhindered, Wire, host_and_port, missing

START_S = 30.0
AGAIN_S = 1.0
LAST_S = 2.0
SPECIFIC_S = 0.1
BEHIND_BYTES = 1 << 24
"""So much may wait for the page's process; further rows are left out, and the next one says so."""


class HasExposition(Protocol):
    """What answers at /metrics."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Body and content type."""


class Web(Unhindered):
    """Starts the process of the page, hands all messages to it, and does what its clients ask for.

    It is started again should it end. Raises PageError where the address is not this computer's
    alone, and no token is asked for.

    host, port: where it listens; port 0 is one that is free
    token: what whoever connects has to know, None for nothing
    viewers: what those know instead who may look and not command, None for nobody
    origins: of other pages that may connect
    """

    name = "web"

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None = None,
        origins: Sequence[str] = (),
        metrics: HasExposition | None = None,
        viewers: str | None = None,
    ) -> None:
        Entrance(host, token, viewers=viewers)
        self._host, self.port, self._metrics = host, port, metrics
        self._secret = {"token": token, "viewers": viewers, "origins": tuple(origins)}
        self._wire: Wire | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._beside: list[asyncio.Task[None]] = []
        self._wanted = False
        self._left_out = LeftOut()

    @property
    def missed(self) -> int:  # type: ignore[override]
        return self._left_out.count

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://{host_and_port(self._host, self.port)}/"

    async def open(self, wire: Wire) -> None:
        if importlib.util.find_spec("websockets") is None:
            raise missing("the page needs websockets")
        self._wire = wire
        await self._start()
        self._beside = [
            asyncio.create_task(self._follow(), name="page"),
            asyncio.create_task(self._tell_specific(wire), name="specific loudness"),
        ]

    async def _start(self) -> None:
        """Start the process; raises PageError where it cannot listen."""
        pipe = asyncio.subprocess.PIPE
        command = module_command("amt_stream.service.page.server")
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=LONGEST
        )
        # What is secret goes by no argument, which others could read.
        settings = {"host": self._host, "port": self.port, **self._secret}
        self._write(json.dumps(settings).encode() + b"\n")
        assert self._process.stdout is not None
        first = await asyncio.wait_for(self._process.stdout.readline(), START_S)
        kind, _, text = parts(first) if first else ("error", "", '"its process has ended"')
        if kind == "error":
            raise PageError(
                f"port {self.port} of {self._host} cannot be listened to ({json.loads(text)}): "
                "give another one, --web PORT"
            )
        self.port = int(text)

    async def _follow(self) -> None:
        """Do what clients ask for; start the process again where it has ended."""
        doing = set()
        while True:
            assert self._process is not None
            assert self._process.stdout is not None
            while given := await self._process.stdout.readline():
                task = asyncio.create_task(self._take(*parts(given)))
                doing.add(task)
                task.add_done_callback(doing.discard)
            self._wanted = False
            self.note = "the process of the page has ended, and is started again"
            await asyncio.sleep(AGAIN_S)
            with contextlib.suppress(PageError, TimeoutError, OSError):
                await self._start()
                assert self._wire is not None
                for message in self._wire.newest:
                    self.send(message)
                self.note = ""

    async def _take(self, kind: str, key: str, text: str) -> None:
        assert self._wire is not None
        if kind in ("ask", "ask to look"):
            asked = asked_in(json.loads(text))
            reply = await self._wire.answer(asked, looks_only=kind == "ask to look")
            self._write(pipe_line("reply", key, reply.text))
        elif kind == "metrics" and self._metrics is not None:
            body, content = self._metrics.exposition(json.loads(text))
            self._write(pipe_line("metrics", key, json.dumps([body.decode(), content])))
        elif kind == "wants":
            self._wanted = json.loads(text)
        elif kind == "dropped":
            self.note = f"{text} clients fell behind and were dropped"

    def send(self, message: Message) -> None:
        if message.kind == "row":
            if not self._has_room:
                self._left_out.add()
                return
            message = self._left_out.before(message)
        self._write(pipe_line(message.kind, message.microphone, message.text))

    @property
    def _has_room(self) -> bool:
        """Whether the page's process is there, and not too far behind."""
        pipe = self._pipe
        return pipe is not None and pipe.transport.get_write_buffer_size() <= BEHIND_BYTES

    @property
    def _pipe(self) -> asyncio.StreamWriter | None:
        pipe = None if self._process is None else self._process.stdin
        return None if pipe is None or pipe.is_closing() else pipe

    def _write(self, given: bytes) -> None:
        if (pipe := self._pipe) is not None:
            pipe.write(given)

    async def _tell_specific(self, wire: Wire) -> None:
        """What is too much to go to everybody, to those who have asked for it."""
        while True:
            await asyncio.sleep(SPECIFIC_S)
            if self._wanted:
                for message in wire.specific():
                    self.send(message)

    async def close(self) -> None:
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), LAST_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
