"""Programme loudness with its readings, as a plan for programs without Python."""

from collections import namedtuple
from typing import Any

import numpy as np
import torch

from amt_stream.dsp.functional import programme
from amt_stream.dsp.functional.compiler.call_table import Calls, TupleOf, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.fused import HostOutput, PlanOnly, Workspace
from amt_stream.dsp.stages.levels.bs1770 import BS1770, BS1770Output, ProgrammeFrames
from amt_stream.dsp.streaming import Shape, Shapes, State
from amt_stream.meters.accumulators.gating import (
    NOTHING,
    SHORT_TERM,
    USUAL,
    WINDOWS,
    follow,
    tell_readings,
    window_levels,
)
from amt_stream.meters.accumulators.programme import COLUMNS

UNITS = {"lufs": "LUFS", "lu": "LU", "dbtp": "dBTP", "dbfs": "dBFS"}

PAST = SHORT_TERM - 1
"""Frames before a block that its readings need."""


LufsReadings = namedtuple("LufsReadings", COLUMNS)  # type: ignore[misc]
"""The readings of `COLUMNS` after each frame, each (row, frame)."""

MeteredOutput = namedtuple("MeteredOutput", BS1770Output._fields + COLUMNS)  # type: ignore[misc]
"""The fields of `BS1770Output` and of `LufsReadings`."""

AT = plan_rows(
    " ".join([*programme.AT._fields, *COLUMNS])
    # A kernel, a table, the state, and memory.
    + " to_readings renewed before counted running counts sums energies means levels told found"
)
"""Rows of a plan, by name; the first ones are those of the frames."""


@kernel
def _read(
    frames: BS1770Output,
    renewed: Array,
    before: Array,
    counted: Array,
    running: Array,
    counts: Array,
    sums: Array,
    energies: Array,
    means: Array,
    levels: Array,
    told: Array,
    found: Array,
    readings: Any,
) -> None:
    """Readings after each frame, as `ProgrammeLoudness` calculates them; updates the state."""
    past, count = before.size, frames.energy.shape[1]
    for k in range(past):
        energies[k] = before[k]
    for k in range(count):
        energies[past + k] = frames.energy[0, k]
    for k in range(past):
        before[k] = energies[count + k]
    window_levels(energies, means, levels)
    gated = (counts[0], sums[0]), (counts[1], sums[1])
    paused, grows = False, False
    follow(
        0,
        energies[past:],
        means,
        levels,
        frames.true_peak,
        frames.sample_peak,
        paused,
        grows,
        renewed,
        gated,
        counted,
        running,
        told,
    )
    tell_readings(levels, told, found)
    for i in range(len(readings)):
        for k in range(count):
            readings[i][0, k] = found[i, k]


CALLS = Calls(AT, programme.CALLS)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _b = CALLS.arguments

_to_readings = CALLS.add(
    "to_readings",
    _read,
    TupleOf(BS1770Output, _a(2, *BS1770Output._fields)),
    *(*_b(1, "renewed"), *_d(1, "before"), *_i(1, "counted"), *_d(1, "running")),
    *(*_i(2, "counts"), *_d(2, "sums"), *_d(1, "energies")),
    *_d(2, "means", "levels", "told", "found"),
    TupleOf(LufsReadings, _a(2, *COLUMNS)),
)


@kernel
def to_readings(plan: Array, like: Array) -> None:
    """Sound to frames and readings; like: any array of the sound's dtype."""
    programme.to_frames(plan, like)
    _to_readings(plan, like)


class MeteredProgramme(ProgrammeFrames):
    """`ProgrammeMeter` as one compiled call."""

    home = __name__
    kernels = ("to_readings",)
    rows = AT
    host_outputs = (
        *ProgrammeFrames.host_outputs,
        *(HostOutput(name, UNITS[unit]) for name, unit in (c.rsplit("_", 1) for c in COLUMNS)),
    )
    output = MeteredOutput

    def make(self, made: Workspace) -> None:
        super().make(made)
        self.call(made, CALLS, "to_readings")
        made.keep("renewed", torch.ones(2, dtype=torch.bool))

    def suits(self, lead: Shape) -> bool:
        return super().suits(lead) and lead == (1, self.channels)

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        super().allocate(workspace, lead, time, state)
        frames = workspace.outputs[0]
        for name in ("before", "counted", "running", "counts", "sums"):
            workspace.memory[name] = name, tuple(state[name].shape)
        workspace.make("energies", torch.float64, PAST + frames[-1])
        sizes = {"means": len(WINDOWS), "levels": len(WINDOWS)}
        for name, size in (sizes | {"told": len(NOTHING), "found": len(COLUMNS)}).items():
            workspace.make(name, torch.float64, size, frames[-1])
        for name in COLUMNS:
            workspace.expect(name, *frames)
        workspace.outputs += (frames,) * len(COLUMNS)


class ProgrammeMeter(PlanOnly, BS1770):
    """`BS1770` of one listener with the readings of `ProgrammeLoudness` after each frame.

    Blocks louder than 10 LUFS count in the highest class of the loudness
    range; their energies count as they are.
    """

    fused = MeteredProgramme
    out_time_dim = MeteredOutput(*[-1] * len(MeteredOutput._fields))  # type: ignore[assignment]

    def initial_state(self, shape: Shape) -> State:
        classes = 2, USUAL
        return super().initial_state(shape) | {
            "before": torch.full((PAST,), np.nan, dtype=torch.float64),
            "running": torch.from_numpy(NOTHING.copy()),
            # Last, because they are zeros, which an object does not hold.
            "counted": torch.zeros(5, dtype=torch.int64),
            "counts": torch.zeros(classes, dtype=torch.int64),
            "sums": torch.zeros(classes, dtype=torch.float64),
        }

    def out_shape(self, shape: Shape) -> Shapes:
        frames = super().out_shape(shape)
        return MeteredOutput(*frames, *[frames.energy] * len(COLUMNS))
