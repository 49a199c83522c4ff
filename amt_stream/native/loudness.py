"""Readings of loudness since the start, as a part of the plans of programs without Python."""

import math
from collections import namedtuple
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from amt_stream.dsp.compose import prefixed
from amt_stream.dsp.functional.compiler.call_table import Calls, TupleOf, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.fused import Fused, PlanOnly, Workspace
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State
from amt_stream.meters.accumulators.percentiles import PERCENTS, RENEWED_S
from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.native.exceeded import find_exceeded

STATE = "passed", "top", "counted", "rise", "exceeding"
"""Rows of the state."""

GIVEN = "phon_now", "max_sone", "max_phon", "exceeded_phon", "exceeded_sone"
"""Rows of outputs, which follow those of the model."""


class Since(NamedTuple):
    """What readings since the start count.

    sones: number of loudnesses with a maximum; the last one also has percentiles
    rule: of the percentiles
    least, most: classes of the values that there can be: lower ones count as silence, higher ones
        as infinite
    edition: of the table from sone to phon, if there is one
    """

    sones: int
    rule: CountingRule
    least: int
    most: int
    edition: str = ""


Counting = namedtuple(
    "Counting", "numbers width percents passed top counted rise exceeding values found more"
)
"""What kernels of readings count with.

numbers: frames from before the sound, then `rising` to `most` of `find_exceeded`
width, percents: as there
passed: state: number of frames, with those from before the sound
top: state: the maximum of each loudness
counted, rise, exceeding: state of each line, as in `find_exceeded`
values, found, more: memory: what is counted of a line, its percentiles, and as there
"""


def readings_rows(rows: Any, tables: str = "") -> Any:
    """The rows of a plan whose outputs stand at the end of `rows`; tables: further ones."""
    return plan_rows(" ".join([*rows._fields, *GIVEN, "to_readings", tables, *Counting._fields]))


def counting_arguments(calls: Calls) -> tuple[Any, ...]:
    """What kernels of readings take after loudness and tables: `Counting`, and outputs."""
    a, i, d, _ = calls.arguments
    rule = *i(1, "numbers"), *d(None, "width"), *d(1, "percents")
    state = *i(1, "passed"), *d(1, "top"), *i(2, "counted", "rise"), *d(2, "exceeding")
    memory = *d(1, "values"), *d(2, "found"), *i(1, "more")
    counting = TupleOf(Counting, (*rule, *state, *memory))
    return counting, *a(2, *GIVEN[:3]), *a(3, "exceeded_phon")


@kernel
def keep_maximum(sone: Array, number: int, top: Array, highest: Array) -> None:
    """The maximum after each frame, NaN before the first that counts; updates `top` (1,)."""
    for k in range(len(sone)):
        if number + k >= 0 and not top[0] >= sone[k]:
            top[0] = sone[k]
        highest[k] = top[0]


@kernel
def find_percentiles(counting: Counting, number: int, line: int) -> None:
    """Percentiles of a line after each of its values; number: of the first value."""
    _, rising, renewed, least, most = counting.numbers
    find_exceeded(
        counting.values,
        number,
        rising,
        renewed,
        counting.width,
        least,
        most,
        counting.percents,
        counting.counted[line],
        counting.rise[line],
        counting.exceeding[line],
        counting.more,
        counting.found,
    )


class _SinceState(Stage):
    """The state of readings; frames from before the sound do not count."""

    def __init__(self, since: Since, frames_before: int) -> None:
        super().__init__()
        rule, self.since = since.rule, since
        self.rising = round(rule.rise_s * rule.rate)
        renewed = round(RENEWED_S * rule.rate)
        self.numbers = [frames_before, self.rising, renewed, since.least, since.most]

    def initial_state(self, shape: Any) -> State:
        lines, classes = prod(shape[0]), self.since.most - self.since.least + 2
        tops, percentiles = (lines * self.since.sones,), (lines, len(PERCENTS))
        return {
            "top": torch.full(tops, np.nan, dtype=torch.float64),
            "exceeding": torch.full(percentiles, np.nan, dtype=torch.float64),
            # Last, because they are zeros, which an object does not hold.
            "passed": torch.zeros(1, dtype=torch.int64),
            "rise": torch.zeros(lines, 1 + self.rising, dtype=torch.int64),
            "counted": torch.zeros(lines, classes, dtype=torch.int64),
        }


class WithReadings(Fused):
    """A model of loudness with its readings, as one compiled call; comes before its class."""

    calls: ClassVar[Calls]

    def make(self, made: Workspace) -> None:
        super().make(made)
        self.call(made, self.calls, "to_readings")
        counted = self.named["readings"]
        made.keep("numbers", torch.tensor(counted.numbers))
        made.keep("width", torch.tensor(counted.since.rule.width, dtype=torch.float64))
        made.keep("percents", torch.tensor(PERCENTS, dtype=torch.float64))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        super().allocate(workspace, lead, time, state)
        frames = workspace.outputs[-1][-1]
        for name in STATE:
            workspace.memory[f"readings/{name}"] = name, tuple(state[f"readings/{name}"].shape)
        workspace.make("values", torch.float64, frames)
        workspace.make("found", torch.float64, len(PERCENTS), frames)
        workspace.make("more", torch.int64, self.named["readings"].rising)
        (tops,), counted = state["readings/top"].shape, state["readings/exceeding"].shape
        shapes = (*[(tops, frames)] * 3, *[(*counted, frames)] * 2)
        own = [one for one in zip(GIVEN, shapes, strict=True) if one[0] in self.output._fields]
        for name, shape in own:
            workspace.expect(name, *shape)
            workspace.outputs += (shape,)

    def run(self, workspace: Workspace) -> Outputs:
        return Fused.run(self, workspace)


class LoudnessMeter(PlanOnly):
    """A model of loudness of one listener with its readings; comes before the model's class.

    All is measured from the first sample on.
    """

    fused: ClassVar[type[WithReadings]]
    since: ClassVar[Since]

    def __init__(self, fs: int) -> None:
        super().__init__(fs)  # type: ignore[call-arg]  # of the model's class
        self.out_time_dim = self.fused.output(*[-1] * len(self.fused.output._fields))

    @property
    def _counted(self) -> _SinceState:
        return _SinceState(self.since, math.ceil(self.latency * self.ratio))

    def parts(self) -> dict[str, Any]:
        return {**super().parts(), "readings": self._counted}

    def initial_state(self, shape: Shape) -> State:
        state = self._counted.initial_state(super().out_shape(shape))
        return super().initial_state(shape) | prefixed("readings", state)
