"""Analysis of one long sound in several processes, a part in each.

Every part has a run-in, so long that the models forget their initial state. The outputs are joined
here, and go through the same input gate, marks and meters as those of an undivided sound. If a
model's single-precision state differs in any bit from the end of the part before, the part is run
again from that state. State in double precision has then forgotten the start to 1e-8.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from amt_stream.core.json_types import JsonDict
from amt_stream.dsp.streaming import Stage, fields
from amt_stream.engine.models.preparing import working
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Frames, cut_along, joined_along, mapped
from amt_stream.meters.presets import Preset
from amt_stream.offline.analysis import (
    Analysis,
    CheckedFile,
    frames_of,
    measurements_of,
    sound_for,
)
from amt_stream.offline.jobs import each

RUN_IN, LEAST_RUN_IN_S = 2.5, 5.0
"""Length of the run-in: a multiple of the memory of a model, or at least this many seconds."""

WORTH = 5.0
"""Least ratio of a part to its run-in."""

PARTS = 4
"""Parts per process, so that all processes are busy to the end."""

MOST_BYTES = 2**27
"""Largest output of a part."""

Memory = dict[str, np.ndarray]


@dataclass(frozen=True)
class _Segment:
    """Samples [start, stop) of a sound, with a run-in from `begin`."""

    recording: CheckedFile
    begin: int
    start: int
    stop: int


@dataclass
class _PartOutput:
    """Outputs of the models for a part, by name, and their states at its start and stop."""

    outputs: JsonDict = field(default_factory=dict)
    before: dict[str, Memory] = field(default_factory=dict)
    after: dict[str, Memory] = field(default_factory=dict)


@dataclass(frozen=True)
class _Made:
    """Settings of the models, and the calibration of the sound."""

    preset: Preset
    takes: Mapping[Any, Any]
    calibration: Sequence[Calibration]


class _Apart(ReadyStage):
    """Stores the output of the model, so that no frames are made of it."""

    outputs: list[Any]

    def run(self, n: int) -> None:
        if (y := super().run(n)) is not None:
            self.outputs.append(mapped(np.ndarray.copy, y))


_models: dict[str, Mapping[str, Stage]] = {}
"""The last models made in this process, by their settings."""


def _run(made: _Made, part: _Segment, memory: Mapping[str, Memory] | None = None) -> _PartOutput:
    """Run the models on a part, from a state if one is given."""
    recording = part.recording
    layouts = recording.heard.layouts(made.preset.names)
    key = repr((made.preset, made.takes, recording.fs, layouts))
    models = _models.get(key)
    if models is None:
        models = made.preset.models(recording.fs, layouts, **made.takes)
        _models.clear()
        _models[key] = models
    found = _PartOutput()
    runs = measurements_of(
        recording, models, made.calibration, lambda f: None, begin=part.begin, kind=_Apart
    )
    apart = {run.name: cast(_Apart, run.ready) for run in runs}
    for ready in apart.values():
        ready.outputs = []
    position = part.begin
    with working(apart.values(), owns_thread=False):
        for block in sound_for(recording, runs):
            cut = min(max(0, part.start - position), len(block))
            for run in runs:
                run.take(block[:cut])
                if position + cut == part.start and run.name not in found.before:
                    ready = apart[run.name]
                    ready.outputs.clear()
                    if memory is not None:
                        ready.memory = memory[run.name]
                    found.before[run.name] = ready.memory
                run.take(block[cut:])
            position += len(block)
    for name, ready in apart.items():
        found.outputs[name] = joined_along(ready.model.out_time_dim, *ready.outputs)
        found.after[name] = ready.memory
    return found


class _Parts:
    """Yields the outputs of parts in order, each continuous with the one before."""

    def __init__(self, made: _Made, parts: Sequence[_Segment], jobs: int) -> None:
        self.mended = 0
        self._made, self._parts = made, deque(parts)
        self._coming = each(partial(_run, made), parts, jobs, ahead=1)
        self._after: dict[str, Memory] | None = None

    def __next__(self) -> _PartOutput:
        found, part = next(self._coming), self._parts.popleft()
        if self._after is not None and not _goes_on(self._after, found.before):
            self.mended += 1
            found = _run(self._made, part, self._after)
        self._after = found.after
        return found

    def close(self) -> None:
        self._coming.close()


def _goes_on(after: Mapping[str, Memory], before: Mapping[str, Memory]) -> bool:
    """Whether all single-precision state and all counters are equal."""
    return all(
        np.array_equal(value, before[name][key])
        for name, memory in after.items()
        for key, value in memory.items()
        if value.dtype != np.float64
    )


class _Fed(ReadyStage):
    """Gives outputs from elsewhere up to sample `until`, and then runs the model."""

    name: str
    until: int
    parts: _Parts
    all: "list[_Fed]"
    waiting: deque[Any]
    memory_then: Memory
    at = 0

    def run(self, n: int) -> Any:
        self.at += n
        if self.at > self.until:
            return super().run(n)
        if self.at % self.block:
            return None
        if not self.waiting:
            found = next(self.parts)
            for one in self.all:
                one.hear(found)
        y = self.waiting.popleft()
        if self.at == self.until:
            self.memory = self.memory_then
        return y

    def hear(self, found: _PartOutput) -> None:
        """Take the output of the model for a part."""
        whole = found.outputs[self.name]
        dims, frames = self.model.out_time_dim, self.frames
        count = fields(whole)[0].shape[dims[0] if isinstance(dims, tuple) else dims]
        for low in range(0, count, frames):
            block = mapped(
                lambda v, dim, low=low: cut_along(v, dim, low, low + frames), whole, dims
            )
            self.waiting.append(block)
        self.memory_then = found.after[self.name]


def analyze_split(analysis: Analysis, jobs: int) -> Iterator[Frames]:
    """`Analysis.whole`, in several processes if the sound is long enough."""
    recording, calibration = analysis.recording, analysis.calibration
    arrived: list[Frames] = []
    given = recording, analysis.models, calibration, arrived.append, analysis.began_utc_s
    runs = measurements_of(*given, kind=_Fed)
    wanted = min(recording.duration_s, analysis.to_s)
    parts = _parts_of(
        recording, math.ceil(wanted * recording.fs), [run.ready for run in runs], jobs
    )
    fed = [cast(_Fed, run.ready) for run in runs]
    on_cpu = all(ready.device.on_cpu for ready in fed)
    if len(parts) < 2 or not on_cpu:
        yield from analysis.whole()
        return
    coming = _Parts(_Made(analysis.preset, analysis.takes, calibration), parts, jobs)
    for ready, run in zip(fed, runs, strict=True):
        ready.name, ready.until, ready.parts = run.name, parts[-1].stop, coming
        ready.all, ready.waiting = fed, deque()
    try:
        yield from frames_of(recording, runs, arrived, tail=True)
    finally:
        coming.close()


def _parts_of(
    recording: CheckedFile, samples: int, ready: Sequence[ReadyModel], jobs: int
) -> list[_Segment]:
    """Parts of the first samples of a sound; none if it is too short."""
    fs = recording.fs
    unit = math.lcm(*(one.block for one in ready))
    forgets_s = max(max(one.forget, one.start) / fs for one in ready)
    run_in = math.ceil(max(RUN_IN * forgets_s, LEAST_RUN_IN_S) * fs / unit) * unit
    a_block = [sum(v.nbytes for v in fields(one.nothing())) * fs / one.block for one in ready]
    longest = MOST_BYTES / sum(a_block) * fs
    length = max(WORTH * run_in, min(longest, samples / (PARTS * jobs)))
    length = math.ceil(length / unit) * unit
    stops = range(length, samples // unit * unit + 1, length)
    return [
        _Segment(
            recording.between(max(0, stop - length - run_in), stop), begin, stop - length, stop
        )
        for stop in stops
        for begin in [max(0, stop - length - run_in)]
    ]
