"""Loudness after Zwicker in one go."""

from math import prod
from typing import Any

import torch

from amt_stream.functional import zwicker_loudness
from amt_stream.functional.zwicker import POINTS, STEP, Cores
from amt_stream.functional.zwicker_loudness import AT, CALLED, EVERY, to_loudness, to_powers
from amt_stream.models.fused import Fused, Room
from amt_stream.stages.zwicker import BANDS, CENTERS, ZwickerOutput
from amt_stream.streaming import Shape, State


class ByBands(Fused):
    """`ThirdOctaveLevels`, `CoreLoudness` and `ZwickerLoudness`, with a resampler before them."""

    home = zwicker_loudness.__name__
    kernels = ("to_powers", "to_loudness")
    rows = AT

    def make(self, made: Room) -> None:
        self.loudness = self.named["loudness"]
        self.resample(made, CALLED)
        self.call(made, CALLED, "to_powers", "to_cores", "to_decayed", "to_total", "to_weighted")
        self.call(made, CALLED, "to_end", "to_specific")
        self.put_tables(made, self.named["levels"], "poles", "gain", "smoothing")
        self.put_tables(made, self.named["core"], *Cores._fields)
        self.put_tables(made, self.loudness, "decay", "weighting", "upper", "floors", "slopes")

    def furnish(self, room: Room, lead: Shape, time: int, state: State) -> None:
        rows, bands = prod(lead), CENTERS.size
        frames = self.resampled(room, rows, time) // STEP
        lines, told = rows * frames, frames // EVERY
        room.memory["levels/filters"] = "filters", (rows, *state["levels/filters"].shape[-2:])
        room.memory["loudness/cores"] = "cores", (rows, 3, BANDS)
        room.memory["loudness/low_passes"] = "low_passes", (rows, 2)
        room.memory["loudness/begun"] = "begun", (rows,)
        room.expect("in_frames", rows, frames, STEP)
        room.make("powers", torch.float64, rows, frames, bands)
        room.make("levels", self.dtype, lines, bands)
        for name, as_lines in (("core", "core_lines"), ("decayed", "decayed_lines")):
            made = room.make(name, self.dtype, rows, frames, BANDS)
            room.put(as_lines, made, lines, BANDS)
        room.put("total_lines", room.make("total", self.dtype, rows, frames), lines)
        room.make("weighted", self.dtype, rows, frames)
        room.expect("no_samples", lines, 0)
        room.expect("n", rows, told)
        room.expect("told", rows, told, BANDS)
        room.expect("told_lines", rows * told, BANDS)
        room.outputs = (*lead, told), (*lead, told, BANDS)
        if self.loudness.gives_specific_loudness:
            room.make("told_total", self.dtype, rows * told)
            room.expect("specific", rows * told, POINTS)
            room.outputs = *room.outputs, (*lead, told, POINTS)

    def given(self, room: Room) -> Any:
        n, told, *specific = self.outputs(room, AT.n, AT.told, AT.specific)
        to_powers(room.plan, self.like)
        powers = room.arrays["powers"]
        # As `levels` does it, on memory that is there.
        torch.log10(powers.add_(1e-12).div_(4e-10), out=powers).mul_(10)
        room.arrays["levels"].copy_(powers.view(-1, powers.shape[-1]))
        to_loudness(room.plan, self.like)
        return ZwickerOutput(n, specific[0] if specific else None, told)
