"""What a page shows of the time before it was opened."""

import json
import math
from array import array
from collections.abc import Iterable

from amt_stream.core.json_types import JsonDict

FORMS = ((1.0, 3600.0), (0.1, 120.0))
"""Length of a step in seconds, and for how long it is kept: the farther back, the coarser."""

SPARE = 1.05
"""So much more is kept before the oldest go, all at once."""


class PastRows:
    """The least and the greatest value of each reading of one microphone, step by step.

    A model that gives several rows at a time, as a spectrum does, has no such past.
    """

    def __init__(self) -> None:
        self._time_s = -math.inf
        self._forms = [_Steps(*form) for form in FORMS]
        self._has_cells = False

    def take(self, text: str) -> None:
        """Add a row, given as JSON."""
        if self._has_cells:
            return
        row = json.loads(text)
        time_s = row["time_s"]
        self._has_cells = time_s == self._time_s
        self._time_s = time_s
        if self._has_cells:
            return
        values = {name: value for name, value in row.items() if isinstance(value, float)}
        for steps in self._forms:
            steps.add(time_s, values)

    def of(self, names: Iterable[object]) -> list[JsonDict]:
        """These readings in each form: times of the steps, and null where there was no value."""
        wanted = [name for name in names if isinstance(name, str)]
        return [] if self._has_cells else [steps.of(wanted) for steps in self._forms]


class _Steps:
    """One form of the past."""

    def __init__(self, step_s: float, kept_s: float) -> None:
        self._step_s, self._most = step_s, round(kept_s / step_s)
        self._places = array("q")
        self._least: dict[str, array[float]] = {}
        self._greatest: dict[str, array[float]] = {}

    def add(self, time_s: float, values: dict[str, float]) -> None:
        place = math.floor(time_s / self._step_s + 1e-6)
        if not self._places or self._places[-1] != place:
            self._begin(place)
        for name, value in values.items():
            if name not in self._least:
                nothing = [math.nan] * len(self._places)
                self._least[name], self._greatest[name] = array("f", nothing), array("f", nothing)
            least, greatest = self._least[name], self._greatest[name]
            # The first value of a step meets NaN, which compares as false.
            least[-1] = least[-1] if least[-1] <= value else value
            greatest[-1] = greatest[-1] if greatest[-1] >= value else value

    def _begin(self, place: int) -> None:
        columns = [*self._least.values(), *self._greatest.values()]
        if len(self._places) >= SPARE * self._most:
            old = len(self._places) - self._most
            del self._places[:old]
            for column in columns:
                del column[:old]
        self._places.append(place)
        for column in columns:
            column.append(math.nan)

    def of(self, names: Iterable[str]) -> JsonDict:
        return {
            "step_s": self._step_s,
            "time_s": [round(place * self._step_s, 3) for place in self._places],
            "columns": {
                name: {
                    "least": _numbers(self._least[name]),
                    "greatest": _numbers(self._greatest[name]),
                }
                for name in names
                if name in self._least
            },
        }


def _numbers(values: "array[float]") -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.5g}") for value in values]
