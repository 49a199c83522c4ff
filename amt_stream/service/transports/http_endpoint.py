"""Addresses of HTTP servers, and what a request to each of them needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from amt_stream.core.safe_text import brief
from amt_stream.core.values import NotAllowed

INFLUX_TOKEN = "AMT_STREAM_INFLUX_TOKEN"
"""Environment variable of the token."""

V2, V3 = "/api/v2/write", "/api/v3/write_lp"
NEEDED = {V2: ("bucket", "org=ORG&bucket=BUCKET"), V3: ("db", "db=DATABASE")}
PRECISION = {V2: "ns", V3: "nanosecond"}
"""How each version writes that time stamps are in nanoseconds."""


@dataclass(frozen=True)
class Endpoint:
    """Where requests go. Its text has no path and no query, which may be secret."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return urlsplit(self.url).netloc


def parse_url(text: str) -> str:
    """Parse the URL of an HTTP server. Raises NotAllowed, which does not repeat its secrets."""
    try:
        parts = urlsplit(text)
        found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        found = False
    if not found or not text.isascii() or not text.isprintable() or " " in text:
        raise NotAllowed("give a URL such as https://example.org/path, without spaces")
    if "@" in parts.netloc:
        raise NotAllowed("leave user and password out of the URL: give a file with a token")
    if parts.fragment:
        raise NotAllowed("leave out the part of the URL from # on: servers never get it")
    return text


def influx_url(text: str) -> str:
    """Parse the address to write to, and ask there for time stamps in nanoseconds.

    Raises NotAllowed.
    """
    scheme, place, path, query, _ = urlsplit(parse_url(text))
    if path in ("", "/"):
        ways = " or ".join(f"{scheme}://{place}{v}?{more}" for v, (_, more) in NEEDED.items())
        raise NotAllowed(f"give the address to write to, {ways}")
    asked = dict(parse_qsl(query))
    for version, (name, more) in NEEDED.items():
        if path.endswith(version):
            if not asked.get(name):
                raise NotAllowed(f"{version} needs ?{more}")
            asked["precision"] = PRECISION[version]
    return urlunsplit((scheme, place, path, urlencode(asked), ""))


def influx_endpoint(url: str, token: str | None) -> Endpoint:
    """The endpoint of a URL, with the header that its version takes a token in."""
    word = "Token" if urlsplit(url).path.endswith(V2) else "Bearer"
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return Endpoint(url, headers | ({} if token is None else {"Authorization": f"{word} {token}"}))


POST_TOKEN = "AMT_STREAM_POST_TOKEN"
"""Environment variable of the token of receivers of events."""

NTFY = "ntfy:"
TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
KINDS = (
    *("limit", "limits", "sound_begin", "sound_end", "sound_kept"),
    *("lost", "stall", "silent", "back", "gap", "restored", "dead_channel", "clip", "offset"),
    *("gain", "uncalibrated", "calibrated"),
    *("overload", "recovered", "sink", "clock", "removed", "failed", "check failed", "checked"),
    *("mark", "paused", "continued", "readings_reset", "reset_undone", "filters_reset", "swapped"),
    *("impulse_left_out", "impulse_counted", "reload", "compute"),
)
"""All kinds of events of a station, in the order of docs/wire.md."""


@dataclass(frozen=True)
class Recipient:
    """Who gets events: a URL, and the topic if it is a server of ntfy, else ""."""

    url: str = field(repr=False)
    topic: str = field(default="", repr=False)


def parse_recipient(text: str) -> Recipient:
    """Parse URL, or ntfy:URL with the topic as the last part of its path. Raises NotAllowed."""
    if not text.startswith(NTFY):
        return Recipient(parse_url(text))
    scheme, place, path, query, _ = urlsplit(parse_url(text.removeprefix(NTFY)))
    folder, _, topic = path.rpartition("/")
    if not TOPIC.fullmatch(topic) or query:
        raise NotAllowed("give the URL of a topic of ntfy, such as ntfy:https://ntfy.sh/TOPIC")
    return Recipient(urlunsplit((scheme, place, f"{folder}/", "", "")), topic)


def parse_kinds(text: str) -> tuple[str, ...]:
    """Parse kinds of events, separated by commas. Raises NotAllowed."""
    kinds = tuple(word.strip() for word in text.split(","))
    for kind in kinds:
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise NotAllowed(f"{brief(kind)!r} is not a kind of event: give some of {known}")
    return kinds
