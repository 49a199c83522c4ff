"""Loudness from spectral components in one or two compiled calls."""

from fractions import Fraction
from math import prod

import torch
from torch import Tensor

from amt_stream.dsp.functional import component_loudness
from amt_stream.dsp.functional.component_loudness import (
    AT,
    CALLS,
    by_groups_to_loudness,
    to_density,
    to_loudness,
)
from amt_stream.dsp.functional.excitation import Filters
from amt_stream.dsp.functional.group_skirts import SILENCE, Groups
from amt_stream.dsp.functional.loudness import Channels
from amt_stream.dsp.fused import Fused, HostOutput, Workspace
from amt_stream.dsp.stages.ear import EarFilter, Field, Phase
from amt_stream.dsp.stages.moore.excitation import CAM_STEP, PRODUCTS
from amt_stream.dsp.stages.moore.integration import FRAME_RATE
from amt_stream.dsp.stages.moore.loudness import BINAURAL, BinauralLoudness, Glasberg2002Output
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.stages.spectrum import FS, HALVES, HOP, RunningSpectrum
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State


def front_end(
    fs: int, field: Field, ear_filter: Phase, spectrum: RunningSpectrum
) -> tuple[dict[str, Stage], int]:
    """Stages from sound at `fs` Hz to its spectrum, and the number of frames before time 0."""
    front: dict[str, Stage] = {} if fs == FS else {"resample": Resample(fs, FS)}
    front |= {"ear": EarFilter(FS, field, ear_filter), "spectrum": spectrum}
    rates = {"resample": Fraction(fs), "ear": Fraction(FS), "spectrum": Fraction(FS)}
    lag = sum(stage.latency / rates[name] for name, stage in front.items()) * FRAME_RATE
    # An integer, because the delay of each filter is a whole number of milliseconds.
    return front, int(lag)


PASTS = {"ear/spectra": "before_lines", "spectrum/past": "before_spectrum"}
"""State of the filters, and its rows in the plan."""


class ByComponents(Fused):
    """`front_end`, `Excitation` and a loudness stage."""

    home = component_loudness.__name__
    rows = AT
    axes = 2
    first_output = "stl"
    host_outputs = tuple(HostOutput(name, "sone") for name in ("stl", "ltl", "stl_ear", "ltl_ear"))
    gives = True

    def make(self, made: Workspace) -> None:
        self.ear, self.spectrum = self.named["ear"], self.named["spectrum"]
        self.excitation, self.loudness = self.named["excitation"], self.named["loudness"]
        self.binaural = isinstance(self.loudness, BinauralLoudness)
        uncertainty = self.excitation.uncertainty_db
        self.shifts = (0.0,) if uncertainty is None else (-uncertainty, 0.0, uncertainty)
        by_groups = self.excitation.by_groups
        # First, because kernels are compiled in this order and this one takes longest.
        self.call(made, CALLS, "by_groups" if by_groups else "one_by_one")
        self.kernels = (
            (by_groups_to_loudness.__name__,)
            if by_groups
            else (to_density.__name__, to_loudness.__name__)
        )
        self.resample(made, CALLS)
        self.call(made, CALLS, "through_ear")
        self.put_tables(made, self.ear, "partitions", "to_lines", "from_lines")
        self.call(made, CALLS, "to_spectrum", "to_kept", "to_density", "to_high")
        self.call(made, CALLS, "to_shifted")
        self.call(made, CALLS, "to_binaural" if self.binaural else "to_monaural", "to_end")
        made.plan[AT.hop, 0] = HOP
        shifts = [self.shifts, [10 ** (db / 10) for db in self.shifts]]
        numbers = {
            "halves": torch.tensor(HALVES),
            "bins": torch.tensor(self.spectrum.bins),
            "shifts": torch.tensor(shifts, dtype=torch.float64),
            "step": torch.tensor(CAM_STEP, dtype=torch.float64),
        }
        for name, value in numbers.items():
            made.keep(name, value)
        filters = Groups if by_groups else Filters
        smoothing = BINAURAL if self.binaural else ("short_term", "long_term")
        self.put_tables(made, self.spectrum, "cosine", "sine")
        self.put_tables(made, self.excitation, *PRODUCTS, *filters._fields)
        self.put_tables(made, self.loudness, *Channels._fields, *smoothing)

    def suits(self, lead: Shape) -> bool:
        return lead[-1] == 2 or (lead[-1] == 1 and not self.binaural)

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, shifts, ears = prod(lead), len(self.shifts), lead[-1]
        time = self.resampled(workspace, rows, time)
        frames, components = time // HOP, sum(self.spectrum.bins)
        nodes, channels = self.excitation.nodes, self.excitation.fc.shape[0]
        past = {key: state[key].shape[-1] for key in PASTS if key in state}
        workspace.memory |= {key: (PASTS[key], (rows, length)) for key, length in past.items()}

        def make(name: str, *shape: int) -> Tensor:
            return workspace.make(name, self.dtype, *shape)

        workspace.expect("nothing", rows, 0)
        make("to_ear", rows, time)
        make("lines", rows, past["ear/spectra"] + frames * self.ear.partitions.shape[1])
        make("at_cochlea", rows, time)
        make("to_transform", rows, past["spectrum/past"] + time)
        # Components are compared across both ears or within each.
        seen = ears if self.excitation.selection == "binaural" else 1
        compared = (rows // seen, seen, frames, components)
        workspace.put("seen", make("power", rows, frames, components), *compared)
        parts = 1 if shifts == 1 else rows // ears
        lines = rows // parts * frames
        workspace.put("seen_kept", make("kept", parts, lines, components), *compared)
        workspace.put("all_kept", workspace.arrays["kept"], parts * lines, components)
        workspace.put("all_density", make("density", parts, lines, nodes), parts * lines, nodes)
        if not self.excitation.by_groups:
            make("level", parts * shifts, lines, nodes)
        workspace.put("all_high", make("high", parts, lines, channels), parts * lines, channels)
        listeners = rows // ears * shifts
        low = make("low", parts * shifts, lines, channels)
        workspace.put("excitation", low, listeners, ears, frames, channels)
        if self.binaural:
            make("specific", listeners, ears, frames, channels)
        # Smoothing per channel and ear and then per ear, or per ear only.
        short, long = (2 * listeners, channels), (2 * listeners, 1)
        if not self.binaural:
            short = long = (listeners, 2)
        for name, shape in (("before", (listeners,)), ("short", short), ("long", long)):
            workspace.memory[f"loudness/{name}"] = name, shape
        each = (*lead[:-1], *((shifts,) if shifts > 1 else ()))
        workspace.outputs = (*((*each, frames),) * 2, *((*each, 2, frames),) * 2)
        for name in ("stl", "ltl"):
            workspace.expect(name, listeners, frames)
            workspace.expect(f"{name}_ears", listeners, 2, frames)

    def run(self, workspace: Workspace) -> Outputs:
        y = self.outputs(workspace)
        wanted = self._wanted(workspace) if self.binaural else ()
        plan, like = workspace.plan, self.like
        if not self.excitation.by_groups:
            if not to_density(plan, like):
                return None
            self._to_levels(workspace)
        if not self.entry(plan, like):
            return None
        return self.loudness.given(*wanted, *y) if self.binaural else Glasberg2002Output(*y)

    def _to_levels(self, workspace: Workspace) -> None:
        """Compute levels per ERB in dB for the lower skirts, which are computed per component."""
        density, level = workspace.arrays["density"], workspace.arrays["level"].numpy()
        level_db = torch.log10(density.clamp(min=SILENCE)).mul_(10)
        shifted = level.reshape(-1, len(self.shifts), *density.shape[1:])
        for k, db in enumerate(self.shifts):
            shifted[:, k] = (level_db + db if db else level_db).numpy()

    def _wanted(self, workspace: Workspace) -> tuple[Tensor | None, Tensor | None]:
        """New memory for excitation and specific loudness, if the output includes them."""
        excitation = specific = None
        if not (self.loudness.gives_excitation_db or self.loudness.gives_specific_loudness):
            return excitation, specific
        full = (*workspace.outputs[2], self.excitation.fc.shape[0])
        if self.loudness.gives_excitation_db:
            excitation = torch.empty(full, dtype=self.dtype)
            workspace.plan[[AT.low, AT.excitation], 0] = excitation.data_ptr()
        if self.loudness.gives_specific_loudness:
            specific = torch.empty(full, dtype=self.dtype)
            workspace.plan[AT.specific, 0] = specific.data_ptr()
        return excitation, specific
