"""What goes over the wire: the same words on every transport (`docs/wire.md`)."""

import json
import math
from functools import cached_property
from typing import Literal

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import FAULT_NAMES
from amt_stream.meters.rows.block import MICROPHONE, in_utc, python_values

Kind = Literal["header", "row", "event", "state", "summary", "reply", "specific"]

RUNNING = ("measuring", "paused")
"""States in which there is a measurement."""

WAITING = "waiting"
"""State in which the device is not there yet, and a measurement begins once it is."""

INVALID = tuple(FAULT_NAMES[bit] for bit in (Fault.GAP, Fault.NON_FINITE, Fault.STALL, Fault.OFF))
"""Faults after which readings are not all of the sound that there was."""


MAIN = "main"
"""Stands for the name of the microphone where one alone is heard."""

SAME_TIME_S = 1e-6


class Message:
    """One message: a row is flat, every other one stands under the name of its kind."""

    def __init__(self, kind: Kind, content: JsonMap) -> None:
        self.kind, self.content = kind, content

    @cached_property
    def text(self) -> str:
        """As a line of JSON, without its end."""
        body = self.content if self.kind == "row" else {self.kind: self.content}
        return json.dumps(body, allow_nan=False, separators=(",", ":"))

    @property
    def microphone(self) -> str:
        """Of several that are heard, whose it is; "" where one alone is."""
        return str(self.content.get(MICROPHONE if self.kind == "row" else "microphone", ""))


def row_message(row: JsonMap) -> Message:
    """A row as `Rows` gives it, and whether all of its readings hold: `valid`."""
    whole = not (row["settling"] or any(word in INVALID for word in row["fault"].split()))
    return Message("row", {**row, "valid": whole})


class LeftOut:
    """How many rows were left out, and whether the next one has still to say so."""

    def __init__(self) -> None:
        self.count = 0
        self._untold = False

    def add(self) -> None:
        """One more."""
        self.count += 1
        self._untold = True

    def before(self, row: Message) -> Message:
        """A row that goes out, marked where it is the first after those."""
        told, self._untold = self._untold, False
        return _overloaded(row) if told else row


def _overloaded(message: Message) -> Message:
    words = {*message.content["fault"].split(), FAULT_NAMES[Fault.OVERLOAD]}
    fault = " ".join(word for word in FAULT_NAMES.values() if word in words)
    return Message("row", {**message.content, "fault": fault})


class Thinned:
    """Every so many seconds of the sound a row, with the marks of those before that are left out.

    every_s: 0 for all of them
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._sent_s = self._last_s = -math.inf
        self._faults: set[str] = set()
        self._valid = True

    def take(self, row: Message) -> Message | None:
        """The row that goes out, if one does."""
        told, time_s = row.content, row.content["time_s"]
        self._faults.update(told["fault"].split())
        self._valid &= told["valid"]
        goes_on = self._last_s <= time_s  # else another measurement has begun
        self._last_s = time_s
        if goes_on and self._sent_s < time_s < self._sent_s + self._every_s - SAME_TIME_S:
            return None
        self._sent_s = time_s
        fault = " ".join(word for word in FAULT_NAMES.values() if word in self._faults)
        content = {**told, "fault": fault, "valid": self._valid}
        self._faults, self._valid = set(), True
        return row if content == told else Message("row", content)

    def lose(self) -> None:
        """The row that was given has not gone out: the next one says so."""
        self._faults.add(FAULT_NAMES[Fault.OVERLOAD])


def event_message(event: Event) -> Message:
    """What happened, where in the sound, and when."""
    (utc,) = python_values("utc", in_utc(np.array([event.utc])))
    content = {"kind": event.kind, "time_s": round(event.time_s, 6), "utc": utc}
    content |= {"sample": event.sample, "samples": event.samples, "text": event.text}
    return Message(
        "event", content | ({"microphone": event.microphone} if event.microphone else {})
    )
