"""One request at a time to an HTTP server, with a deadline for the whole of it."""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from amt_stream import __version__
from amt_stream.core.safe_text import brief, plain
from amt_stream.service.transports import transport
from amt_stream.service.transports.http_endpoint import Endpoint

if TYPE_CHECKING:
    from httpx import Response

PATIENCE_S = 10.0
"""Longest time from the first attempt to connect to the end of the answer's headers."""

CONNECT_S = 4.0
"""Longest time to connect, and to agree on encryption.

Both together must be shorter than the deadline: httpcore 1.0 leaves a connection open whose
handshake is cancelled from outside.
"""

WORDS, WORDS_S = 300, 1.0
"""Bytes of the body of a refusal that are read, and the longest time for that."""


@dataclass(frozen=True)
class Answer:
    """What a server answered: its status, or 0 for none.

    words: why the request is not done, as the end of a sentence about the server
    wait_s: the time that the server asks for before the next attempt
    """

    status: int = 0
    words: str = ""
    wait_s: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether the server has accepted the request."""
        return 200 <= self.status < 300


class HttpRequest:
    """Posts bodies to an endpoint from one thread, which enters and leaves it.

    The library limits each read, not their sum: a server that sends a byte now and then would hold
    a request for ever. So each runs under one deadline, in an event loop. Redirects are not
    followed: that would turn a POST into a GET, and pass on the token. Nothing is decompressed,
    and no cookie is stored.

    Raises ServiceError if the library is missing, or the proxy of the environment is unusable.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise transport.missing(f"messages to {endpoint} need httpx") from error
        self._endpoint = endpoint
        self._connecting = httpx.ConnectTimeout
        self._failures = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)
        headers = {"User-Agent": f"amt_stream/{__version__}", "Accept-Encoding": "identity"}
        try:
            self._client = httpx.AsyncClient(
                headers={**headers, **endpoint.headers},
                verify=ssl.create_default_context(),
                timeout=httpx.Timeout(None, connect=CONNECT_S),
                limits=httpx.Limits(max_keepalive_connections=0),
            )
        except (ImportError, ValueError) as error:
            raise transport.ServiceError(
                f"the proxy that the environment names cannot be used: {plain(error)}; correct or "
                "unset ALL_PROXY, HTTP_PROXY and HTTPS_PROXY"
            ) from error
        self._runner = asyncio.Runner()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._posting: asyncio.Task[Answer] | None = None
        self._cancelled = False

    def __enter__(self) -> Self:
        self._loop = self._runner.get_loop()
        self._loop.set_default_executor(transport.Abandoned())
        return self

    def __exit__(self, *raised: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def post(self, body: bytes) -> Answer:
        """Post a body; `status` is 0 if no answer came, in time or at all."""
        return self._runner.run(self._post(body))

    def cancel(self) -> None:
        """End the request that is under way, and all later ones at once [any-thread]."""
        self._cancelled = True
        if self._loop is not None:
            with suppress(RuntimeError):  # its thread has left it
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._posting is not None:
            self._posting.cancel()

    async def _post(self, body: bytes) -> Answer:
        self._posting = asyncio.ensure_future(self._answer(body))
        if self._cancelled:
            self._posting.cancel()
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._posting
        except TimeoutError:
            return Answer(words=f"has not answered within {PATIENCE_S:g} s")
        except self._connecting:
            return Answer(words=f"has not answered within {CONNECT_S:g} s")
        except asyncio.CancelledError:
            return Answer(words="was not waited for at the end")
        except self._failures as error:
            reached = f"cannot be reached: {plain(error) or type(error).__name__}"
            return Answer(words=plain(transport.refused_certificate(error)) or reached)
        finally:
            self._client.cookies.clear()

    async def _answer(self, body: bytes) -> Answer:
        async with self._client.stream("POST", self._endpoint.url, content=body) as response:
            if response.is_success:
                return Answer(response.status_code)
            words = f"answers {response.status_code} {response.reason_phrase}"
            if response.is_redirect:
                where = brief(response.headers.get("Location", ""))
                more = f"give the address that it points to, {where}"
            else:
                more = await _first_words(response)
            asked = response.headers.get("Retry-After", "")
            wait_s = float(asked) if asked.isdecimal() else 0.0
            return Answer(response.status_code, f"{words}: {more}" if more else words, wait_s)


async def _first_words(response: "Response") -> str:
    """The beginning of a body, as far as it comes soon; "" for one that is packed."""
    import httpx

    if "Content-Encoding" in response.headers:
        return ""
    data = b""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(WORDS_S):
            async for piece in response.aiter_raw():
                data += piece
                if len(data) >= WORDS:
                    break
    return plain(data[:WORDS].decode(errors="replace")).strip()[:WORDS]
