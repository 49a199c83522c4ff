"""Loudness of the Moore family with its readings, as a plan for programs without Python."""

from collections import namedtuple

import numpy as np
import torch

from amt_stream.dsp.functional import component_loudness
from amt_stream.dsp.functional.compiler.call_table import Calls
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit
from amt_stream.dsp.fused import HostOutput, Workspace
from amt_stream.dsp.models.by_components import ByComponents
from amt_stream.dsp.models.glasberg2002 import Glasberg2002
from amt_stream.dsp.models.moore2016 import Moore2016
from amt_stream.dsp.scales import level_in_table, sone_table
from amt_stream.dsp.streaming import Shape, Shapes
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.rows.models.loudness import LEVEL_RULE
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

HIGHEST = 120
"""The highest loudness level of the tables, in phon."""


MeteredMoore = namedtuple(
    "MeteredMoore", "stl ltl stl_ears ltl_ears phon_now max_sone max_phon exceeded_phon"
)
"""Loudness, and readings since the start.

stl, ltl: (listener, frame)
stl_ears, ltl_ears: (listener, ear, frame)
phon_now, max_sone, max_phon: short-term and long-term (2, frame)
exceeded_phon: long-term level in `PERCENTS` of the time (listener, 7, frame)
"""


AT = readings_rows(component_loudness.AT, "log_sones phons")
"""Rows of a plan, by name; the first ones are those of the frames."""

_phon = cached_njit(nogil=True, error_model="numpy")(level_in_table)


@kernel
def _read(
    stl: Array,
    ltl: Array,
    log_sones: Array,
    phons: Array,
    counting: Counting,
    phon_now: Array,
    max_sone: Array,
    max_phon: Array,
    exceeded_phon: Array,
) -> None:
    """Readings after each frame, as `LoudnessReadings` has them; updates the state."""
    number, count = counting.passed[0] - counting.numbers[0], stl.shape[1]
    top, values = counting.top, counting.values
    for i in range(2):
        sone = ltl[0] if i else stl[0]
        keep_maximum(sone, number, top[i : i + 1], max_sone[i])
        for k in range(count):
            values[k] = max_sone[i, k]
        phon = _phon(values, log_sones, phons)
        for k in range(count):
            max_phon[i, k], values[k] = phon[k], sone[k]
        phon = _phon(values, log_sones, phons)
        for k in range(count):
            phon_now[i, k] = values[k] = phon[k]
    find_percentiles(counting, number, 0)
    for i in range(len(counting.percents)):
        for k in range(count):
            exceeded_phon[0, i, k] = counting.found[i, k]
    counting.passed[0] += count


CALLS = Calls(AT, component_loudness.CALLS)
"""The kernels, by their rows in a plan."""

_a, _, _d, _ = CALLS.arguments

_to_readings = CALLS.add(
    "to_readings",
    _read,
    *(*_a(2, "stl", "ltl"), *_d(1, "log_sones", "phons")),
    *counting_arguments(CALLS),
)


@kernel
def read_components(plan: Array, like: Array) -> bool:
    """Sound to loudness and readings; like: any array of the sound's dtype.

    Returns False if a table does not fit.
    """
    if not component_loudness.by_groups_to_loudness(plan, like):
        return False
    _to_readings(plan, like)
    return True


class MeteredComponents(WithReadings, ByComponents):
    """`MooreMeter` and `GlasbergMeter` as one compiled call."""

    home = __name__
    rows = AT
    calls = CALLS
    output = MeteredMoore
    host_outputs = (
        *ByComponents.host_outputs,
        HostOutput("", "phon", (("stl_phon", "ltl_phon"),)),
        HostOutput("", "sone", (("max_stl", "max_ltl"),)),
        HostOutput("", "phon", (("max_stl_phon", "max_ltl_phon"),)),
        HostOutput("", "phon", (tuple(f"ltl_n{percent}_phon" for percent in PERCENTS),)),
    )

    def make(self, made: Workspace) -> None:
        super().make(made)
        self.kernels = ("read_components",)
        phon, log_sone = sone_table(self.named["readings"].since.edition)
        made.keep("log_sones", torch.from_numpy(np.array(log_sone)))
        made.keep("phons", torch.from_numpy(np.array(phon)))

    def suits(self, lead: Shape) -> bool:
        return super().suits(lead) and lead[:-1] == (1,)


def _since(edition: str) -> Since:
    # The table has no lower or higher levels.
    return Since(2, LEVEL_RULE, 0, round(HIGHEST / LEVEL_RULE.width) + 1, edition)


class _TwoLoudnesses(LoudnessMeter):
    """Short-term and long-term loudness, with the percentiles of the latter's level."""

    fused = MeteredComponents

    def out_shape(self, shape: Shape) -> Shapes:
        listeners = shape[:-1]
        ears = (*listeners, 2)
        counted = (*listeners, len(PERCENTS))
        return MeteredMoore(listeners, listeners, ears, ears, (2,), (2,), (2,), counted)


class MooreMeter(_TwoLoudnesses, Moore2016):
    """`Moore2016` with the readings of `LoudnessReadings` after each frame."""

    since = _since(Moore2016.edition)


class GlasbergMeter(_TwoLoudnesses, Glasberg2002):
    """`Glasberg2002` with the readings of `LoudnessReadings` after each frame."""

    since = _since(Glasberg2002.edition)
