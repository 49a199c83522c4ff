"""Readers of values of options, and texts of several options."""

import argparse
import re
from typing import Any

from amt_stream.core.values import ONE_OR_TWO, NamedChannels


class EachMicrophone(argparse.Action):
    """Collect channels; several microphones, or a named one, are measured separately."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        typed: tuple[NamedChannels, ...] = (*getattr(namespace, "typed", ()), values)
        namespace.typed = typed
        namespace.channels = tuple(c for _, channels in typed for c in channels)
        own_name = values[0] != "+".join(map(str, values[1]))
        namespace.microphones = typed if len(typed) > 1 or own_name else ()
        if namespace.microphones and max(len(channels) for _, channels in typed) > 2:
            raise argparse.ArgumentError(self, f"of each microphone, {ONE_OR_TWO}")


def address(text: str) -> tuple[str, int]:
    """Read HOST:PORT, or [HOST]:PORT if the address has colons."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or (":" in bare) != (host != bare) or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT, or [::1]:PORT")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number from 1 to 65535")
    return bare, int(port)


Broker = tuple[str, int, bool]
"""Host, port, and whether the connection is encrypted."""


def broker(text: str) -> Broker:
    """Read [mqtt://|mqtts://]HOST[:PORT]."""
    scheme, _, place = text.rpartition("://")
    ports = {"": 1883, "mqtt": 1883, "mqtts": 8883}
    if scheme not in ports or "@" in place:
        raise argparse.ArgumentTypeError(
            "give HOST, HOST:PORT or mqtts://HOST:PORT; --mqtt-login names a file with user and "
            "password"
        )
    whole = place.removesuffix("/")
    bare = whole.endswith("]") or ":" not in whole
    host, port = address(f"{whole}:{ports[scheme]}" if bare else whole)
    return host, port, scheme == "mqtts"


def topic(text: str) -> str:
    """Read an MQTT topic, without wildcards."""
    if not text.isprintable() or set("+#") & set(text) or not all(text.split("/")):
        raise argparse.ArgumentTypeError(f"{text!r}: give words with / between, without + and #")
    return text


def origin(text: str) -> str:
    """Read the origin of a page, as browsers send it in the header Origin."""
    if not re.fullmatch(r"https?://[^/?#@\s]+|null", text.removesuffix("/")):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give scheme and host of the page, such as https://example.org, or null for "
            "a file"
        )
    return text.removesuffix("/").lower()


MOMENTS = (
    "seconds or 1h30m since the start, or a clock time, 22:00 or 2026-11-20T22:00, with or without "
    "an offset such as +01:00"
)


LAYOUT_OF_EACH = (
    "what the channels of each file are for, if it does not say: a name, such as 5.1, or the "
    "position of each in order, such as 'L C R Ls Rs LFE'"
)


def hours(text: str) -> Any:
    from amt_stream.sessions.report.day_levels import hours_named

    return hours_named(text)
