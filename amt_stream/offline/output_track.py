"""Outputs of models at the times of rows, and their axes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import erb_number_to_hz
from amt_stream.meters.catalog import Output
from amt_stream.meters.frames import Frames


@dataclass(frozen=True)
class Axis:
    """An axis of an output.

    name: "erb_number" in Cam, "bark", "half_bark", "bark_hms" (the bands of ECMA-418-2), "hz",
        "ear", "channel"
    center_hz: center frequencies of auditory filters, or None
    """

    name: str
    values: NDArray[np.float64]
    center_hz: NDArray[np.float64] | None = None


class OutputTrack:
    """An output of a model at the times of rows: that of the last frame up to each row."""

    def __init__(self, name: str, output: Output, model: Any, from_s: float) -> None:
        self.picked: list[NDArray[np.float32]] = []
        self.axes: tuple[Axis, ...] = ()
        self._name, self._output, self._from_s = name, output, from_s
        self._frequencies = getattr(model, "frequencies", None)
        self._time_dim = getattr(model.out_time_dim, output.field)
        self._time_s = np.array([-math.inf])
        self._values: NDArray[np.float32] | None = None

    def add(self, frames: Frames) -> None:
        if frames.model != self._name or frames.after_end:
            return
        values = np.moveaxis(getattr(frames.values, self._output.field), self._time_dim, 0)
        if self._values is None:
            # Before the first frame there is no value.
            self._values = np.full((1, *values.shape[1:]), np.nan, np.float32)
            sizes = zip(self._output.axes, values.shape[1:], strict=True)
            self.axes = tuple(axis_of(name, size, self._frequencies) for name, size in sizes)
        self._values = np.concatenate([self._values, values])
        self._time_s = np.concatenate([self._time_s, frames.time_s])
        self._forget(self._from_s)

    def until(self, time_s: NDArray[np.float64]) -> None:
        """Pick the frames of rows at `time_s`, and drop earlier ones."""
        if not len(time_s) or self._values is None:
            return
        self.picked.append(self._values[self._places(time_s)])
        self._forget(time_s[-1])

    def _places(self, time_s: Any) -> Any:
        # The same time may differ between models in the last digit.
        return np.searchsorted(self._time_s, time_s + 1e-6, side="right") - 1

    def _forget(self, time_s: float) -> None:
        """Drop frames before that of a row at `time_s`."""
        place = max(0, self._places(time_s))
        assert self._values is not None
        self._values, self._time_s = self._values[place:], self._time_s[place:]


def axis_of(name: str, size: int, frequencies: NDArray[np.float64] | None = None) -> Axis:
    """The axis of an output, by its name in the catalog.

    size: number of values along it
    frequencies: frequencies of the model in Hz, for an axis "hz"
    """
    if name == "hz" and frequencies is not None:
        return Axis(name, frequencies)
    if name == "erb_number":
        erb_number: NDArray[np.float64] = 1.75 + 0.25 * np.arange(float(size))
        return Axis(name, erb_number, erb_number_to_hz(erb_number))
    step = {"bark": 0.1, "half_bark": 0.5, "bark_hms": 0.5}.get(name, 1.0)
    return Axis(name, step * np.arange(1.0, size + 1.0))
