"""What the page shows now, decided here in the form of all other displays."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.words import elapsed_text
from amt_stream.engine.health import load_words
from amt_stream.meters import state_signs
from amt_stream.meters.accumulators.limit_state import STATES, UNKNOWN
from amt_stream.meters.accumulators.rating import impulse_adjustment
from amt_stream.meters.frames import IMPULSE_COUNTING, LEFT_OUT
from amt_stream.meters.limits import Limit, limit_of
from amt_stream.meters.rows import NO_READING, reading_text
from amt_stream.meters.rows.block import is_named
from amt_stream.meters.rows.captions import sign_in
from amt_stream.meters.rows.column import FULL_SCALE
from amt_stream.meters.rows.limit_words import forecast_words, state_of, state_words, value_words
from amt_stream.service.message import RUNNING, WAITING, Message
from amt_stream.views.settling_words import old_words
from amt_stream.views.view_state import LATE_S, RECENT_S

STALE_S = 3.0
"""Without a row for this long, an element of another page says "stale"."""

FOLLOWED = (*RUNNING, WAITING, "failed")
"""States of the measurement in which a row is expected."""

FAULTS_OF_ALL = ("overload", "off")
"""Faults of a computer that is too slow: only missing readings are in doubt."""


MOST_IMPULSES = 16
"""Impulses that the page lists: the newest."""

IMPULSE_S = 0.01
"""Tolerance of the time of an impulse."""


class HeardImpulses:
    """The impulses of one microphone as the page lists them."""

    def __init__(self) -> None:
        self._impulses: list[JsonDict] = []

    def take_row(self, row: JsonMap) -> None:
        """Add the impulse that a row has first."""
        began_s, prominence = row.get("impulse_s"), row.get("impulse_p")
        if began_s is None or prominence is None:
            return
        if not self._impulses or began_s > self._impulses[0]["time_s"]:
            one = {"time_s": began_s, "words": _impulse_words(row), "counts": True, "why": ""}
            self._impulses = [one, *self._impulses[: MOST_IMPULSES - 1]]

    def take_event(self, event: JsonMap) -> None:
        """Take that one is left out, or counts again."""
        for one in self._impulses if event["kind"] in IMPULSE_COUNTING else ():
            if abs(one["time_s"] - event["time_s"]) < IMPULSE_S:
                one.update(counts=event["kind"] != LEFT_OUT, why=event["text"])

    @property
    def shown(self) -> list[JsonDict]:
        """The newest first: when each began, in words, whether it counts, and why not."""
        return [dict(one) for one in self._impulses]


def _impulse_words(row: JsonMap) -> str:
    numbers = {"LD": ("impulse_ld_db", " dB"), "OR": ("impulse_or_db_s", " dB/s")}
    parts = [
        f"{symbol} {row[name]:.1f}{unit}"
        for symbol, (name, unit) in numbers.items()
        if row.get(name) is not None
    ]
    p = row["impulse_p"]
    parts += [f"P {p:.1f}", f"K_I {impulse_adjustment(p):.1f} dB"]
    return f"{elapsed_text(row['impulse_s'])}  {', '.join(parts)}"


class Screens:
    """Follows the messages of a station, and gives what a page shows of each microphone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state: JsonMap = {}
        self._course, self._course_since = "connecting", 0.0
        self._begin({})

    def _begin(self, header: JsonMap) -> None:
        self._header = header
        self._limits = [*map(limit_of, header.get("limits", ()))]
        self._step_s = header.get("step_ms", 0) / 1000
        self._late_after_s = self._step_s + LATE_S
        self._rows: dict[str, tuple[JsonMap, float]] = {}
        self._faults: dict[str, dict[str, float]] = {}
        self._impulses = defaultdict[str, HeardImpulses](HeardImpulses)

    def take(self, message: Message) -> None:
        """Follow a header, a row, an event or a state; other messages change nothing."""
        if message.kind == "header":
            self._begin(message.content)
        elif message.kind == "row":
            now = self._clock()
            self._rows[message.microphone] = message.content, now
            faults = self._faults.setdefault(message.microphone, {})
            faults.update(dict.fromkeys(message.content["fault"].split(), now))
            self._impulses[message.microphone].take_row(message.content)
        elif message.kind == "event":
            for name, one in self._impulses.items():
                if message.microphone in ("", name):
                    one.take_event(message.content)
        elif message.kind == "state":
            self._state = message.content
            if (course := course_of(message.content)) != self._course:
                self._course, self._course_since = course, self._clock()

    def messages(self) -> list[Message]:
        """The screen of each microphone, whether it has a row yet or not."""
        names = self._header.get("source", {}).get("microphones") or self._rows or ("",)
        return [Message("screen", self._screen(name)) for name in names]

    def _screen(self, microphone: str) -> JsonDict:
        row, came = self._rows.get(microphone, ({}, -math.inf))
        age_s = self._clock() - came
        late = self._state.get("state") in FOLLOWED and age_s > self._late_after_s
        away = self._course in state_signs.AWAY
        current = {} if late or away else row
        holds = self._conditions(microphone, current)
        return {
            "microphone": microphone,
            "chip": state_signs.chip(state_signs.rank_states(self._course, **holds)),
            "frozen_chip": state_signs.chip(
                state_signs.rank_states(self._course, frozen=True, **holds)
            ),
            "banner": self._banner(),
            "note": self._note(),
            "late_after_s": self._late_after_s,
            "stale_after_s": STALE_S,
            "away": away,
            "measures": self._course in state_signs.MEASURING,
            "time_s": row.get("time_s"),
            "calibrated": bool(row.get("calibrated")),
            "readings": self._readings(row, bool(current), age_s > STALE_S) if row else {},
            "limits": [self._limit(limit, current) for limit in self._limits],
            "impulses": self._impulses[microphone].shown,
        }

    def _conditions(self, microphone: str, row: JsonMap) -> dict[str, Any]:
        """What holds besides, as arguments of `rank_states`."""
        recent_s = self._clock() - max(RECENT_S, 2 * self._step_s)
        faults = [name for name, at in self._faults.get(microphone, {}).items() if at > recent_s]
        level = any(map(_needs_level, self._header.get("columns", ())))
        red = [limit for limit in self._limits if row.get(limit.state) == "red"]
        return {
            "health": [name for name in state_signs.OF_HEALTH if self._health.get(name)],
            "faults": faults,
            "settling": bool(row.get("settling")),
            "uncalibrated": level and not row.get("calibrated", True),
            "limits": ["below limit" if limit.below else "over limit" for limit in red],
        }

    @property
    def _health(self) -> JsonMap:
        return self._state.get("health") or {}

    def _banner(self) -> str:
        """What keeps the page from showing the sound of now, with the time since then; or ""."""
        since_s = self._clock() - self._course_since
        if self._course in state_signs.AWAY:
            name = self._header.get("source", {}).get("name", "the microphone")
            return state_signs.away_sentence(
                self._course, since_s, name, self._health.get("note", "")
            )
        if self._course == "failed":
            words = f"The measurement failed: {self._state['error']}"
        elif self._course == WAITING:
            words = ": ".join(["Waiting for the microphone", *self._state["why"][:1]])
        else:
            return ""
        return f"{words} ({state_signs.minutes_text(since_s)})"

    def _note(self) -> str:
        state, health = self._state, self._health
        parts = [] if self._banner() else [state.get("error", ""), health.get("note", "")]
        if self._course in (WAITING, "starting"):
            parts += state["why"][1 if self._course == WAITING else 0 :]
        if health:
            parts.append(load_words(health["load"], health.get("slow_because", "")))
        if health.get("lost_samples"):
            parts.append(f"{health['lost_samples']} samples lost")
        for log in state.get("logs", ()):
            parts.append(f"log in {log['path']}" + (f" ({log['note']})" if log["note"] else ""))
        return state_signs.BETWEEN.join(filter(None, parts))

    def _readings(self, row: JsonMap, current: bool, stale: bool) -> JsonDict:
        """Each reading by its name: as text, why it is in doubt, and whether it is grey.

        The text of a reading that is not of now is in `last`.
        """
        first = [self._course] if self._course in state_signs.AWAY else []
        first += ["stale"] if stale else []
        stands = self._course != "running"
        readings = {}
        for column in self._header.get("columns", ()):
            name = column["name"]
            doubts = [*first, *_doubts(column, row)]
            readings[name] = {
                "text": _text(name, row) if current else NO_READING,
                "last": "" if current else _text(name, row),
                "doubts": doubts,
                "grey": stands or any(one != "uncalibrated" for one in doubts),
            }
        return readings

    def _limit(self, limit: Limit, row: JsonMap) -> JsonDict:
        values = row or {limit.state: STATES[UNKNOWN]}
        held = () if self._course in state_signs.MEASURING else (self._course,)
        return {
            "name": limit.name,
            "state": state_of(limit, values, held),
            "word": state_words(limit, values, held),
            "value": value_words(limit, values, held),
            "without": value_words(limit, {}),
            "more": forecast_words(limit, values, held),
        }


def course_of(state: JsonMap) -> str:
    """How far a measurement is, by its message: its state, or that of its microphone."""
    device = (state.get("health") or {}).get("device_state")
    if state["state"] in RUNNING and (device in state_signs.AWAY or device == "stalled"):
        return str(device)
    return "running" if state["state"] == "measuring" else str(state["state"])


def _text(name: str, row: JsonMap) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else reading_text(name, value, sign_in(name, row))


def _doubts(column: JsonMap, row: JsonMap) -> Sequence[str]:
    """Why a reading of a row is not reliable, a word each."""
    doubts = []
    if not row["calibrated"] and _needs_level(column):
        doubts.append("uncalibrated")
    for fault in row["fault"].split():
        if fault == "off" and row.get(column["name"]) is None:
            doubts.append("switched off")
        elif fault not in FAULTS_OF_ALL:
            doubts.append(fault.replace("_", " "))
    if row["settling"] and is_named(column["name"], row["settling_columns"]):
        doubts.append("settling")
    if old := old_words(column["name"], row):
        doubts.append(old)
    return doubts


def _needs_level(column: Mapping[str, str]) -> bool:
    """Whether a reading refers to sound pressure, and not to full scale."""
    return column["unit"] != "" and column["unit"] not in FULL_SCALE
