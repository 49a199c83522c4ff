"""Messages to an HTTP server in a separate thread: a bounded queue, retries, one note."""

import asyncio
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Sequence

from amt_stream.core.safe_text import sentence
from amt_stream.core.words import counted
from amt_stream.service.transports.http_endpoint import Endpoint
from amt_stream.service.transports.http_request import HttpRequest
from amt_stream.service.transports.transport import ServiceError, Wire, secret_in

log = logging.getLogger("amt_stream")

BATCH_S = 1.0
"""How long parts of one request are collected."""

MOST_BODY = 500_000
MOST_WAITING = 1 << 24
"""Bytes of a request with several parts, and bytes that may wait."""

FIRST_S, LONGEST_S = 1.0, 60.0
"""Shortest and longest time between two attempts; it doubles each time."""

LAST_S, AWAY_S = 0.5, 0.05
"""Longest wait at the end, and that for a server that did not answer before.

A command that is asked to end has less than two seconds for all that it must close.
"""

TOLD_S = 60.0
AT_FAULT = (400, 413, 422)
"""Answers that another attempt would not change: the content is at fault."""


def token_from(path: str | None, variable: str) -> str | None:
    """The token in a file that others cannot read, or in an environment variable; else None.

    Raises ServiceError.
    """
    if path is None:
        token, where = os.environ.get(variable, ""), f"the variable {variable}"
        if not token:
            return None
    else:
        token, where = secret_in(path).strip(), path
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ServiceError(f"{where} has no token: write one line of letters and digits into it")
    return token


class HttpSender:
    """Sends parts to a server, the oldest first, until it has accepted them.

    If the server does not answer in time, or asks for patience (429, 503), it tries again with
    growing pauses, and parts wait up to a limit. Parts that the server refuses for good are lost.

    joins: whether one request may have several parts, one after the other
    """

    def __init__(self, endpoint: Endpoint, joins: bool) -> None:
        self.lost = 0
        """Parts that did not fit the queue, were refused by the server, or were left at the end."""
        self._endpoint, self._joins = endpoint, joins
        self._trouble = ""
        self._lost_before = 0
        self._told_until = -math.inf
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._request: HttpRequest | None = None
        self._thread = threading.Thread(target=self._run, name=f"to {endpoint}", daemon=True)

    def start(self) -> None:
        """Begin to send. Raises ServiceError if the library is missing."""
        self._request = HttpRequest(self._endpoint)
        self._thread.start()

    @property
    def note(self) -> str:
        """Its fault as one sentence, or ""; a loss in an outage is reported for a minute."""
        lost = self.lost - self._lost_before
        messages = f"; messages lost: {lost}" if lost else ""
        if self._trouble:
            return f"{self._trouble}{messages}"
        if messages and time.monotonic() < self._told_until:
            return f"{self._endpoint} answers again{messages}"
        return ""

    def put(self, part: bytes) -> bool:
        """Queue a part; False if too much waits already. Never waits [any-thread]."""
        with self._changed:
            if self._bytes + len(part) > MOST_WAITING:
                self.lost += 1
                return False
            self._waiting.append(part)
            self._bytes += len(part)
            self._changed.notify()
        return True

    @property
    def has_room(self) -> bool:
        """Whether half of the queue is free, or the server does not answer anyway."""
        return self._bytes < MOST_WAITING // 2 or bool(self._trouble)

    def close(self) -> None:
        """Send what waits, for at most half a second, and count the rest as lost; it may wait."""
        self._ending.set()
        with self._changed:
            self._changed.notify()
        if self._request is not None:
            self._thread.join(AWAY_S if self._trouble else LAST_S)
            self._request.cancel()
            self._thread.join(LAST_S)
        with self._changed:
            left = len(self._waiting)
            self.lost += left
            self._waiting.clear()
        if left:
            log.warning("%s did not take the last %s", self._endpoint, counted(left, "message"))

    def _run(self) -> None:
        assert self._request is not None
        with self._request as request:
            while parts := self._next():
                wait_s = FIRST_S
                while (asked_s := self._try(request, parts)) is not None:
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
        parts: list[bytes] = []
        size = 0
        with self._changed:
            for part in self._waiting:
                size += len(part)
                if parts and (size > MOST_BODY or not self._joins):
                    break
                parts.append(part)
        return parts

    def _try(self, request: HttpRequest, parts: Sequence[bytes]) -> float | None:
        """One request; None if it is done, else the seconds that the server wants to have."""
        answer = request.post(b"".join(parts))
        if answer.is_success:
            if self._trouble:
                self._trouble, self._told_until = "", time.monotonic() + TOLD_S
            elif time.monotonic() >= self._told_until:
                self._lost_before = self.lost
            return None
        self._trouble = sentence(f"{self._endpoint} {answer.words}")
        if answer.status in AT_FAULT:
            with self._changed:
                self.lost += len(parts)
            return None
        return answer.wait_s


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
