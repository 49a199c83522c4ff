"""Sound levels with their readings, as a plan for programs without Python."""

import sys
from collections import namedtuple

import numpy as np
import torch

from amt_stream.dsp.functional import sound_level
from amt_stream.dsp.functional.compiler.call_table import Calls, TupleOf, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit
from amt_stream.dsp.functional.sound_level import LevelFrames
from amt_stream.dsp.fused import HostOutput, PlanOnly, Workspace
from amt_stream.dsp.stages.levels.sound_level import SoundLevel, SoundLevelFrames
from amt_stream.dsp.streaming import Shape, State
from amt_stream.meters.accumulators import loops
from amt_stream.meters.accumulators.histogram import WIDTH
from amt_stream.meters.accumulators.level import decibels
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.sound_level import (
    FAST,
    FORGOTTEN,
    INTERVALS,
    LEVELS,
    NOW,
    RENEWED,
    RISEN,
    RUNNING,
    SUM,
    TOLD,
    Running,
    exposure_db,
)
from amt_stream.native.exceeded import find_exceeded

TABLES = {"risen": RISEN, "forgotten": FORGOTTEN, "intervals": INTERVALS}
KEPT = tuple(f"kept_{name}" for name in Running._fields)
"""The state of the readings."""

PERCENTILES = "counted", "rise", "exceeding"
"""The state of percentiles: counts of classes, those of the rise, and levels as last renewed."""

LEAST, MOST = round(-50 / WIDTH), round(200 / WIDTH)
"""Classes of levels: lower ones count as silence, higher ones as infinite."""


MeteredLevels = namedtuple(
    "MeteredLevels", "mean_square last highest lowest impulse peak now measured lae exceeded"
)
"""The fields of `LevelFrames`, and levels in dB after each frame.

now: of the moment, `LEVELS` (..., 9, frame)
measured: since the start, `RUNNING` (..., reading, frame)
lae: (..., frame)
exceeded: A-weighted F in `PERCENTS` of the time (..., 7, frame)
"""


AT = plan_rows(
    " ".join([*sound_level.AT._fields, "now measured lae exceeded to_readings", *TABLES, *KEPT])
    + " taken percents counted rise exceeding valid there since_s powers level more"
)
"""Rows of a plan, by name; the first ones are those of the frames."""

_decibels = cached_njit(nogil=True, error_model="numpy")(decibels)
_exposure_db = cached_njit(nogil=True, error_model="numpy")(exposure_db)


@kernel
def _read(
    frames: LevelFrames,
    taken: Array,
    risen: Array,
    forgotten: Array,
    intervals: Array,
    kept: Running,
    percents: Array,
    counted: Array,
    rise: Array,
    exceeding: Array,
    valid: Array,
    there: Array,
    since_s: Array,
    powers: Array,
    level: Array,
    more: Array,
    now: Array,
    measured: Array,
    lae: Array,
    exceeded: Array,
) -> None:
    """Levels after each frame, as `SoundLevelMeter` calculates them; updates the state."""
    count = lae.shape[1]
    for k in range(count):
        valid[k] = there[k] = True
        since_s[k] = np.inf
    for r in range(lae.shape[0]):
        loops.measure_frames(
            frames.mean_square[r],
            frames.last[r],
            frames.highest[r],
            frames.lowest[r],
            frames.impulse[r],
            frames.peak[r],
            valid,
            there,
            since_s,
            FRAME_S,
            taken[0],
            risen,
            forgotten,
            intervals,
            False,
            kept.sums[r],
            kept.counts[r],
            kept.highest[r],
            kept.lowest[r],
            kept.peak[r],
            kept.impulse[r],
            kept.intervals[r],
            powers,
        )
        for k in range(count):
            for i in range(now.shape[1]):
                now[r, i, k] = _decibels(powers[NOW + i, k])
            for i in range(measured.shape[1]):
                measured[r, i, k] = _decibels(powers[i, k])
            lae[r, k] = _exposure_db(_decibels(powers[0, k]), powers[SUM + 1, k])
            level[k] = _decibels(powers[FAST, k])
        find_exceeded(
            level,
            taken[0] + 1,
            risen[0],
            RENEWED,
            WIDTH,
            LEAST,
            MOST,
            percents,
            counted[r],
            rise[r],
            exceeding[r],
            more,
            exceeded[r],
        )
    taken[0] += count


CALLS = Calls(AT, sound_level.CALLS)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _b = CALLS.arguments

_to_readings = CALLS.add(
    "to_readings",
    _read,
    TupleOf(LevelFrames, _a(3, *LevelFrames._fields)),
    *_i(1, "taken", *TABLES),
    TupleOf(Running, tuple(_d(2 if name == "kept_counts" else 3, name)[0] for name in KEPT)),
    *(*_d(1, "percents"), *_i(2, "counted", "rise"), *_d(2, "exceeding")),
    *(*_b(1, "valid", "there"), *_d(1, "since_s"), *_d(2, "powers")),
    *(*_d(1, "level"), *_i(1, "more")),
    *(*_a(3, "now", "measured"), *_a(2, "lae"), *_a(3, "exceeded")),
)


@kernel
def to_frames(plan: Array, like: Array) -> None:
    """Sound to frames and levels; like: any array of the sound's dtype."""
    sound_level.to_frames(plan, like)
    _to_readings(plan, like)


class MeteredSoundLevel(SoundLevelFrames):
    """`LevelMeter` as one compiled call."""

    functions = sys.modules[__name__]
    output = MeteredLevels
    fields = MeteredLevels._fields
    host_outputs = (
        *SoundLevelFrames.host_outputs,
        HostOutput("", "dB", (LEVELS,)),
        HostOutput("", "dB", (tuple(name.removesuffix("_db") for name in RUNNING),)),
        HostOutput("lae", "dB"),
        HostOutput("", "dB", (tuple(f"laf{percent}" for percent in PERCENTS),)),
    )

    def make(self, made: Workspace) -> None:
        super().make(made)
        for name, table in TABLES.items():
            made.keep(name, torch.from_numpy(table))
        made.keep("percents", torch.tensor(PERCENTS, dtype=torch.float64))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        super().allocate(workspace, lead, time, state)
        frames = workspace.outputs[0][-1]
        for name in ("taken", *KEPT, *PERCENTILES):
            workspace.memory[name] = name, tuple(state[name].shape)
        for name in ("valid", "there"):
            workspace.make(name, torch.bool, frames)
        workspace.make("since_s", torch.float64, frames)
        workspace.make("powers", torch.float64, TOLD, frames)
        workspace.make("level", torch.float64, frames)
        workspace.make("more", torch.int64, int(RISEN[0]))


class LevelMeter(PlanOnly, SoundLevel):
    """`SoundLevel` with the levels of `SoundLevelMeter` after each frame, for a sound (row, time).

    All channels are measured from the first sample on.
    """

    fused = MeteredSoundLevel
    out_time_dim = MeteredLevels(*[-1] * len(MeteredLevels._fields))  # type: ignore[assignment]

    def initial_state(self, shape: Shape) -> State:
        (rows,) = shape
        kept = zip(KEPT, Running.nothing(), strict=True)
        each = {name: torch.from_numpy(np.stack([value] * rows)) for name, value in kept}
        each["exceeding"] = torch.full((rows, len(PERCENTS)), np.nan, dtype=torch.float64)
        # Last, because they are zeros, which an object does not hold.
        sizes = {"taken": (1,), "rise": (rows, int(RISEN[0])), "counted": (rows, MOST - LEAST + 2)}
        zeros = {name: torch.zeros(size, dtype=torch.int64) for name, size in sizes.items()}
        return super().initial_state(shape) | each | zeros

    def out_shape(self, shape: Shape) -> MeteredLevels:  # type: ignore[override]
        frames = super().out_shape(shape)
        sizes = len(LEVELS), len(RUNNING), len(PERCENTS)
        now, measured, exceeded = ((*shape, size) for size in sizes)
        return MeteredLevels(*frames, now, measured, shape, exceeded)
