"""The page, its WebSocket, /health and /metrics, in a separate process."""

import asyncio
import contextlib
import importlib.util
import itertools
import json
from collections.abc import Sequence
from typing import Protocol

from amt_stream.core.processes import module_command
from amt_stream.core.words import counted
from amt_stream.service.message import LeftOut, Message
from amt_stream.service.page.entrance import Entrance, PageError
from amt_stream.service.page.pipe import LONGEST, parts, pipe_line
from amt_stream.service.screen import Screens
from amt_stream.service.transports.stdio import asked_in
from amt_stream.service.transports.transport import Unhindered, Wire, host_and_port, missing

START_S = 30.0
AGAIN_S = 1.0
LAST_S = 2.0
WANTED_S = 0.1
BEHIND_BYTES = 1 << 24
"""Bytes that may wait for the page's process; then rows are dropped, and the next one is marked."""


class HasExposition(Protocol):
    """The interface of the content of /metrics."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Body and content type."""


class Web(Unhindered):
    """Runs the process of the page, sends it all messages, and does the commands of its clients.

    The process is restarted if it ends. Raises PageError if the address can be reached from other
    computers and there is no token.

    host, port: address to listen at; port 0 is any free one
    token: access token of clients, None if they need none
    viewers: token of clients that may not send commands, None for no such clients
    origins: other origins whose pages may connect
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
        self._wanted: frozenset[str] = frozenset()
        self._left_out = LeftOut()
        self._screens = Screens()

    @property
    def missed(self) -> int:  # type: ignore[override]
        return self._left_out.count

    @property
    def address(self) -> str:
        return f"http://{host_and_port(self._host, self.port)}/"

    async def open(self, wire: Wire) -> None:
        if importlib.util.find_spec("websockets") is None:
            raise missing("the page needs websockets")
        self._wire = wire
        await self._start()
        self._beside = [
            asyncio.create_task(self._follow(), name="page"),
            asyncio.create_task(self._tell_wanted(wire), name="specific loudness and screens"),
        ]

    async def _start(self) -> None:
        """Start the process. Raises PageError if it cannot listen."""
        pipe = asyncio.subprocess.PIPE
        command = module_command("amt_stream.service.page.server")
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=LONGEST
        )
        # Secrets go by standard input, as other users can read arguments.
        settings = {"host": self._host, "port": self.port, **self._secret}
        self._write(json.dumps(settings).encode() + b"\n")
        assert self._process.stdout is not None
        first = await asyncio.wait_for(self._process.stdout.readline(), START_S)
        kind, _, text = parts(first) if first else ("error", "", '"its process has ended"')
        if kind == "error":
            raise PageError(
                f"port {self.port} of {self._host} is not available ({json.loads(text)}): give "
                "another one with --web PORT"
            )
        self.port = int(text)

    async def _follow(self) -> None:
        """Do the commands of clients; restart the process if it has ended."""
        doing = set()
        while True:
            assert self._process is not None
            assert self._process.stdout is not None
            while line := await self._process.stdout.readline():
                task = asyncio.create_task(self._take(*parts(line)))
                doing.add(task)
                task.add_done_callback(doing.discard)
            self._wanted = frozenset()
            self.note = "the process of the page has ended and is being restarted"
            await asyncio.sleep(AGAIN_S)
            with contextlib.suppress(PageError, TimeoutError, OSError):
                await self._start()
                assert self._wire is not None
                for message in self._wire.newest:
                    self._write_message(message)
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
            self._wanted = frozenset(json.loads(text))
        elif kind == "dropped":
            self.note = f"{counted(int(text), 'client')} disconnected: too slow"

    def send(self, message: Message) -> None:
        self._screens.take(message)
        self._write_message(message)

    def _write_message(self, message: Message) -> None:
        if message.kind == "row":
            if not self._has_room:
                self._left_out.add()
                return
            message = self._left_out.before(message)
        self._write(pipe_line(message.kind, message.microphone, message.text))

    @property
    def _has_room(self) -> bool:
        """Whether the page's process is running and not too slow."""
        pipe = self._pipe
        return pipe is not None and pipe.transport.get_write_buffer_size() <= BEHIND_BYTES

    @property
    def _pipe(self) -> asyncio.StreamWriter | None:
        pipe = None if self._process is None else self._process.stdin
        return None if pipe is None or pipe.is_closing() else pipe

    def _write(self, line: bytes) -> None:
        if (pipe := self._pipe) is not None:
            pipe.write(line)

    async def _tell_wanted(self, wire: Wire) -> None:
        """Send specific loudness, and what pages show, while clients subscribe to them."""
        for turn in itertools.count():
            await asyncio.sleep(WANTED_S)
            wanted = wire.specific() if "specific" in self._wanted else []
            if "screen" in self._wanted and turn % 2 and self._has_room:
                wanted += self._screens.messages()
            for message in wanted:
                self._write_message(message)

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
