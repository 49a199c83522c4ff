"""Running a model on a sound as a meter does, and checking its readings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, nan
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonMap
from amt_stream.dsp.compose import Rebuffer
from amt_stream.dsp.contract import takes_pascal
from amt_stream.dsp.streaming import Stage, Stream, joined, map_fields
from amt_stream.meters.calibration import Calibration
from amt_stream.offline.selftest.requirement import Requirement

Build = Callable[..., Stage]
"""Makes a model from its name in the catalog and keyword arguments of its class."""

BLOCK_S = 0.01

CALIBRATION = Calibration(150.0, source="of the self-test")
"""The calibration of sounds in pascal, which reach a model like those of a microphone."""


def output_blocks(model: Stage, sound: Any, options: JsonMap) -> Iterator[Any]:
    """Yield the output of a model, with batch axis 1, for each 10 ms of the sound and for the rest.

    If 10 ms are not whole blocks of the model, its block length is used.
    """
    fs = options["fs"]
    x = _as_recorded(model, sound.samples(fs))
    live = Stream(model, (1, x.shape[1]))
    door = Rebuffer(live, max(1, round(BLOCK_S * fs / model.block_size)))
    with torch.inference_mode():
        for block in x.split(round(BLOCK_S * fs), -1):
            if (y := door.push(block)) is not None:
                yield y
        if (y := door.flush()) is not None:
            yield y


def played(model: Stage, sound: object, options: Mapping[str, object]) -> Any:
    """The whole output as arrays without a batch axis; frame 0 is at time 0."""
    dims = model.out_time_dim
    y = joined(*output_blocks(model, sound, options), dims=dims)
    early = ceil(model.latency * model.ratio)

    def settled(v: torch.Tensor, dim: int) -> Any:
        return v.narrow(dim, early, v.shape[dim] - early).squeeze(0).double().numpy()

    return map_fields(settled, y, dims)


def _as_recorded(model: Stage, samples: NDArray[np.float64]) -> torch.Tensor:
    """Sound (1, channel, time) as a model gets it from a source of float32 samples."""
    if not takes_pascal(model):
        return torch.from_numpy(samples.astype(np.float32))[None]
    scale = np.float32(CALIBRATION.pascal_per_unit)
    recorded = (samples / CALIBRATION.pascal_per_unit).astype(np.float32)
    return torch.from_numpy(recorded * scale)[None]


@dataclass(frozen=True)
class Trial:
    """A sound, and the readings to check after one run of a model on it.

    hear: runs the model on the sound with the options, and returns what the readings use
    """

    model: str
    sound: Any
    readings: tuple[Requirement, ...]
    options: JsonMap = field(default_factory=dict)
    hear: Callable[[Stage, Any, JsonMap], Any] = played

    @property
    def words(self) -> str:
        """The sound and the unusual options of the model, as text."""
        if not hasattr(self.sound, "samples"):
            return self.sound.words
        rest = [v for key, v in self.options.items() if key not in ("fs", "layout")]
        texts = [f"{self.options['fs'] / 1000:g} kHz", *rest]
        return f"{self.sound.words} ({', '.join(texts)})"

    def results(self, build: Build) -> Iterator["Result"]:
        """Yield the result of each reading; readings after an error have failed."""
        try:
            y, problem = self.hear(build(self.model, **self.options), self.sound, self.options), ""
        except Exception as error:
            y, problem = None, _error_text(error)
        for reading in self.readings:
            got, why = nan, problem
            if not problem:
                try:
                    got = float(reading.of(y))
                except Exception as error:
                    why = _error_text(error)
            yield Result(self.model, self.words, reading, got, why)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class Result(NamedTuple):
    """The result of a reading; `problem` is the error that prevented it, if any."""

    model: str
    sound: str
    reading: Requirement
    got: float
    problem: str = ""

    @property
    def deviation(self) -> float:
        return self.reading.deviation(self.got)

    @property
    def passed(self) -> bool:
        # NaN fails.
        return abs(self.deviation) <= self.reading.tolerance
