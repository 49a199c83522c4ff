"""The models of ECMA-418-2:2025 as one compiled call."""

from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar

import torch

from amt_stream.dsp.functional.ecma418 import sound_to_metrics
from amt_stream.dsp.functional.ecma418.autocorrelation import own
from amt_stream.dsp.functional.ecma418.bands import BANDS
from amt_stream.dsp.functional.ecma418.envelopes import ORDER, STEP
from amt_stream.dsp.functional.ecma418.modulation import FRAME
from amt_stream.dsp.functional.ecma418.sound_to_metrics import (
    AT,
    CALLS,
    METRICS,
    OUTPUTS,
    STATES,
    TABLES,
)
from amt_stream.dsp.functional.ecma418.tones import NO_ROWS
from amt_stream.dsp.fused import Fused, Workspace
from amt_stream.dsp.streaming import Shape, State

OVER_FRAMES = {"to_tones": "tones", "to_rough": "roughness", "to_fluctuation": "fluctuation"}
"""Stages over frames, by their kernels."""


class ByMetrics(Fused):
    """`ECMAEarFilter`, bands or envelopes, and what a metric makes of them, after a resampler.

    metric: one of `METRICS`
    inside: places of stages that are in others
    """

    home = sound_to_metrics.__name__
    kernels: tuple[str, ...] = ("to_metric",)
    rows = AT
    metric: ClassVar[str]
    inside: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def begin_to_compile(self, *also: str) -> None:
        """Nothing: most of the time goes to one kernel, which two processes would both compile."""

    def place(self, name: str) -> str:
        return self.inside.get(name, name)

    def stage(self, name: str) -> Any:
        first, *rest = self.place(name).split("/")
        return self.named[first].get_submodule(".".join(rest))

    def make(self, made: Workspace) -> None:
        self.first_output = OUTPUTS[self.metric][0]
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_faded", "to_filtered", "to_ear", *METRICS[self.metric])
        self.put_tables(made, self.named["ear"], "fade", "numerators", "denominators")
        if "to_bands" in self.called:
            self._put(made, "bands", ("poles", "weights"), "")
        if "to_envelopes" in self.called:
            self._put(made, "envelopes", ("poles", "weights"), "envelope_")
        for call, name in OVER_FRAMES.items():
            if call in self.called:
                self._put(made, name, TABLES[name][1], f"{name}_")
        made.keep("no_rows", torch.from_numpy(NO_ROWS))

    def _put(self, made: Workspace, stage: str, names: Iterable[str], prefix: str) -> None:
        """Put tables of a stage into the rows of the same names after `prefix`."""
        for name in names:
            (table,) = self.stage(stage).registered(name)
            made.put(prefix + name, table)

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows = prod(lead)
        time = self._to_ear(workspace, rows, time, state)
        if "to_tones" in self.called:
            frames = self._to_tones(workspace, rows, time)
        else:
            frames = self._to_envelopes(workspace, rows, time) // FRAME
            self._to_modulation(workspace, rows, frames, self.metric)
        self._expect_outputs(workspace, lead, frames)

    def _to_ear(self, workspace: Workspace, rows: int, time: int, state: State) -> int:
        """Allocate for all that is before the bands; returns the number of samples there."""
        kept, late = workspace.memory, 0
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
        return time

    def _to_tones(self, workspace: Workspace, rows: int, time: int) -> int:
        """Allocate for tones and noise; returns the number of frames."""
        workspace.memory[f"{self.place('bands')}/u"] = "filters", (rows, 2, ORDER, BANDS)
        workspace.make("bands", self.dtype, rows, BANDS, time)
        for key, array in own.memory._asdict().items():
            workspace.keep(key, torch.from_numpy(array.copy()))
        self._keep_state(workspace, "tones", rows)
        frames = int(time * self.stage("tones").ratio)
        workspace.make("values", torch.float64, rows, 3, BANDS, frames)
        workspace.make("parts", self.dtype, rows, 3, frames, BANDS)
        return frames

    def _to_envelopes(self, workspace: Workspace, rows: int, time: int) -> int:
        """Allocate for envelopes; returns the number of their values."""
        filters = "envelope_filters", (rows, 2, ORDER, BANDS)
        workspace.memory[f"{self.place('envelopes')}/u"] = filters
        workspace.make("envelopes", self.dtype, rows, 2, BANDS, time // STEP)
        return time // STEP

    def _to_modulation(self, workspace: Workspace, rows: int, frames: int, *metrics: str) -> None:
        """Allocate for roughness, fluctuation strength or both."""
        double, rough = torch.float64, "roughness" in metrics
        shape = rows, 2 if rough else 1, BANDS, FRAME * frames
        wide = workspace.make("wide", double, *shape)
        if rough:
            workspace.make("rough_values", double, rows, 2, BANDS, frames)
            workspace.make("rough_parts", self.dtype, rows, 2, frames, BANDS)
        if "fluctuation" in metrics:
            workspace.put("envelope", wide, rows, BANDS, FRAME * frames)
            values = workspace.make("slow_values", double, rows, 1, BANDS, frames)
            workspace.put("slow", values, rows, BANDS, frames)
            workspace.expect("slow_parts", rows, 1, frames, BANDS)
        for name in metrics:
            self._keep_state(workspace, name, rows)

    def _keep_state(self, workspace: Workspace, name: str, rows: int) -> None:
        for key, (first, *shape) in STATES[name][1].items():
            kept = f"{name}_{key}", (rows * first, *shape)
            workspace.memory[f"{self.place(name)}/{key}"] = kept

    def _expect_outputs(self, workspace: Workspace, lead: Shape, frames: int) -> None:
        each = [_frames(name, frames) for name in OUTPUTS[self.metric]]
        for name, shape in zip(OUTPUTS[self.metric], each, strict=True):
            workspace.expect(name, prod(lead), *shape)
        workspace.outputs = tuple((*lead, *shape) for shape in each)


def _frames(output: str, frames: int) -> Shape:
    """The shape of an output without leading axes."""
    return (frames, BANDS) if "specific" in output else (frames,)


class ByAllMetrics(ByMetrics):
    """`ECMAEarFilter`, and all metrics in a stage `metrics`, after a resampler."""

    kernels = ("to_metrics",)
    metric = "all"
    inside = MappingProxyType(
        {
            "bands": "metrics/parts/bands",
            "tones": "metrics/parts/parts",
            "late": "metrics/parts+wait",
            "envelopes": "metrics/modulation/envelopes",
            "held": "metrics/modulation/held",
            "frames": "metrics/modulation/held/frames",
            "roughness": "metrics/modulation/held/frames/roughness",
            "fluctuation": "metrics/modulation/held/frames/fluctuation",
        }
    )

    def begin_to_compile(self, *also: str) -> None:
        # Three kernels take long.
        Fused.begin_to_compile(self, *also)

    def make(self, made: Workspace) -> None:
        super().make(made)
        made.plan[AT.held_late, 0] = self.stage("held").late

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, kept = prod(lead), workspace.memory
        time = self._to_ear(workspace, rows, time, state)
        frames = self._to_tones(workspace, rows, time)
        workspace.put("new_parts", workspace.arrays["parts"])
        workspace.make("late_parts", self.dtype, rows, 3, frames, BANDS)
        kept[f"{self.place('late')}/past"] = (
            "past_parts",
            (rows, 3, self.stage("late").samples, BANDS),
        )
        for name in (*OUTPUTS["loudness"], *OUTPUTS["tonality"]):
            workspace.expect(name, rows, *_frames(name, frames))
        values = self._to_envelopes(workspace, rows, time)
        # One row after the other, with as many frames as may end in a block.
        most = (FRAME - 1 + values) // FRAME
        self._to_modulation(workspace, 1, most, "roughness", "fluctuation")
        for name in (*OUTPUTS["roughness"], *OUTPUTS["fluctuation"]):
            workspace.make(name, self.dtype, 1, *_frames(name, most))
        workspace.put("slow_parts", workspace.arrays["slow_specific"], 1, 1, most, BANDS)
        rated, shown = 2 + BANDS, 3 + 2 * BANDS
        workspace.make("held", self.dtype, 2 + most, shown)
        held, frames_of = self.place("held"), self.place("frames")
        kept[f"{held}/waiting"] = "waiting", (rows, 2, BANDS, FRAME - 1)
        kept[f"{held}/count"] = "begun", (rows,)
        kept[f"{held}/last"] = "last", (rows, 2, shown)
        wait = self.stage("frames").wait.samples
        kept[f"{frames_of}/late"] = "past_rough", (rows, wait, rated)
        self._expect_outputs(workspace, lead, frames)
