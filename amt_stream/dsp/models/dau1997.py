"""The auditory model of Dau, Kollmeier & Kohlrausch (1997)."""

from math import prod
from typing import Any, ClassVar

import torch

from amt_stream.dsp.functional import sound_to_modulation
from amt_stream.dsp.functional.modulation import OnePoles
from amt_stream.dsp.functional.sound_to_modulation import AT, CALLS, ORDER
from amt_stream.dsp.fused import Fused, FusedChain, HostOutput, Workspace
from amt_stream.dsp.models.auditory import Arguments, ModulationModel, make_stage
from amt_stream.dsp.stages.adaptation import AdaptLoop
from amt_stream.dsp.stages.gammatone import GammatoneFilterbank
from amt_stream.dsp.stages.hair_cell import IHCEnvelope
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State


class ByFilters(Fused):
    """`GammatoneFilterbank`, `IHCEnvelope`, `AdaptLoop` and a one-pole `ModulationFilterbank`.

    Not learnable, with gammatone order 4 and no low-pass before the modulation filterbank.
    """

    home = sound_to_modulation.__name__
    kernels = ("to_modulation",)
    rows = AT
    first_output = "y"
    host_outputs = (HostOutput("modulation", "model units"),)

    def make(self, made: Workspace) -> None:
        bands, cells = self.named["filterbank"], self.named["ihc"]
        loops, bank = self.named["adaptation"], self.named["modulation"]
        one_poles = bank.filter_type == "efilt" and not bank.use_lp150_prefilter
        learns = any(stage.learnable for stage in self.named.values())
        self.serves = bands.n == ORDER and one_poles and not learns
        if not self.serves:
            return
        self.call(made, CALLS, *CALLS)
        made.plan[AT.rectify, 0] = 1
        made.put("coefficients", bands.fixed)
        made.make("factor", torch.float64, 1).fill_(2.0)
        made.put("cutoff", cells.gain, 1)
        for name in ("floor", "rates", "corr", "mult"):
            table = getattr(loops, name)
            made.put(name, table, table.numel())
        channels = loops.overshoot.numel() // loops.num_loops if loops.limited else 0
        made.put("most", loops.overshoot, channels, loops.num_loops)
        low, delta, gain = bank.registered("low", *OnePoles._fields)
        made.put("low", low)
        made.put("delta", delta)
        made.put("gain", gain, gain.numel(), 1)
        self.put_tables(made, bank, "scale", "envelope", "counts")

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, channels = prod(lead), self.named["filterbank"].num_channels
        lines, filters = rows * channels, len(self.named["modulation"].centers)
        kept = {
            "filterbank/u": ("filters", (rows, 2, ORDER, channels)),
            "ihc/low": ("low_passes", (lines, self.named["ihc"].iterations)),
            "adaptation/loops": ("loops", (lines, self.named["adaptation"].num_loops, 2)),
            "modulation/low": ("first", (lines, 2)),
            "modulation/bands": ("bands", (lines, 2 * (filters - 1))),
        }
        workspace.memory.update(kept)
        workspace.expect("sound", rows, 1, time)
        workspace.put(
            "lines", workspace.make("moved", self.dtype, rows, channels, time), lines, time
        )
        workspace.expect("y", lines, filters, time)
        workspace.outputs = ((*lead, channels, filters, time),)

    def run(self, workspace: Workspace) -> Outputs:
        (y,) = self.outputs(workspace)
        self.entry(workspace.plan, self.like)
        return y


class Dau1997(ModulationModel, FusedChain):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters, one list entry per band.

    Gammatone filters, hair cells, adaptation loops with overshoot limit 10, and modulation filters
    up to 150 Hz (Dau, Puschel & Kohlrausch 1996; Dau, Kollmeier & Kohlrausch 1997).

    fs: sampling rate in Hz
    flow, fhigh: lowest and highest center frequency in Hz; bands about 1 ERB apart
    filterbank_kwargs, ...: arguments of the stages, overriding those above

    Causal, with latency 0; its filters' group delay is part of the model. Raises ValueError if a
    stage refuses its arguments.
    """

    fused = ByFilters

    _shown: ClassVar = {"filterbank": "filterbank", "ihc": "ihc", "adaptation": "adaptation"}
    # Four time constants of the slowest adaptation loop.
    settle_s = 2.0

    def __init__(
        self,
        fs: float,
        flow: float = 80.0,
        fhigh: float = 8000.0,
        learnable: bool = False,
        return_stages: bool = False,
        dtype: torch.dtype = torch.float32,
        filterbank_kwargs: Arguments = None,
        ihc_kwargs: Arguments = None,
        adaptation_kwargs: Arguments = None,
        modulation_kwargs: Arguments = None,
    ) -> None:
        common: dict[str, Any] = {"fs": fs, "learnable": learnable, "dtype": dtype}
        bands = make_stage(GammatoneFilterbank, filterbank_kwargs, fc=(flow, fhigh), **common)
        filters = {"fc": bands.design("centers"), "preset": "dau1997", **common}
        stages: dict[str, Stage] = {
            "filterbank": bands,
            "ihc": make_stage(IHCEnvelope, ihc_kwargs, method="dau1996", **common),
            "adaptation": make_stage(AdaptLoop, adaptation_kwargs, preset="dau1997", **common),
            "modulation": make_stage(ModulationFilterbank, modulation_kwargs, **filters),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
