"""The process of the page: a WebSocket, /health and /metrics on one port.

    python -m amt_stream.service.page.server

`amt_stream.service.web` starts it; it reads messages from standard input and ends with it. It
imports neither numpy nor torch.
"""

import asyncio
import contextlib
import itertools
import json
import queue
import signal
import sys
import threading
import time
from functools import partial
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING

from amt_stream.core.json_types import JsonMap
from amt_stream.core.processes import stand_back
from amt_stream.core.safe_text import json_object
from amt_stream.meters.state_signs import signs_script
from amt_stream.service.page.entrance import Entrance, Right
from amt_stream.service.page.past_rows import PastRows
from amt_stream.service.page.pipe import parts, pipe_line

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

PAGES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/amt-meter.js": ("amt-meter.js", "text/javascript"),
    "/style.css": ("style.css", "text/css"),
}
SIGNS = "/states.js"
"""The signs of the states, which Python writes as JavaScript."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
USUAL = frozenset(("header", "row", "event", "state", "summary"))
WANTED = frozenset(("specific", "screen"))
"""Kinds for which the measuring process only works while clients subscribe to them."""

KINDS = USUAL | WANTED

MOST_CLIENTS = 250
LONGEST_MESSAGE = 16_384
BEHIND_BYTES = 1 << 19
"""Bytes that may wait for one client, about a minute of messages."""

MOST_COLUMNS = 4
"""Readings that one message asks for the history of: an hour of four takes 300 kB."""

MESSAGES_A_SECOND = 20.0
BURST = 40.0
TOKEN_S = 5.0
CLOSE_S = 1.0
ANSWER_S = 30.0
METRICS_S = 0.2
MOST_ACCEPTED = 4
"""Number of different headers Accept that are served within METRICS_S; others wait."""

ONCE = ("Host", "Origin", "Authorization")
"""Headers that must not be repeated, as it would be unclear which one counts."""

SILENT_S = 5.0
"""The state comes each second; without it for this long, the meter does not respond."""

REFUSED = 1008
"""WebSocket close code for a policy violation."""


class PageServer:
    """Serves the clients; one that is too slow is disconnected and can reconnect.

    answers: queue of lines for the measuring process
    """

    def __init__(self, entrance: Entrance, answers: "queue.SimpleQueue[bytes]") -> None:
        self._entrance, self._answers = entrance, answers
        self._clients: dict[ServerConnection, frozenset[str]] = {}
        self._dropped = 0
        self._header, self._state = "", "{}"
        self._rows: dict[str, str] = {}
        self._past: dict[str, PastRows] = {}
        self._heard_at = time.monotonic()
        self._keys = itertools.count(1)
        self._asked: dict[str, asyncio.Future[str]] = {}
        self._exposed: dict[str, asyncio.Task[tuple[bytes, str]]] = {}
        self._wanted: list[str] = []

    async def open(self, host: str, port: int) -> "Server":
        """Listen. Raises OSError."""
        from websockets.asyncio.server import serve

        return await serve(
            self._talk,
            host,
            port,
            process_request=self._answer_request,
            compression=None,
            max_size=LONGEST_MESSAGE,
            max_queue=8,
            close_timeout=CLOSE_S,
            server_header=None,
        )

    def take(self, kind: str, key: str, text: str) -> None:
        """Handle a line from the measuring process."""
        if kind in ("reply", "metrics"):
            if (future := self._asked.pop(key, None)) is not None and not future.done():
                future.set_result(text)
            return
        if kind == "header":
            self._header, self._rows, self._past = text, {}, {}
        elif kind == "row":
            self._rows[key] = text
            self._past.setdefault(key, PastRows()).take(text)
        elif kind == "state":
            self._state, self._heard_at = text, time.monotonic()
        self._broadcast(kind, text)

    def _history(self, microphone: object, names: object) -> str:
        """The answer to a page: these readings in the time before it was opened."""
        past = self._past.get(str(microphone), PastRows())
        asked = names[:MOST_COLUMNS] if isinstance(names, list) else []
        return json.dumps({"history": {"microphone": microphone, "parts": past.of(asked)}})

    def _broadcast(self, kind: str, text: str) -> None:
        """Send to all subscribers; the frame is made once, as that takes longer than sending."""
        from websockets.frames import Frame, Opcode
        from websockets.protocol import State

        frame = Frame(Opcode.TEXT, text.encode()).serialize(mask=False)
        for client, kinds in [*self._clients.items()]:
            # The queue would grow without limit.
            if client.transport.get_write_buffer_size() > BEHIND_BYTES:
                self._dropped += 1
                self._tell("dropped", "", str(self._dropped))
                del self._clients[client]
                client.transport.abort()
            elif kind in kinds and client.state is State.OPEN:
                client.transport.write(frame)

    def _tell(self, kind: str, key: object, text: str) -> None:
        self._answers.put(pipe_line(kind, key, text))

    async def _ask(self, kind: str, text: str) -> str:
        """Ask the measuring process. Raises TimeoutError if it does not answer."""
        key = str(next(self._keys))
        self._asked[key] = asyncio.get_running_loop().create_future()
        self._tell(kind, key, json.dumps(text))
        try:
            return await asyncio.wait_for(self._asked[key], ANSWER_S)
        finally:
            self._asked.pop(key, None)

    async def _answer_request(
        self, connection: "ServerConnection", request: "Request"
    ) -> "Response | None":
        """The response to a request that is refused or is not for a WebSocket."""
        for name in ONCE:
            if len(request.headers.get_all(name)) > 1:
                return _response(HTTPStatus.BAD_REQUEST, f"there is more than one header {name}")
        origin = request.headers.get("Origin")
        if not self._entrance.admits(request.headers.get("Host"), origin):
            return _response(HTTPStatus.FORBIDDEN, "pages of this origin are not allowed")
        response = await self._found(request.path.partition("?")[0], request.headers)
        if response is not None and origin is not None:
            # A browser needs permission to give the response to that page.
            response.headers["Access-Control-Allow-Origin"] = origin
        return response

    async def _found(self, path: str, headers: "Headers") -> "Response | None":
        if path in PAGES:
            name, kind = PAGES[path]
            body = resources.files(__package__).joinpath("static", name).read_bytes()
            return _response(HTTPStatus.OK, body, f"{kind}; charset=utf-8")
        if path == SIGNS:
            return _response(HTTPStatus.OK, signs_script(), "text/javascript; charset=utf-8")
        if path == "/ws":
            if len(self._clients) >= MOST_CLIENTS:
                return _response(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            return None
        if path not in ("/health", "/metrics"):
            return _response(HTTPStatus.NOT_FOUND, "there are /, /ws, /health and /metrics")
        if not self._entrance.right_of_header(headers.get("Authorization")):
            refused = _response(HTTPStatus.UNAUTHORIZED, "a token is required")
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        if path == "/health":
            return self._health()
        try:
            body, kind = await self._metrics(", ".join(headers.get_all("Accept")))
        except TimeoutError:
            return _response(HTTPStatus.SERVICE_UNAVAILABLE, "the meter does not respond")
        return _response(HTTPStatus.OK, body, kind)

    async def _metrics(self, accept: str) -> tuple[bytes, str]:
        """Body and content type, renewed at most every METRICS_S for all clients."""
        while (asked := self._exposed.get(accept)) is None:
            if len(self._exposed) < MOST_ACCEPTED:
                asked = self._exposed[accept] = asyncio.create_task(self._expose(accept))
                asked.add_done_callback(partial(self._forget_soon, accept))
                break
            await asyncio.sleep(METRICS_S)
        return await asyncio.shield(asked)

    async def _expose(self, accept: str) -> tuple[bytes, str]:
        body, kind = json.loads(await self._ask("metrics", accept))
        return body.encode(), kind

    def _forget_soon(self, accept: str, task: "asyncio.Task[tuple[bytes, str]]") -> None:
        if not task.cancelled():
            task.exception()  # else asyncio reports it as never retrieved
        asyncio.get_running_loop().call_later(METRICS_S, self._exposed.pop, accept)

    def _health(self) -> "Response":
        state = json.loads(self._state).get("state", {})
        why = state.get("why", [])
        silent_s = time.monotonic() - self._heard_at
        if silent_s > SILENT_S:
            why = [*why, f"no state from the measurement for {silent_s:.0f} s"]
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        body = json.dumps({**state, "well": not why, "why": why}).encode()
        return _response(status, body, "application/json")

    async def _talk(self, connection: "ServerConnection") -> None:
        """Serve one client until it leaves."""
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            if right := await self._let_in(connection):
                try:
                    await self._serve(connection, right)
                finally:
                    self._clients.pop(connection, None)
                    self._want()

    async def _let_in(self, connection: "ServerConnection") -> Right:
        """The permission of a client, by the token in a header or in its first message."""
        request = connection.request
        header = None if request is None else request.headers.get("Authorization")
        if right := self._entrance.right_of_header(header):
            return right
        with contextlib.suppress(TimeoutError):
            first = json_object(await asyncio.wait_for(connection.recv(), TOKEN_S))
            if right := self._entrance.right_of(first.get("token")):
                return right
        await connection.close(REFUSED, "a token is required")
        return Right.NONE

    async def _serve(self, connection: "ServerConnection", right: Right) -> None:
        from websockets.asyncio.server import broadcast

        # Without await, so that no message is missed.
        self._clients[connection] = USUAL
        for text in (self._header, self._state, *self._rows.values()):
            if text:
                broadcast([connection], text)
        allowance, before = BURST, time.monotonic()
        async for message in connection:
            now = time.monotonic()
            allowance = min(BURST, allowance + (now - before) * MESSAGES_A_SECOND) - 1
            before = now
            if allowance < 0:
                await connection.close(REFUSED, "too many messages")
                return
            asked = json_object(message)
            if "subscribe" in asked:
                self._subscribe(connection, asked["subscribe"])
            elif "history" in asked:
                await connection.send(self._history(asked.get("microphone", ""), asked["history"]))
            elif "token" not in asked:
                text = message if isinstance(message, str) else message.decode(errors="replace")
                with contextlib.suppress(TimeoutError):
                    kind = "ask" if right == Right.COMMAND else "ask to look"
                    await connection.send(await self._ask(kind, text))

    def _subscribe(self, connection: "ServerConnection", kinds: object) -> None:
        """Send a client these kinds of messages from now on; unknown kinds are ignored."""
        if isinstance(kinds, list) and connection in self._clients:
            self._clients[connection] = frozenset(one for one in KINDS if one in kinds)
            self._want()

    def _want(self) -> None:
        """Report which of WANTED any client subscribes to."""
        wanted = sorted(WANTED & frozenset().union(*self._clients.values()))
        if wanted != self._wanted:
            self._wanted = wanted
            self._tell("wants", "", json.dumps(wanted))


def _response(status: HTTPStatus, body: bytes | str, kind: str = "text/plain") -> "Response":
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    content = f"{body}\n".encode() if isinstance(body, str) else body
    headers = Headers({**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))})
    headers["Connection"] = "close"
    return Response(status.value, status.phrase, headers, content)


async def _run(settings: JsonMap, answers: "queue.SimpleQueue[bytes]") -> None:
    """Serve until standard input ends."""
    host, port = settings["host"], settings["port"]
    entrance = Entrance(host, settings["token"], settings["origins"], settings["viewers"])
    page = PageServer(entrance, answers)
    try:
        server = await page.open(host, port)
    except OSError as error:
        answers.put(pipe_line("error", "", json.dumps(error.strerror or str(error))))
        return
    answers.put(pipe_line("open", "", str(server.sockets[0].getsockname()[1])))
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(page.take, *parts(line))
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=read, daemon=True).start()
    await over.wait()
    server.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.wait_closed(), CLOSE_S)


def main() -> None:
    """[main-thread]"""
    stand_back()
    # Terminals and service managers signal all processes; this one ends with its input.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    settings = json.loads(sys.stdin.buffer.readline())
    answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def write() -> None:
        with contextlib.suppress(OSError):
            while True:
                sys.stdout.buffer.write(answers.get())
                if answers.empty():
                    sys.stdout.buffer.flush()

    threading.Thread(target=write, daemon=True).start()
    asyncio.run(_run(settings, answers))
    time.sleep(0.1 if answers.empty() else CLOSE_S)


if __name__ == "__main__":
    main()
