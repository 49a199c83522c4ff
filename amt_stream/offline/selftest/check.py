"""Playing a sound to a model as users do, and checking what is read of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from typing import Any, NamedTuple

from amt_stream.core.json_types import JsonMap
from amt_stream.dsp.contract import takes_pascal
from amt_stream.dsp.streaming import Stage
from amt_stream.offline.selftest.heard import Heard, heard
from amt_stream.offline.selftest.requirement import Requirement
from amt_stream.offline.selftest.ways import WAYS, Recorded, Way

Build = Callable[..., Stage]
"""Makes a model from its name in the catalog and keyword arguments of its class."""


@dataclass(frozen=True)
class Trial:
    """A sound, and the readings to check after one run of a model on it.

    options: arguments of the model, among them `fs`; by default 48 kHz
    columns: columns that the readings use, besides the usual ones
    directly: for what no source gives: calls functions of the model with it, and returns what the
        readings use
    exceptions: ways in which it is not played, by name, with the reason
    """

    model: str
    sound: Any
    readings: tuple[Requirement, ...]
    options: JsonMap = field(default_factory=lambda: {"fs": 48000})
    columns: tuple[str, ...] = ()
    directly: Callable[[Any, Any], Any] | None = None
    exceptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The sound and the unusual options of the model, as text."""
        if not hasattr(self.sound, "samples"):
            return self.sound.words
        rest = [v for key, v in self.options.items() if key not in ("fs", "layout")]
        texts = [f"{self.options['fs'] / 1000:g} kHz", *rest]
        return f"{self.sound.words} ({', '.join(texts)})"

    @property
    def usual(self) -> Way:
        """The first way in which it is played."""
        return next(way for way in WAYS.values() if way.name not in self.exceptions)

    def not_as(self, **reasons: str) -> "Trial":
        """This trial with exceptions: names of ways, each with its reason."""
        return replace(self, exceptions=reasons)

    def at(self, way: Way) -> "Trial":
        """This trial at the sampling rate of a way."""
        return self if way.fs is None else replace(self, options={**self.options, "fs": way.fs})

    def results(self, build: Build, ways: Sequence[Way] = ()) -> Iterator["Result"]:
        """Yield the result of each reading in each way; readings after an error have failed.

        ways: by default the usual one
        """
        if self.directly is not None:
            yield from self._read("", partial(self._heard_directly, build))
            return
        for way in ways or (self.usual,):
            if why := self.exceptions.get(way.name):
                for reading in self.readings:
                    yield Result(self.model, self.words, reading, way.name, left_out=why)
            else:
                yield from self._read(way.name, partial(self.at(way)._heard, build, way))

    def _heard_directly(self, build: Build) -> Any:
        assert self.directly is not None
        return self.directly(build(self.model, **self.options), self.sound)

    def _heard(self, build: Build, way: Way) -> Heard:
        fs, model = self.options["fs"], build(self.model, **self.options)
        sound = self.sound.samples(fs)
        if takes_pascal(model):
            recorded = Recorded.of_pascal(sound, fs, way.peak)
        else:
            recorded = Recorded(sound.T, fs, layout=self.options.get("layout"))
        frames = way.frames(self.model, model, recorded)
        return heard(self.model, model, recorded, frames, self.columns)

    def _read(self, way: str, hear: Callable[[], Any]) -> Iterator["Result"]:
        try:
            y, problem = hear(), ""
        except Exception as error:
            y, problem = None, _error_text(error)
        for reading in self.readings:
            got, why = nan, problem
            if not problem:
                try:
                    got = float(reading.of(y))
                except Exception as error:
                    why = _error_text(error)
            yield Result(self.model, self.words, reading, way, got, why)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class Result(NamedTuple):
    """The result of a reading.

    sound: the words of its trial
    way: name of the way in which the sound was played, "" for what reached the model directly
    problem: the error that prevented it, if any
    left_out: why it was not played in this way, if it was not
    """

    model: str
    sound: str
    reading: Requirement
    way: str
    got: float = nan
    problem: str = ""
    left_out: str = ""

    @property
    def deviation(self) -> float:
        return self.reading.deviation(self.got)

    @property
    def passed(self) -> bool:
        """Whether it was played and is within the tolerance."""
        # NaN fails.
        return abs(self.deviation) <= self.reading.tolerance

    @property
    def failed(self) -> bool:
        """Whether it was played and did not pass."""
        return not (self.passed or self.left_out)
