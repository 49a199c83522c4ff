"""Loudness by spectral components in one go."""

from math import prod
from typing import Any

import torch
from torch import Tensor

from amt_stream.functional import component_loudness
from amt_stream.functional.component_loudness import AT, CALLED, to_density, to_loudness
from amt_stream.functional.excitation import Filters
from amt_stream.functional.group_skirts import SILENCE, Groups
from amt_stream.functional.loudness import Channels
from amt_stream.models.fused import Fused, Room
from amt_stream.stages.excitation import CAM_STEP, PRODUCTS
from amt_stream.stages.loudness import BINAURAL, BinauralLoudness, Glasberg2002Output
from amt_stream.stages.spectrum import HALVES, HOP
from amt_stream.streaming import Shape, State

PASTS = {
    "ear/past": "before_ear",
    "ear/slow": "before_tail",
    "spectrum/past": "before_spectrum",
}
"""State of the filters, by its row in a plan."""


class ByComponents(Fused):
    """`front_end`, `Excitation` and its loudness."""

    home = component_loudness.__name__
    kernels = ("to_density", "to_loudness")
    rows = AT
    axes = 2

    def make(self, made: Room) -> None:
        self.ear, self.spectrum = self.named["ear"], self.named["spectrum"]
        self.excitation, self.loudness = self.named["excitation"], self.named["loudness"]
        self.binaural = isinstance(self.loudness, BinauralLoudness)
        uncertainty = self.excitation.uncertainty_db
        self.shifts = (0.0,) if uncertainty is None else (-uncertainty, 0.0, uncertainty)
        by_groups = self.excitation.by_groups
        self.resample(made, CALLED)
        if self.ear.phase == "minimum":
            self.call(made, CALLED, "through_ear_with_tail")
            self.put_tables(made, self.ear, "taps", "low_pass", "tail")
        else:
            self.call(made, CALLED, "through_ear")
            self.put_tables(made, self.ear, "taps")
        self.call(made, CALLED, "to_spectrum", "to_kept", "to_density", "to_high")
        self.call(made, CALLED, "by_groups" if by_groups else "one_by_one", "to_shifted")
        self.call(made, CALLED, "to_binaural" if self.binaural else "to_monaural", "to_end")
        made.plan[AT.hop, 0] = HOP
        shifts = [self.shifts, [10 ** (db / 10) for db in self.shifts]]
        self.numbers = {
            "halves": torch.tensor(HALVES),
            "bins": torch.tensor(self.spectrum.bins),
            "shifts": torch.tensor(shifts, dtype=torch.float64),
            "step": torch.tensor(CAM_STEP, dtype=torch.float64),
        }
        for name, value in self.numbers.items():
            made.put(name, value)
        filters = Groups if by_groups else Filters
        smoothing = BINAURAL if self.binaural else ("short_term", "long_term")
        self.put_tables(made, self.spectrum, "cosine", "sine")
        self.put_tables(made, self.excitation, *PRODUCTS, *filters._fields)
        self.put_tables(made, self.loudness, *Channels._fields, *smoothing)

    def suits(self, lead: Shape) -> bool:
        return lead[-1] == 2 or (lead[-1] == 1 and not self.binaural)

    def furnish(self, room: Room, lead: Shape, time: int, state: State) -> None:
        rows, shifts, ears = prod(lead), len(self.shifts), lead[-1]
        time = self.resampled(room, rows, time)
        frames, components = time // HOP, sum(self.spectrum.bins)
        nodes, channels = self.excitation.nodes, self.excitation.fc.shape[0]
        past = {key: state[key].shape[-1] for key in PASTS if key in state}
        room.memory |= {key: (PASTS[key], (rows, length)) for key, length in past.items()}

        def make(name: str, *shape: int) -> Tensor:
            return room.make(name, self.dtype, *shape)

        room.expect("nothing", rows, 0)
        make("to_ear", rows, past["ear/past"] + time)
        if self.ear.phase == "minimum":
            make("to_tail", rows, past["ear/slow"] + time // self.ear.block_size)
        make("heard", rows, time)
        make("to_transform", rows, past["spectrum/past"] + time)
        # Components are compared with those of which ears: of both, or of the same.
        seen = ears if self.excitation.selection == "binaural" else 1
        compared = (rows // seen, seen, frames, components)
        room.put("seen", make("power", rows, frames, components), *compared)
        parts = 1 if shifts == 1 else rows // ears
        lines = rows // parts * frames
        room.put("seen_kept", make("kept", parts, lines, components), *compared)
        room.put("all_kept", room.arrays["kept"], parts * lines, components)
        room.put("all_density", make("density", parts, lines, nodes), parts * lines, nodes)
        if not self.excitation.by_groups:
            make("level", parts * shifts, lines, nodes)
        room.put("all_high", make("high", parts, lines, channels), parts * lines, channels)
        listeners = rows // ears * shifts
        low = make("low", parts * shifts, lines, channels)
        room.put("excitation", low, listeners, ears, frames, channels)
        if self.binaural:
            make("specific", listeners, ears, frames, channels)
        # A coefficient for each channel and ear and then one for each ear, or one for each ear.
        short, long = (2 * listeners, channels), (2 * listeners, 1)
        if not self.binaural:
            short = long = (listeners, 2)
        for name, shape in (("before", (listeners,)), ("short", short), ("long", long)):
            room.memory[f"loudness/{name}"] = name, shape
        each = (*lead[:-1], *((shifts,) if shifts > 1 else ()))
        room.outputs = (*((*each, frames),) * 2, *((*each, 2, frames),) * 2)
        for name in ("stl", "ltl"):
            room.expect(name, listeners, frames)
            room.expect(f"{name}_ears", listeners, 2, frames)

    def given(self, room: Room) -> Any:
        y = self.outputs(room, AT.stl, AT.ltl, AT.stl_ears, AT.ltl_ears)
        wanted = self._wanted(room, y[2].shape) if self.binaural else ()
        fits = to_density(room.plan, self.like)
        if fits and not self.excitation.by_groups:
            self._told(room)
        if not (fits and to_loudness(room.plan, self.like)):
            return None
        return self.loudness.given(*wanted, *y) if self.binaural else Glasberg2002Output(*y)

    def _told(self, room: Room) -> None:
        """Levels per ERB in dB of what is taken component by component."""
        density, level = room.arrays["density"], room.arrays["level"].numpy()
        told = torch.log10(density.clamp(min=SILENCE)).mul_(10)
        apart = level.reshape(-1, len(self.shifts), *density.shape[1:])
        for k, db in enumerate(self.shifts):
            apart[:, k] = (told + db if db else told).numpy()

    def _wanted(self, room: Room, of_ears: Shape) -> tuple[Tensor | None, Tensor | None]:
        """New memory for the excitation and for specific loudness, where they are given."""
        excitation = specific = None
        full = (*of_ears, self.excitation.fc.shape[0])
        if self.loudness.gives_excitation_db:
            excitation = torch.empty(full, dtype=self.dtype)
            room.plan[[AT.low, AT.excitation], 0] = excitation.data_ptr()
        if self.loudness.gives_specific_loudness:
            specific = torch.empty(full, dtype=self.dtype)
            room.plan[AT.specific, 0] = specific.data_ptr()
        return excitation, specific
