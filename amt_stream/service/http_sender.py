"""Requests to an HTTP server in a separate thread: a bounded queue, retries, one note."""

import asyncio
import logging
import os
import threading
import urllib.error
import urllib.request
from collections import deque
from http.client import HTTPException
from typing import Any

from amt_stream import __version__
from amt_stream.core.safe_text import plain, sentence
from amt_stream.service.http_endpoint import Endpoint
from amt_stream.service.transport import ServiceError, Wire, secret_in

log = logging.getLogger("amt_stream")

BATCH_S = 1.0
"""How long parts of one request are collected."""

MOST_BODY = 500_000
MOST_WAITING = 1 << 24
"""Bytes of a request with several parts, and bytes that may wait."""

PATIENCE_S = 10.0
FIRST_S, LONGEST_S = 1.0, 60.0
"""Shortest and longest time between two attempts; it doubles each time."""

LAST_S, AWAY_S = 0.5, 0.05
"""Longest wait at the end, and that for a server that did not answer before.

A command that is asked to end has less than two seconds for all that it must close.
"""

ANSWER = 300
AT_FAULT = (400, 413, 422)
"""Answers that another attempt would not change: the content is at fault."""


def token_from(path: str | None, variable: str) -> str | None:
    """The token in a file that others cannot read, or in an environment variable; else None.

    Raises ServiceError.
    """
    if path is None:
        found, where = os.environ.get(variable, ""), f"the variable {variable}"
        if not found:
            return None
    else:
        found, where = secret_in(path).strip(), path
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise ServiceError(f"{where} has no token: write one line of letters and digits into it")
    return found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: that would turn a POST into a GET, and pass on the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


class HttpSender:
    """Sends parts to a server, the oldest first, until it has accepted them.

    If the server does not answer, or asks for patience (429, 503), it tries again with growing
    pauses, and parts wait up to a limit. Parts that the server refuses for good are lost.

    joins: whether one request may have several parts, one after the other
    """

    def __init__(self, endpoint: Endpoint, joins: bool) -> None:
        self.note = ""
        self.lost = 0
        """Parts that the server refused, or that were left at the end."""
        self._endpoint, self._joins = endpoint, joins
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"to {endpoint}", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def put(self, part: bytes) -> bool:
        """Queue a part; False if too much waits already. Never waits [any-thread]."""
        with self._changed:
            if self._bytes + len(part) > MOST_WAITING:
                return False
            self._waiting.append(part)
            self._bytes += len(part)
            self._changed.notify()
        return True

    @property
    def has_room(self) -> bool:
        """Whether half of the queue is free, or the server does not answer anyway."""
        return self._bytes < MOST_WAITING // 2 or bool(self.note)

    def close(self) -> None:
        """Send what waits, for at most half a second, and count the rest as lost; it may wait."""
        self._ending.set()
        with self._changed:
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(AWAY_S if self.note else LAST_S)
        with self._changed:
            left = len(self._waiting)
            self.lost += left
            self._waiting.clear()
        if left:
            log.warning("%s did not take the last %d messages", self._endpoint, left)

    def _run(self) -> None:
        while parts := self._next():
            wait_s = FIRST_S
            while (asked_s := self._try(b"".join(parts), len(parts))) is not None:
                if self._ending.wait(min(max(wait_s, asked_s), LONGEST_S)):
                    return
                wait_s = min(2 * wait_s, LONGEST_S)
            with self._changed:
                for part in parts:
                    if self._waiting:  # `close` may have given them up
                        self._waiting.popleft()
                        self._bytes -= len(part)

    def _next(self) -> list[bytes]:
        """The parts of the next request, which stay in the queue; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending.is_set())
        if self._joins:
            self._ending.wait(BATCH_S)
        found: list[bytes] = []
        size = 0
        with self._changed:
            for part in self._waiting:
                size += len(part)
                if found and (size > MOST_BODY or not self._joins):
                    break
                found.append(part)
        return found

    def _try(self, body: bytes, parts: int) -> float | None:
        """One request; None if it is done, else the seconds that the server wants to have."""
        headers = {"User-Agent": f"amt_stream/{__version__}", **self._endpoint.headers}
        request = urllib.request.Request(self._endpoint.url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=PATIENCE_S) as response:
                response.read(ANSWER)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error, parts)
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            self.note = sentence(f"{self._endpoint} cannot be reached: {why or 'timeout'}")
            return 0.0
        self.note = ""
        return None

    def _refused(self, error: urllib.error.HTTPError, parts: int) -> float | None:
        try:
            words = plain(error.read(ANSWER).decode(errors="replace")).strip()
        except (OSError, HTTPException):
            words = ""
        said = f"{self._endpoint} answers {error.code} {error.reason}"
        if 300 <= error.code < 400:
            words = f"give the address that it points to, {error.headers.get('Location', '')}"
        self.note = sentence(f"{said}: {words}" if words else said)
        if error.code in AT_FAULT:
            self.lost += parts
            return None
        asked = error.headers.get("Retry-After", "")
        return float(asked) if asked.isdecimal() else 0.0


class ByHttp:
    """Base of transports that send by one `HttpSender`."""

    _sender: HttpSender

    @property
    def note(self) -> str:
        return self._sender.note

    async def open(self, wire: Wire) -> None:
        self._sender.start()

    async def close(self) -> None:
        await asyncio.to_thread(self._sender.close)
