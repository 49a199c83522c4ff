"""Readings of a meter for each channel, as a table of words; one of two channels leads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.names import NameForm, place_of, sides_of
from amt_stream.meters.rows.column import Column, Meaning, counting
from amt_stream.meters.rows.readings import MeteredReadings, Summary, higher

INSTANT = "instantaneous"


class ChannelWords(NamedTuple):
    """A reading as a column: form of its name, unit, and as for `Meaning`."""

    form: str
    unit: str
    quantity: str
    statistic: str
    label: str
    symbol: str
    about: str
    note: str = ""


class ChannelReadings(MeteredReadings):
    """Readings in a table of words, of a meter for each channel.

    A meter's `reading` gives the statistics by their keys, and None for what is not there.

    model: name in the catalog
    words: its readings, by key
    headlines: keys of the main readings of a summary
    """

    now: ClassVar[Sequence[str]] = ()
    """Keys of readings of a moment."""

    unusual: ClassVar[Sequence[str]] = ()
    """Keys of columns that are not there unless they are asked for."""

    interval: ClassVar[Sequence[str]] = ()
    """Keys of the readings of an interval."""

    leads: ClassVar[Mapping[str, str]] = {}
    """Of two channels, that with the higher one of these has the value that is shown."""

    settles_s: ClassVar[float] = 0.0
    """Until earlier, louder sound is forgotten."""

    def __init__(
        self, model: str, channels: int, words: dict[str, ChannelWords], headlines: Iterable[str]
    ) -> None:
        self._words, self._channels = words, channels
        self._forms = {key: NameForm(one.form) for key, one in words.items()}
        self.headlines = tuple(self._forms[key].write() for key in headlines)
        given = [key for key in self.interval if key in words]
        self.of_interval = tuple(self._forms[key].write() for key in given)
        offered = [self._column(model, key, side) for key in words for side in sides_of(channels)]
        usual = [c.name for c in offered if not c.side and c.of not in self.unusual]
        super().__init__(model, offered, usual)

    def _column(self, model: str, key: str, side: str) -> Column:
        _, unit, *meaning = self._words[key]
        name, both = self._forms[key].write(side=side), higher(self._channels)
        column = Meaning(*meaning).column(name, unit, model, side, "", both)
        column = replace(column, of=key, kind="now" if key in self.now else column.statistic)
        return (
            replace(column, settle_s=0.0) if key in self.now else counting(column, self.settles_s)
        )

    def renew(self) -> None:
        keys = [column.of for column in self.columns]
        keys += [self.leads[key] for key in keys if key in self.leads]
        self._keys = tuple(dict.fromkeys(keys))
        self._meters = [self._meter(self._keys) for _ in range(self._channels)]

    def _meter(self, keys: tuple[str, ...]) -> Any:
        """A new meter of a channel for readings of these keys."""
        raise NotImplementedError

    def shown(self, each: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns (n, column), of readings (channel, key, n)."""
        found = np.empty((each.shape[-1], len(self.columns)))
        for k, column in enumerate(self.columns):
            found[:, k] = self._of_side(column, each)
        return found

    def _of_side(self, column: Column, each: NDArray[np.float64]) -> NDArray[np.float64]:
        """A column (n,), of readings (channel, key, n)."""
        values = each[:, self._keys.index(column.of)]
        if self._channels == 1 or column.side:
            return values[max(0, place_of(column.side) - 1)]
        if column.of in self.leads:
            first, second = each[:, self._keys.index(self.leads[column.of])]
            of_second = (second > first) | np.isnan(first)
            return np.asarray(np.where(of_second, values[1], values[0]))
        return np.asarray(np.fmax(values[0], values[1]))

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        found: Summary = {}
        for key, form in self._forms.items():
            if key in self.now:
                continue
            for side in sides_of(self._channels):
                own = readings[place_of(side) - 1 :][:1] if side else readings
                there = [one for one in own if one[key] is not None]
                most = max(
                    there, key=lambda one: one[self.leads.get(key, key)] or 0.0, default=None
                )
                found[form.write(side=side)] = None if most is None else most[key]
        return found
