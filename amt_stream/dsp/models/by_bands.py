"""Zwicker loudness as one compiled call."""

from math import prod

import torch

from amt_stream.dsp.functional import zwicker_loudness
from amt_stream.dsp.functional.zwicker import POINTS, STEP, Cores
from amt_stream.dsp.functional.zwicker_loudness import AT, CALLS, EVERY, to_loudness
from amt_stream.dsp.models.fused import Fused, Workspace
from amt_stream.dsp.stages.zwicker import BANDS, CENTERS, ZwickerOutput
from amt_stream.dsp.streaming import Outputs, Shape, State


class ByBands(Fused):
    """`ThirdOctaveLevels`, `CoreLoudness` and `ZwickerLoudness`, after an optional resampler."""

    home = zwicker_loudness.__name__
    kernels = ("to_loudness",)
    rows = AT

    def make(self, made: Workspace) -> None:
        self.loudness = self.named["loudness"]
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_powers", "to_levels", "to_cores", "to_decayed", "to_total")
        self.call(made, CALLS, "to_weighted", "to_end", "to_specific")
        self.put_tables(made, self.named["levels"], "poles", "gain", "smoothing")
        self.put_tables(made, self.named["core"], *Cores._fields)
        self.put_tables(made, self.loudness, "decay", "weighting", "upper", "floors", "slopes")

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, bands = prod(lead), CENTERS.size
        frames = self.resampled(workspace, rows, time) // STEP
        lines, shown = rows * frames, frames // EVERY
        workspace.memory["levels/filters"] = "filters", (rows, *state["levels/filters"].shape[-2:])
        workspace.memory["loudness/cores"] = "cores", (rows, 3, BANDS)
        workspace.memory["loudness/low_passes"] = "low_passes", (rows, 2)
        workspace.memory["loudness/begun"] = "begun", (rows,)
        workspace.expect("in_frames", rows, frames, STEP)
        workspace.make("powers", torch.float64, rows, frames, bands)
        workspace.make("levels", self.dtype, lines, bands)
        for name, as_lines in (("core", "core_lines"), ("decayed", "decayed_lines")):
            made = workspace.make(name, self.dtype, rows, frames, BANDS)
            workspace.put(as_lines, made, lines, BANDS)
        workspace.put("total_lines", workspace.make("total", self.dtype, rows, frames), lines)
        workspace.make("weighted", self.dtype, rows, frames)
        workspace.expect("no_samples", lines, 0)
        workspace.expect("n", rows, shown)
        workspace.expect("core_out", rows, shown, BANDS)
        workspace.expect("core_out_lines", rows * shown, BANDS)
        workspace.outputs = (*lead, shown), (*lead, shown, BANDS)
        if self.loudness.gives_specific_loudness:
            workspace.make("total_out", self.dtype, rows * shown)
            workspace.expect("specific", rows * shown, POINTS)
            workspace.outputs = *workspace.outputs, (*lead, shown, POINTS)

    def run(self, workspace: Workspace) -> Outputs:
        n, core, *specific = self.outputs(workspace, AT.n)
        to_loudness(workspace.plan, self.like)
        return ZwickerOutput(n, specific[0] if specific else None, core)
