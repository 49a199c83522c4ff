"""Upper or lower limits of columns of rows, and how they were kept."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.meters.accumulators import limit_state
from amt_stream.meters.accumulators.limit_state import RED, STATES, UNKNOWN
from amt_stream.meters.names import state_column, stem_and_unit

COLORS = STATES[:UNKNOWN]

EXCEEDED, KEPT, KEPT_SO_FAR, NOT_KNOWN = "exceeded", "kept", "kept so far", "not known"
VERDICTS = (EXCEEDED, KEPT, KEPT_SO_FAR, "above so far", "below so far", NOT_KNOWN)
"""The results of a limit, as text."""

LARGEST = 1e9

KEYS = (
    *("column", "above", "below", "amber", "ahead_s"),
    *("hysteresis", "hold_s", "at_end", "name", "source"),
)
"""Keys of a limit in TOML."""

OF_TEXT = {"amber": "amber", "ahead": "ahead_s", "hysteresis": "hysteresis", "hold": "hold_s"}
OF_TEXT |= {"name": "name"}
"""Keys that may follow a limit written as text."""

_TEXT = re.compile(r"(?P<column>\w+)\s*(?P<side>[<>])\s*(?P<threshold>[-+\d.eE]+)")


class LimitError(Refusal, ValueError):
    """A limit is invalid."""


@dataclass(frozen=True)
class Limit:
    """An upper limit of a column, or a lower one, such as of the loudness of a programme.

    column: name of the column
    threshold: in the unit of the column; the state is red above it, or below it for a lower limit
    amber: threshold of a warning, before the limit; None for no warning
    ahead_s: it also warns from so many seconds before the limit is exceeded at the present level,
        in a column with forecasts; 0 for no such warning
    hysteresis: how far the value must return before the state improves, in the unit of the column
    hold_s: how long it must stay there; a worse state is reported immediately
    at_end: whether only the final value counts, as for a programme
    name: letters, digits and _; by default the column without its unit, and the threshold
    source: regulation or document of the limit

    Raises LimitError for an invalid number, and for an amber beyond the threshold.
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
    ahead_s: float = 0.0

    def __post_init__(self) -> None:
        column = self.column
        if not re.fullmatch(r"\w{1,80}", column):
            raise LimitError(f"the column of a limit is {brief(column)!r}: give its whole name")
        positive = "hysteresis", "hold_s", "ahead_s"
        numbers = {key: getattr(self, key) for key in ("threshold", *positive)}
        numbers |= {} if self.amber is None else {"amber": self.amber}
        for key, value in numbers.items():
            if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST:
                raise LimitError(f"the {key} of {column} is {brief(value)!r}: give a number")
            if value < 0 and key in positive:
                raise LimitError(f"the {key} of {column} is {value:g}: give 0 or more")
        if self.amber is not None and self.sign * (self.threshold - self.amber) < 0:
            remedy = "more" if self.below else "less"
            raise LimitError(
                f"{self.words}: amber is {self.amber:g}, beyond the limit itself: give {remedy}"
            )
        if not self.name:
            object.__setattr__(self, "name", self._named())
        if not re.fullmatch(r"[a-z0-9_]{1,80}", self.name):
            raise LimitError(
                f"the name of a limit is {brief(self.name)!r}: give small letters, digits and _"
            )

    def _named(self) -> str:
        stem = stem_and_unit(self.column)[0] or self.column
        side = "_below" if self.below else ""
        number = f"{self.threshold:g}".replace("-", "m").replace(".", "_").replace("+", "")
        return f"{stem}{side}_{number}".lower()

    @property
    def given_name(self) -> str:
        """The name, unless it is the default one."""
        return "" if self.name == self._named() else self.name

    @property
    def sign(self) -> int:
        """1, or -1 for a lower limit."""
        return -1 if self.below else 1

    @property
    def side(self) -> str:
        """ "above", or "below" for a lower limit."""
        return "below" if self.below else "above"

    @property
    def threshold_words(self) -> str:
        """As "limit 85", without unit; "at least 20" for a lower limit."""
        return f"{'at least' if self.below else 'limit'} {self.threshold:g}"

    def is_beyond(self, value: float | None) -> bool:
        """Whether a value is beyond the limit."""
        return value is not None and self.sign * value > self.sign * self.threshold

    @property
    def words(self) -> str:
        """The limit as text."""
        return f"{self.column} {'<' if self.below else '>'} {self.threshold:g}"

    @property
    def state(self) -> str:
        """Name of the column with the state."""
        return state_column(self.name)

    def to_dict(self) -> JsonDict:
        """Data for TOML and headers, without defaults."""
        data = {"name": self.name, "column": self.column, self.side: self.threshold}
        more = ("amber", "hysteresis", "hold_s", "at_end", "source")
        found = {key: v for key in more if (v := getattr(self, key)) not in (None, False, "")}
        return data | found | ({"ahead_s": self.ahead_s} if self.ahead_s else {})


@dataclass
class Stood:
    """The result of a limit over all counted rows.

    state: state at the last row, one of STATES; "unknown" before the first row
    times: how often it turned red
    seconds: duration of each of STATES
    counted_s: duration of the measurement, with what was missed
    unjudged_s: of that, what was not measured, not calibrated, or clipped and not red
    microphone: name of the microphone, if there are several
    worst, worst_s: the highest value (the lowest for a lower limit) of rows with a complete window,
        and its time; without such rows, or if only the end counts, the last value
    whole: whether the window of a rolling column was complete at any time; true for other columns
    heard_s, window_s: sound in the window at the last row, and its length
    projection: lowest possible level of an incomplete window, if silence follows
    judged_from_s: when judging began, if that was during the measurement; else 0
    clipped_s: duration in which the value included clipped sound
    doubted: whether such a value was not red, so that the true one may have been
    cut_off: whether sound is missing at the end of its file
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None
    whole: bool = True
    heard_s: float = 0.0
    window_s: float = 0.0
    projection: float | None = None
    microphone: str = ""
    unjudged_s: float = 0.0
    counted_s: float = 0.0
    judged_from_s: float = 0.0
    clipped_s: float = 0.0
    doubted: bool = False
    cut_off: bool = False

    @property
    def verdict(self) -> str:
        """One of VERDICTS; "above so far" while an incomplete window is not decisive."""
        if self.exceeded:
            return EXCEEDED
        if not self.whole and self.worst is not None:
            above = self.limit.is_beyond(self.worst)
            return f"{self.limit.side} so far" if above else KEPT_SO_FAR
        return NOT_KNOWN if self.exceeded is None else KEPT

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended red if only the end counts.

        None if that is unknown: without a complete window, if too much was not judged, and if
        clipped sound, or what was cut off, may have broken it.
        """
        found = limit_state.result(
            STATES.index(self.state),
            self.seconds[STATES[RED]],
            sum(self.seconds[name] for name in COLORS),
            self.unjudged_s,
            self.counted_s,
            self.whole,
            self.doubted,
            self.limit.at_end,
        )
        if found == limit_state.NOT_KNOWN or (self.cut_off and self.limit.at_end):
            return None
        return True if found == limit_state.EXCEEDED else None if self.cut_off else False

    def to_dict(self) -> JsonDict:
        """Data for summaries."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "counted_s": round(self.counted_s, 3),
            "unjudged_s": round(self.unjudged_s, 3),
            "clipped_s": round(self.clipped_s, 3),
            "worst": self.worst,
            "worst_s": self.worst_s,
            "whole": self.whole,
            **({} if self.whole else self._of_window),
            **({"cut_off": True} if self.cut_off else {}),
            **({"judged_from_s": round(self.judged_from_s, 3)} if self.judged_from_s else {}),
        }

    @property
    def _of_window(self) -> JsonDict:
        """Data of a window that was never complete."""
        data = {"heard_s": round(self.heard_s, 3), "window_s": self.window_s}
        return data | ({} if self.projection is None else {"projection": self.projection})


def limit_of(table: JsonMap) -> Limit:
    """Make a limit from a table of TOML or JSON.

    Raises LimitError for keys that are missing, unknown or of the wrong type.
    """
    for key in table:
        if key not in KEYS:
            raise LimitError(f"{brief(key)} is not a key of a limit: there are {', '.join(KEYS)}")
    column, sides = table.get("column"), [side for side in ("above", "below") if side in table]
    if not isinstance(column, str) or len(sides) != 1:
        raise LimitError("a limit needs a column, and either above or below")
    for key, kind in (("name", str), ("source", str), ("at_end", bool)):
        if key in table and not isinstance(table[key], kind):
            words = "true or false" if kind is bool else "text in quotes"
            raise LimitError(f"{key} of {column} is {brief(table[key])!r}: give {words}")
    given = {key: value for key, value in table.items() if key not in ("column", *sides)}
    return Limit(column, table[sides[0]], below=sides[0] == "below", **given)


def limit_from_text(text: str) -> Limit:
    """Read a limit such as "laeq_15min_db>100,amber=97,hysteresis=1,hold=2".

    Raises LimitError.
    """
    first, *more = (part.strip() for part in text.split(","))
    found = _TEXT.fullmatch(first)
    pairs = [part.partition("=") for part in more]
    unknown = [key for key, _, _ in pairs if key.strip() not in OF_TEXT]
    if found is None or unknown:
        raise LimitError(
            f"{brief(text)!r} is not a limit: write it as laeq_15min_db>100, perhaps followed by "
            f"{', '.join(f',{key}=' for key in OF_TEXT)}"
        )
    side = "above" if found["side"] == ">" else "below"
    given: dict[str, object] = {"column": found["column"], side: _number(found["threshold"], text)}
    for key, _, value in pairs:
        name = OF_TEXT[key.strip()]
        given[name] = value.strip() if name == "name" else _number(value, text)
    return limit_of(given)


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise LimitError(f"{brief(text)!r}: {brief(value)!r} is not a number") from None


def refuse_twice(limits: Iterable[Limit]) -> None:
    """Raise LimitError for two limits with the same name."""
    names = [limit.name for limit in limits]
    for name in names:
        if names.count(name) > 1:
            raise LimitError(f"two limits are called {name}: rename one of them")
