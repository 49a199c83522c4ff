"""Messages, the same on every transport (`docs/wire.md`)."""

import json
import math
from functools import cached_property
from typing import Literal

import numpy as np

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.json_types import JsonMap
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import FAULT_NAMES
from amt_stream.meters.rows.block import MICROPHONE, in_utc, python_values

Kind = Literal["header", "row", "event", "state", "summary", "reply", "specific", "screen"]

RUNNING = ("measuring", "paused")
"""States with a running measurement."""

WAITING = "waiting"
"""State while the device is missing; the measurement begins when it appears."""

INVALID = tuple(FAULT_NAMES[bit] for bit in (Fault.GAP, Fault.NON_FINITE, Fault.STALL, Fault.OFF))
"""Faults after which readings do not cover all of the sound."""


MAIN = "main"
"""The name of the microphone if there is only one."""


class Message:
    """One message: a row is flat; others are nested under their kind."""

    def __init__(self, kind: Kind, content: JsonMap) -> None:
        self.kind, self.content = kind, content

    @cached_property
    def text(self) -> str:
        """The message as JSON, without a newline."""
        body = self.content if self.kind == "row" else {self.kind: self.content}
        return json.dumps(body, allow_nan=False, separators=(",", ":"))

    def with_fields(self, fields: JsonMap) -> "Message":
        """A copy with further fields, or this one without any."""
        return Message(self.kind, {**self.content, **fields}) if fields else self

    @property
    def microphone(self) -> str:
        """The microphone of the message; "" if there is only one."""
        return str(self.content.get(MICROPHONE if self.kind == "row" else "microphone", ""))


def row_message(row: JsonMap) -> Message:
    """Make the message of a row, with `valid`: whether all readings are reliable."""
    whole = not (row["settling"] or any(word in INVALID for word in row["fault"].split()))
    return Message("row", {**row, "valid": whole})


class LeftOut:
    """Counts dropped rows and marks the next row that is sent."""

    def __init__(self) -> None:
        self.count = 0
        self._unmarked = False

    def add(self) -> None:
        """Count one more."""
        self.count += 1
        self._unmarked = True

    def before(self, row: Message) -> Message:
        """The row to send, marked if rows before it were dropped."""
        mark, self._unmarked = self._unmarked, False
        return _overloaded(row) if mark else row


def _overloaded(message: Message) -> Message:
    words = {*message.content["fault"].split(), FAULT_NAMES[Fault.OVERLOAD]}
    fault = " ".join(word for word in FAULT_NAMES.values() if word in words)
    return Message("row", {**message.content, "fault": fault})


class Thinned:
    """Thins out rows; each one sent carries the marks of those left out before it.

    every_s: seconds of sound between rows, 0 for all rows
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._sent_s = self._last_s = -math.inf
        self._faults: set[str] = set()
        self._valid = True

    def take(self, row: Message) -> Message | None:
        """The row to send, or None."""
        content, time_s = row.content, row.content["time_s"]
        self._faults.update(content["fault"].split())
        self._valid &= content["valid"]
        same_run = self._last_s <= time_s  # else another measurement has begun
        self._last_s = time_s
        if same_run and self._sent_s < time_s < self._sent_s + self._every_s - SAME_TIME_S:
            return None
        self._sent_s = time_s
        fault = " ".join(word for word in FAULT_NAMES.values() if word in self._faults)
        sent = {**content, "fault": fault, "valid": self._valid}
        self._faults, self._valid = set(), True
        return row if sent == content else Message("row", sent)

    def lose(self) -> None:
        """Report that the last row was not sent; the next one is marked."""
        self._faults.add(FAULT_NAMES[Fault.OVERLOAD])


def event_message(event: Event) -> Message:
    (utc,) = python_values("utc", in_utc(np.array([event.utc])))
    content = {"kind": event.kind, "time_s": round(event.time_s, 6), "utc": utc}
    content |= {"sample": event.sample, "samples": event.samples, "text": event.text}
    content |= {"microphone": event.microphone} if event.microphone else {}
    return Message("event", content | ({"cause": event.cause} if event.cause else {}))
