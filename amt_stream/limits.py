"""Limits: what a column of rows is not to be above, or below, and how it stands to that."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.plain import brief
from amt_stream.refusal import Refusal
from amt_stream.resumable import Resumable

GREEN, AMBER, RED = range(3)
STATES = ("green", "amber", "red", "unknown", "uncalibrated")
"""How a column stands to a limit: the first three are told of what is known."""

UNKNOWN, UNCALIBRATED = 3, 4
COLORS = STATES[:UNKNOWN]

STATE = "limit_"
"""Before the name of a limit, that of the column of its state."""

KEYS = ("column", "above", "below", "amber", "hysteresis", "hold_s", "at_end", "name", "source")
"""Of the table of a limit in TOML."""

OF_TEXT = {"amber": "amber", "hysteresis": "hysteresis", "hold": "hold_s", "name": "name"}
"""What may follow a limit that is written in one line."""

_TEXT = re.compile(r"(?P<column>\w+)\s*(?P<side>[<>])\s*(?P<threshold>[-+\d.eE]+)")


class LimitError(Refusal, ValueError):
    """A limit cannot be used; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Limit:
    """A column is not to be above a threshold; or below it, as the loudness of a programme.

    column: its name
    threshold: in the unit of the column: red is above it, or below it where that is so
    amber: from where on to be warned, on the near side of the threshold; None for no warning
    hysteresis: how far it has to come back before the state does, in the unit of the column
    hold_s: for how long, without a break; a worse state is told at once
    at_end: what counts is where it ends, as of a programme, and not what it was on the way
    name: letters, digits and _; by default that of the column without its unit, and the threshold
    source: who has set it, and where that is written

    Raises LimitError for what is no number, and for an amber beyond the threshold.
    """

    column: str
    threshold: float
    below: bool = False
    amber: float | None = None
    hysteresis: float = 0.0
    hold_s: float = 0.0
    at_end: bool = False
    name: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._named())
        if not re.fullmatch(r"[a-z0-9_]{1,60}", self.name):
            raise LimitError(
                f"a limit is called {brief(self.name)!r}: give small letters, digits and _"
            )
        for key in ("threshold", "amber", "hysteresis", "hold_s"):
            value = getattr(self, key)
            if value is None and key == "amber":
                continue
            if type(value) not in (int, float) or not math.isfinite(value):
                raise LimitError(f"the {key} of {self.name} is {brief(value)!r}: give a number")
            if value < 0 and key in ("hysteresis", "hold_s"):
                raise LimitError(f"the {key} of {self.name} is {value:g}: give 0 or more")
        if self.amber is not None and self.sign * (self.threshold - self.amber) < 0:
            remedy = "more" if self.below else "less"
            raise LimitError(
                f"{self.words}: amber is {self.amber:g}, beyond the limit itself: give {remedy}"
            )

    def _named(self) -> str:
        stem = self.column.rpartition("_")[0] or self.column
        side = "_below" if self.below else ""
        number = f"{self.threshold:g}" if isinstance(self.threshold, int | float) else ""
        return stem + side + "_" + number.replace("-", "m").replace(".", "_").replace("+", "")

    @property
    def sign(self) -> int:
        """1, or -1 where lower is worse."""
        return -1 if self.below else 1

    @property
    def side(self) -> str:
        """Where it is not to be."""
        return "below" if self.below else "above"

    @property
    def words(self) -> str:
        """As it is written in one line."""
        return f"{self.column} {'<' if self.below else '>'} {self.threshold:g}"

    @property
    def state(self) -> str:
        """Name of the column that tells the state."""
        return STATE + self.name

    def to_dict(self) -> dict[str, Any]:
        """As a table of TOML says it, and a header tells it: all but what is as usual."""
        told = {"name": self.name, "column": self.column, self.side: self.threshold}
        more = ("amber", "hysteresis", "hold_s", "at_end", "source")
        return told | {key: v for key in more if (v := getattr(self, key)) not in (None, False, "")}


def limit_of(table: Mapping[str, Any]) -> Limit:
    """The limit that a table of TOML, or of JSON, describes.

    Raises LimitError for what is missing, unknown or of the wrong kind.
    """
    for key in table:
        if key not in KEYS:
            raise LimitError(f"{brief(key)} is nothing of a limit: there are {', '.join(KEYS)}")
    column, sides = table.get("column"), [side for side in ("above", "below") if side in table]
    if not isinstance(column, str) or len(sides) != 1:
        raise LimitError("a limit has a column, and either above or below which it is not to be")
    for key, kind in (("name", str), ("source", str), ("at_end", bool)):
        if key in table and not isinstance(table[key], kind):
            words = "true or false" if kind is bool else "text in quotes"
            raise LimitError(f"{key} of {column} is {brief(table[key])!r}: give {words}")
    given = {key: value for key, value in table.items() if key not in ("column", *sides)}
    return Limit(column, table[sides[0]], below=sides[0] == "below", **given)


def limit_from_text(text: str) -> Limit:
    """The limit in a line such as "laeq_15min_db>100,amber=97,hysteresis=1,hold=2".

    Raises LimitError for what is no limit.
    """
    first, *more = (part.strip() for part in text.split(","))
    found = _TEXT.fullmatch(first)
    pairs = [part.partition("=") for part in more]
    unknown = [key for key, _, _ in pairs if key.strip() not in OF_TEXT]
    if found is None or unknown:
        raise LimitError(
            f"{brief(text)!r} is no limit: write it as laeq_15min_db>100, or with a comma before "
            f"each of {', '.join(f'{key}=' for key in OF_TEXT)}"
        )
    side = "above" if found["side"] == ">" else "below"
    given: dict[str, Any] = {"column": found["column"], side: _number(found["threshold"], text)}
    for key, _, value in pairs:
        name = OF_TEXT[key.strip()]
        given[name] = value.strip() if name == "name" else _number(value, text)
    return limit_of(given)


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise LimitError(f"{brief(text)!r}: {brief(value)!r} is no number") from None


def refuse_twice(limits: Iterable[Limit]) -> None:
    """Raise LimitError for two limits of one name."""
    names = [limit.name for limit in limits]
    for name in names:
        if names.count(name) > 1:
            raise LimitError(f"two limits are called {name}: give one of them another name")


@dataclass
class Stood:
    """How a column has stood to a limit, over all rows that counted.

    state: at the last row, a word of STATES; "unknown" before the first
    times: how often it turned red
    seconds: in each of STATES
    worst, worst_s: the highest value, or the lowest where that is worse, and when that was
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended so where that is what counts; None where never known."""
        if not any(self.seconds[name] for name in COLORS):
            return None
        return self.state == STATES[RED] if self.limit.at_end else self.seconds[STATES[RED]] > 0

    def to_dict(self) -> dict[str, Any]:
        """As a summary tells it."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "worst": self.worst,
            "worst_s": self.worst_s,
        }


class Judge(Resumable):
    """How one column stands to a limit, row after row.

    step_s: from row to row
    window_s: of a rolling column, its window; until that is whole for the first time, what is above
        the limit is amber, and red only where no silence in the rest of it could help
    adds_up: whether the column is an equivalent level, of which that can be told

    Red is told at once. A state gets better when the value has been on the better side of the
    threshold, by the hysteresis, for `hold_s` without a break: to the worst of that time. Rows
    without a value, and those that tell of clipped sound, of which the true level is not known, are
    "unknown" unless they are red; rows without a calibration "uncalibrated". They neither count
    for nor against anything.
    """

    kept: ClassVar[tuple[str, ...]] = ("_level", "_calm_s", "_calm_level", "_began_s", "_last")
    kept += ("_times", "_rows", "_worst", "_worst_s")

    def __init__(
        self, limit: Limit, step_s: float, window_s: float = 0.0, adds_up: bool = False
    ) -> None:
        self.limit, self.paused = limit, False
        self._step_s, self._window_s = step_s, window_s
        self._adds_up = adds_up and not limit.below
        self._began_s = math.nan
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, and the state."""
        self._level, self._last = GREEN, UNKNOWN
        self._calm_s, self._calm_level = math.nan, GREEN
        self._times = 0
        self._rows = np.zeros(len(STATES), np.int64)
        self._worst = self._worst_s = math.nan

    def update(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        calibrated: NDArray[np.bool_],
        clipped: NDArray[np.bool_],
    ) -> NDArray[np.object_]:
        """The state at each row, in words: rows (n,) in their order, NaN for no value."""
        known = np.isfinite(values) & calibrated
        if math.isnan(self._began_s) and known.any():
            self._began_s = float(time_s[known][0])
        before = self._level
        levels = self._levels(time_s, values, known)
        told = np.where(known, levels, UNKNOWN)
        told[known & clipped & (levels < RED)] = UNKNOWN
        told[~calibrated] = UNCALIBRATED
        if not self.paused:
            self._count(time_s, values, known, levels, told, before)
        if len(told):
            self._last = int(told[-1])
        return WORDS[told]

    def _levels(
        self, time_s: NDArray[np.float64], values: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """GREEN, AMBER or RED after each row; where there is no value, as before."""
        limit = self.limit
        signed, top = limit.sign * values, limit.sign * limit.threshold
        warn = top if limit.amber is None else limit.sign * limit.amber
        sure = self._sure(time_s, signed)
        rank = np.where(sure > top, RED, np.where(signed > warn, AMBER, GREEN))
        if known.all() and not (limit.hysteresis or limit.hold_s):
            self._level = int(rank[-1]) if len(rank) else self._level
            return rank
        back = limit.hysteresis
        near = np.where(sure > top - back, RED, np.where(signed > warn - back, AMBER, GREEN))
        levels = np.full(len(rank), self._level)
        if (rank[known] == self._level).all():
            self._calm_s = math.nan if known.any() else self._calm_s
            return levels
        each = zip(time_s.tolist(), rank.tolist(), near.tolist(), known.tolist(), strict=True)
        for k, (at_s, now, still, there) in enumerate(each):
            if there:
                self._turn(at_s, now, still)
            levels[k] = self._level
        return levels

    def _turn(self, at_s: float, now: int, still: int) -> None:
        """Take a row into account that is `now`, and is not yet better than `still`."""
        if now >= self._level or still >= self._level:
            self._level = max(now, self._level)
            self._calm_s = math.nan
            return
        if math.isnan(self._calm_s):
            self._calm_s, self._calm_level = at_s, GREEN
        self._calm_level = max(self._calm_level, still)
        # Two times that differ by less are the same.
        if at_s - self._calm_s >= self.limit.hold_s - 1e-6:
            self._level, self._calm_s = self._calm_level, math.nan

    def _sure(
        self, time_s: NDArray[np.float64], signed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What the column will at least have been over its whole window."""
        if not self._window_s or math.isnan(self._began_s):
            return signed
        share = np.clip((time_s - self._began_s) / self._window_s, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            if self._adds_up:
                return signed + 10 * np.log10(share)
            return np.where(share < 1.0, -np.inf, signed)

    def _count(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        known: NDArray[np.bool_],
        levels: NDArray[np.int64],
        told: NDArray[np.int64],
        before: int,
    ) -> None:
        self._rows += np.bincount(told, minlength=len(STATES))
        red = np.concatenate([[before == RED], levels == RED])
        self._times += int(np.count_nonzero(red[1:] & ~red[:-1]))
        if known.any():
            signed = np.where(known, self.limit.sign * values, -np.inf)
            at = int(signed.argmax())
            if not signed[at] <= self.limit.sign * self._worst:
                self._worst, self._worst_s = float(values[at]), float(time_s[at])

    @property
    def stood(self) -> Stood:
        """What has come of it so far."""
        there = not math.isnan(self._worst)
        return Stood(
            self.limit,
            STATES[self._last],
            self._times,
            dict(zip(STATES, (self._rows * self._step_s).tolist(), strict=True)),
            self._worst if there else None,
            self._worst_s if there else None,
        )


WORDS = np.array(STATES, dtype=object)
