"""Events posted to a URL: as JSON, or as notifications of ntfy."""

import json
import socket
from collections.abc import Collection

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.service.identity import Identity
from amt_stream.service.message import Message
from amt_stream.service.transports.http_endpoint import Endpoint, Recipient
from amt_stream.service.transports.http_sender import ByHttp, HttpSender

FAILED = "failed"
"""Kind under which the failure of a measurement is posted."""

ROUTINE = frozenset(("checked", "removed"))
"""Kinds that are only posted if they are asked for."""

URGENT = frozenset(("lost", "silent", "dead_channel", "uncalibrated", "check failed", FAILED))
HIGH, USUAL = 4, 3
"""Priorities of ntfy."""


class Webhook(ByHttp):
    """A transport that posts each event, in order, until the receiver has accepted it.

    name: its name among the transports
    only: the kinds of events to post; none for all but `ROUTINE`
    """

    def __init__(
        self,
        name: str,
        recipient: Recipient,
        identity: Identity,
        token: str | None = None,
        only: Collection[str] = (),
    ) -> None:
        self.name = name
        self._only = frozenset(only)
        self._topic = recipient.topic
        self._whose = identity.name or socket.gethostname()
        self._state = ""
        headers = {"Content-Type": "application/json"}
        headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
        self._sender = HttpSender(Endpoint(recipient.url, headers), joins=False)

    @property
    def missed(self) -> int:
        return self._sender.lost

    def send(self, message: Message) -> None:
        content = message.content
        if message.kind == "event":
            self._post(content)
        elif message.kind == "state":
            before, self._state = self._state, content["state"]
            if self._state == FAILED != before:
                named = {key: content[key] for key in ("station", "labels") if key in content}
                event = {"kind": FAILED, "utc": content["since_utc"], "text": content["error"]}
                self._post({**event, **named})

    async def drain(self) -> None:
        """Return immediately: events are few."""

    def _post(self, event: JsonMap) -> None:
        kind = event["kind"]
        if kind not in self._only if self._only else kind in ROUTINE:
            return
        body = self._notification(event) if self._topic else self._json(event)
        self._sender.put(json.dumps(body, allow_nan=False).encode())

    def _json(self, event: JsonMap) -> JsonDict:
        return {"text": f"{self._whose}: {_words(event)}", "event": event}

    def _notification(self, event: JsonMap) -> JsonDict:
        kind, words = event["kind"], _words(event)
        urgent = kind in URGENT or (kind == "limit" and " is red:" in words)
        return {
            "topic": self._topic,
            "title": self._whose,
            "message": words,
            "tags": [kind],
            "priority": HIGH if urgent else USUAL,
        }


def _words(event: JsonMap) -> str:
    """The event in words, with its microphone if there are several."""
    words = event["text"] or event["kind"]
    return f"{event['microphone']}: {words}" if event.get("microphone") else words
