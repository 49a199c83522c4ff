"""A page, a WebSocket, /health and /metrics on one port."""

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from amt_stream.service.entrance import Entrance
from amt_stream.service.message import Message
from amt_stream.service.stdio import asked_in
from amt_stream.service.transport import ServiceError, Unhindered, Wire

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

PORT = 8765
PAGES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/amt-meter.js": ("amt-meter.js", "text/javascript"),
    "/style.css": ("style.css", "text/css"),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
KINDS = ("header", "row", "event", "state", "summary", "specific")
USUAL = frozenset(KINDS[:-1])

MOST_CLIENTS = 250
LONGEST_MESSAGE = 16_384
BEHIND_BYTES = 1 << 19
"""So much may wait for one client; it is of a minute or so."""

COMMANDS_A_SECOND = 20.0
BURST = 40.0
TOKEN_S = 5.0
SPECIFIC_S = 0.1
CLOSE_S = 1.0
REFUSED = 1008
"""Code with which a connection is closed that breaks a rule."""


class Metrics(Protocol):
    """What answers at /metrics."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Body and content type."""


class Web(Unhindered):
    """Serves whoever connects; a client that falls behind is dropped, and can come again.

    host, port: where it listens; port 0 is one that is free
    entrance: who may come in
    metrics: what answers at /metrics, if anything
    """

    name = "web"

    def __init__(
        self,
        host: str,
        port: int,
        entrance: Entrance,
        metrics: Metrics | None = None,
    ) -> None:
        self._host, self.port, self._entrance = host, port, entrance
        self._metrics = metrics
        self.dropped = 0
        self._clients: dict[ServerConnection, frozenset[str]] = {}
        self._server: Server | None = None
        self._wire: Wire | None = None
        self._telling: asyncio.Task[None] | None = None

    async def open(self, wire: Wire) -> None:
        try:
            from websockets.asyncio.server import serve
        except ModuleNotFoundError as error:
            raise ServiceError(
                'the page needs websockets, which is not installed: pip install "amt_stream[serve]"'
            ) from error
        self._wire = wire
        try:
            self._server = await serve(
                self._talk,
                self._host,
                self.port,
                process_request=self._answer_request,
                compression=None,
                max_size=LONGEST_MESSAGE,
                max_queue=8,
                close_timeout=CLOSE_S,
                server_header=None,
            )
        except OSError as error:
            raise ServiceError(
                f"port {self.port} of {self._host} cannot be listened to ({error.strerror}): give "
                "another one, --web PORT"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        self._telling = asyncio.create_task(self._tell_specific(wire), name="specific loudness")

    @property
    def address(self) -> str:
        """Of the page."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/"

    def send(self, message: Message) -> None:
        self._broadcast(message.kind, message.text)

    def _broadcast(self, kind: str, text: str) -> None:
        from websockets.asyncio.server import broadcast

        wanted = []
        for client, kinds in [*self._clients.items()]:
            # `broadcast` would let it wait without end.
            if client.transport.get_write_buffer_size() > BEHIND_BYTES:
                self.dropped += 1
                self.note = f"{self.dropped} clients fell behind and were dropped"
                del self._clients[client]
                client.transport.abort()
            elif kind in kinds:
                wanted.append(client)
        broadcast(wanted, text)

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), CLOSE_S)

    async def _tell_specific(self, wire: Wire) -> None:
        """What is too much to go to everybody, to those who have asked for it."""
        while True:
            await asyncio.sleep(SPECIFIC_S)
            if any("specific" in kinds for kinds in self._clients.values()):
                for message in wire.specific():
                    self.send(message)

    def _answer_request(
        self, connection: "ServerConnection", request: "Request"
    ) -> "Response | None":
        """The response to a request that is none for a WebSocket, or not let in."""
        origin = request.headers.get("Origin")
        if not self._entrance.admits(request.headers.get("Host"), origin):
            return _response(HTTPStatus.FORBIDDEN, "this page may not ask here")
        response = self._found(request.path.partition("?")[0], request.headers)
        if response is not None and origin is not None:
            # A browser asks whether that page may have it.
            response.headers["Access-Control-Allow-Origin"] = origin
        return response

    def _found(self, path: str, headers: "Headers") -> "Response | None":
        if path in PAGES:
            name, kind = PAGES[path]
            body = resources.files(__package__).joinpath("page", name).read_bytes()
            return _response(HTTPStatus.OK, body, f"{kind}; charset=utf-8")
        if path == "/ws":
            if len(self._clients) >= MOST_CLIENTS:
                return _response(HTTPStatus.SERVICE_UNAVAILABLE, "too many are connected")
            return None
        if path not in ("/health", "/metrics"):
            return _response(HTTPStatus.NOT_FOUND, "there is /, /ws, /health and /metrics")
        if not self._entrance.knows_header(headers.get("Authorization")):
            refused = _response(HTTPStatus.UNAUTHORIZED, "a token is needed")
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        return self._health() if path == "/health" else self._exposition(headers.get("Accept", ""))

    def _health(self) -> "Response":
        assert self._wire is not None
        why = self._wire.complaints()
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        state = self._wire.state.content
        body = json.dumps({"well": not why, "why": why, **state}).encode()
        return _response(status, body, "application/json")

    def _exposition(self, accept: str) -> "Response":
        if self._metrics is None:
            return _response(HTTPStatus.NOT_FOUND, "there are no metrics")
        return _response(HTTPStatus.OK, *self._metrics.exposition(accept))

    async def _talk(self, connection: "ServerConnection") -> None:
        """One client, until it leaves."""
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            if await self._let_in(connection):
                try:
                    await self._serve(connection)
                finally:
                    self._clients.pop(connection, None)

    async def _let_in(self, connection: "ServerConnection") -> bool:
        """Whether it has a token, in a header or, as of a page, in its first message."""
        request = connection.request
        header = None if request is None else request.headers.get("Authorization")
        if self._entrance.knows_header(header):
            return True
        with contextlib.suppress(TimeoutError):
            first = asked_in(await asyncio.wait_for(connection.recv(), TOKEN_S))
            if isinstance(first, Mapping) and self._entrance.knows(first.get("token")):
                return True
        await connection.close(REFUSED, "a token is needed")
        return False

    async def _serve(self, connection: "ServerConnection") -> None:
        from websockets.asyncio.server import broadcast

        wire = self._wire
        assert wire is not None
        # At once, so that nothing comes between.
        self._clients[connection] = USUAL
        for message in wire.newest:
            broadcast([connection], message.text)
        allowance, before = BURST, time.monotonic()
        async for text in connection:
            now = time.monotonic()
            allowance = min(BURST, allowance + (now - before) * COMMANDS_A_SECOND) - 1
            before = now
            if allowance < 0:
                await connection.close(REFUSED, "too many messages")
                return
            asked = asked_in(text)
            if isinstance(asked, Mapping) and "subscribe" in asked:
                self._subscribe(connection, asked["subscribe"])
            elif not (isinstance(asked, Mapping) and "token" in asked):
                await connection.send((await wire.answer(asked)).text)

    def _subscribe(self, connection: "ServerConnection", kinds: Any) -> None:
        """Send it these kinds of messages from here on; what is none of them is passed over."""
        if isinstance(kinds, list) and connection in self._clients:
            self._clients[connection] = frozenset(k for k in kinds if k in KINDS)


def _response(status: HTTPStatus, body: bytes | str, kind: str = "text/plain") -> "Response":
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    content = f"{body}\n".encode() if isinstance(body, str) else body
    headers = Headers({**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))})
    headers["Connection"] = "close"
    return Response(status.value, status.phrase, headers, content)
