"""Zwicker's loudness with its readings, as a plan for programs without Python."""

from collections import namedtuple

import numpy as np

from amt_stream.dsp.functional import zwicker_loudness
from amt_stream.dsp.functional.compiler.call_table import Calls
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit
from amt_stream.dsp.fused import HostOutput, Workspace
from amt_stream.dsp.models.zwicker import ByBands, ZwickerTimeVarying
from amt_stream.dsp.scales import zwicker_level
from amt_stream.dsp.streaming import Shape, Shapes, State
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.statistics import binary_logarithm
from amt_stream.meters.rows.models.zwicker import LOUDNESS
from amt_stream.native.loudness import (
    Counting,
    LoudnessMeter,
    Since,
    WithReadings,
    counting_arguments,
    find_percentiles,
    keep_maximum,
    readings_rows,
)

assert LOUDNESS.rule is not None
RULE = LOUDNESS.rule
LEAST = RULE.least
HIGHEST = 14
"""Louder than 2^14 sone, 180 phon, is infinite."""


MeteredZwicker = namedtuple(
    "MeteredZwicker", "n phon_now max_sone max_phon exceeded_phon exceeded_sone"
)
"""Loudness, and readings since the start.

n, phon_now: (channel, frame)
max_sone, max_phon: (channel, frame)
exceeded_phon, exceeded_sone: in `PERCENTS` of the time (channel, 7, frame)
"""


AT = readings_rows(zwicker_loudness.AT)
"""Rows of a plan, by name; the first ones are those of the frames."""

_compiled = cached_njit(nogil=True, error_model="numpy")
_phon = _compiled(zwicker_level)
_binary_logarithm = _compiled(binary_logarithm)


@kernel
def _read(
    n: Array,
    counting: Counting,
    phon_now: Array,
    max_sone: Array,
    max_phon: Array,
    exceeded_phon: Array,
    exceeded_sone: Array,
) -> None:
    """Readings after each frame, as `ZwickerReadings` has them; updates the state."""
    number, count = counting.passed[0] - counting.numbers[0], n.shape[1]
    top, values, found = counting.top, counting.values, counting.found
    for r in range(n.shape[0]):
        keep_maximum(n[r], number, top[r : r + 1], max_sone[r])
        for k in range(count):
            phon_now[r, k] = _phon(np.float64(n[r, k]))
            max_phon[r, k] = _phon(np.float64(max_sone[r, k]))
            values[k] = _binary_logarithm(n[r, k], n.dtype.type(LEAST))
        find_percentiles(counting, number, r)
        for i in range(len(counting.percents)):
            for k in range(count):
                sone = np.exp2(found[i, k])
                exceeded_sone[r, i, k], exceeded_phon[r, i, k] = sone, _phon(sone)
    counting.passed[0] += count


CALLS = Calls(AT, zwicker_loudness.CALLS)
"""The kernels, by their rows in a plan."""

_a = CALLS.arguments[0]

_to_readings = CALLS.add(
    "to_readings", _read, *_a(2, "n"), *counting_arguments(CALLS), *_a(3, "exceeded_sone")
)


@kernel
def read_bands(plan: Array, like: Array) -> None:
    """Sound to loudness and readings; like: any array of the sound's dtype."""
    zwicker_loudness.to_loudness(plan, like)
    _to_readings(plan, like)


class MeteredBands(WithReadings, ByBands):
    """`ZwickerMeter` as one compiled call."""

    home = __name__
    kernels = ("read_bands",)
    rows = AT
    calls = CALLS
    output = MeteredZwicker
    first_output = "n"
    host_outputs = (
        *ByBands.host_outputs,
        HostOutput("n_phon", "phon"),
        HostOutput("nmax", "sone"),
        HostOutput("nmax_phon", "phon"),
        HostOutput("", "phon", (tuple(f"n{percent}_phon" for percent in PERCENTS),)),
        HostOutput("", "sone", (tuple(f"n{percent}" for percent in PERCENTS),)),
    )

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        super().allocate(workspace, lead, time, state)
        # Core loudness is no output of a program without Python.
        workspace.make("core_out", self.dtype, *workspace.outputs[0])
        workspace.outputs = workspace.outputs[1:]


class ZwickerMeter(LoudnessMeter, ZwickerTimeVarying):
    """`ZwickerTimeVarying` with the readings of `ZwickerReadings` after each frame (channel, time).

    Each channel is measured on its own.
    """

    fused = MeteredBands
    since = Since(1, RULE, round(RULE.low / RULE.width), round(HIGHEST / RULE.width))

    def out_shape(self, shape: Shape) -> Shapes:
        exceeded = (*shape, len(PERCENTS))
        return MeteredZwicker(shape, shape, shape, shape, exceeded, exceeded)
