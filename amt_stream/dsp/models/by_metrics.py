"""The models of a metric of ECMA-418-2:2025 as one compiled call."""

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

import torch

from amt_stream.dsp.functional.ecma418 import sound_to_metrics
from amt_stream.dsp.functional.ecma418.autocorrelation import own
from amt_stream.dsp.functional.ecma418.bands import BANDS
from amt_stream.dsp.functional.ecma418.envelopes import ORDER
from amt_stream.dsp.functional.ecma418.sound_to_metrics import (
    AT,
    CALLS,
    METRICS,
    STATES,
    TABLES,
    to_metric,
)
from amt_stream.dsp.functional.ecma418.tones import NO_ROWS
from amt_stream.dsp.fused import Fused, Workspace
from amt_stream.dsp.streaming import Outputs, Shape, State


class ByMetrics(Fused):
    """`ECMAEarFilter`, bands or envelopes, and what a metric makes of them, after a resampler.

    metric: one of `METRICS`
    form: the type of its output, whose last field has the specific values
    first_output: "value", or "rated" with a frequency or rate
    """

    home = sound_to_metrics.__name__
    kernels = ("to_metric",)
    rows = AT
    metric: ClassVar[str]
    form: ClassVar[Callable[..., Any]]

    def begin_to_compile(self, *also: str) -> None:
        """Nothing: most of the time goes to one kernel, which two processes would both compile."""

    def make(self, made: Workspace) -> None:
        self.over_frames = "tones" if "tones" in self.named else self.metric
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_faded", "to_filtered", "to_ear", *METRICS[self.metric])
        self.put_tables(made, self.named["ear"], "fade", "numerators", "denominators")
        bands = self.named["bands" if "bands" in self.named else "envelopes"]
        self.put_tables(made, bands, "poles", "weights")
        for name in TABLES[self.over_frames][1]:
            (table,) = self.named[self.over_frames].registered(name)
            made.put(f"{self.over_frames}_{name}", table)
        made.keep("no_rows", torch.from_numpy(NO_ROWS))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, kept, late = prod(lead), workspace.memory, 0
        time = self.resampled(workspace, rows, time)
        if "wait" in self.named:
            late = self.named["wait"].samples
            kept["wait/past"] = "before_delay", (rows, late)
            workspace.make("delayed", self.dtype, rows, late + time)
        workspace.expect("sound", rows, late + time)
        kept["ear/begun"] = "faded", (rows,)
        kept["ear/past"] = "past", (rows, *state["ear/past"].shape[-2:])
        workspace.make("inside", torch.float64, rows, time)
        workspace.put("ear_rows", workspace.make("ear", self.dtype, rows, time), rows, 1, time)
        name = self.over_frames
        for key, (first, *shape) in STATES[name][1].items():
            kept[f"{name}/{key}"] = f"{name}_{key}", (rows * first, *shape)
        parts = {"tones": 3, "roughness": 2, "fluctuation": 1}[name]
        if name == "tones":
            kept["bands/u"] = "filters", (rows, 2, ORDER, BANDS)
            workspace.make("bands", self.dtype, rows, BANDS, time)
            for key, array in own.memory._asdict().items():
                workspace.keep(key, torch.from_numpy(array.copy()))
        else:
            kept["envelopes/u"] = "filters", (rows, 2, ORDER, BANDS)
            time = int(time * self.named["envelopes"].ratio)
            workspace.make("envelopes", self.dtype, rows, 2, BANDS, time)
            wide = workspace.make("wide", torch.float64, rows, parts, BANDS, time)
        frames = int(time * self.named[name].ratio)
        values = workspace.make("values", torch.float64, rows, parts, BANDS, frames)
        if name == "fluctuation":
            workspace.put("envelope", wide, rows, BANDS, time)
            workspace.put("slow", values, rows, BANDS, frames)
            workspace.expect("parts", rows, parts, frames, BANDS)
        else:
            workspace.make("parts", self.dtype, rows, parts, frames, BANDS)
        single = ("value",) if self.first_output == "value" else ("rated", "hz")
        for key in single:
            workspace.expect(key, rows, frames)
        workspace.expect("specific", rows, frames, BANDS)
        workspace.expect("rated_specific", rows, frames, BANDS)
        workspace.outputs = *((*lead, frames) for _ in single), (*lead, frames, BANDS)

    def run(self, workspace: Workspace) -> Outputs:
        y = self.outputs(workspace)
        to_metric(workspace.plan, self.like)
        return type(self).form(*y)
