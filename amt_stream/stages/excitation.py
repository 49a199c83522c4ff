"""Excitation pattern of the auditory filters, with the level-dependent spread of masking."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.functional.excitation import Filters, banded, lower_skirts, select_components
from amt_stream.scales import erb, erb_number_to_hz, hz_to_erb_number
from amt_stream.stages.spectrum import component_frequencies, components_per_window
from amt_stream.streaming import Shape, Stage, State

Accuracy = Literal["exact", "grouped"]
Selection = Literal["binaural", "monaural"]

CAM_STEP = 0.25
CAMS = 1.75 + CAM_STEP * np.arange(150)
"""ERB numbers of the channels."""

GROUPED = (1, 1, 1, 1, 2, 4)
"""Components taken as one for the lower skirts, for each window, when accuracy is "grouped"."""

NEGLIGIBLE = 30
"""p |g| from which a weight is left out: it could move a level by 3e-6 dB."""


PRODUCTS = ("levels", "levels_blocks", "upper", "upper_blocks")
"""Tables of the two banded products of `Excitation`."""


def roex(f: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Weights (center, f) of symmetric rounded-exponential filters (ANSI S3.4-2007, 3.5)."""
    g = (f - center[:, None]) / center[:, None]
    z = 4 * center[:, None] / erb(center[:, None]) * np.abs(g)
    return np.where((g <= 4) & (z < NEGLIGIBLE), (1 + z) * np.exp(-z), 0.0)


def row_blocks(matrix: np.ndarray, rows: int = 80) -> np.ndarray:
    """Blocks `first, last, from, to` of rows, and the columns in which each is not zero."""
    blocks = []
    for first in range(0, matrix.shape[0], rows):
        used = np.flatnonzero(matrix[first : first + rows].any(axis=0))
        start = stop = 0
        if used.size:
            # Whole vector registers, so that no loop has a remainder.
            start, stop = used[0] // 16 * 16, min(-(-(used[-1] + 1) // 16) * 16, matrix.shape[1])
        blocks.append((first, min(first + rows, matrix.shape[0]), start, stop))
    return np.array(blocks)


class Excitation(Stage):
    """Intensities (..., ear, frame, 960) to excitation (..., ear, frame, 150), ratios re 0 dB.

    accuracy: "grouped" joins neighboring components above 2.5 kHz and interpolates their levels:
        loudness within 0.05 phon, but a single channel may be 0.8 dB off
    selection: components 60 dB or more below the strongest count for nothing: that of either ear
        in "binaural" hearing, of the same ear in "monaural"
    frequency: of the components in Hz, ascending, if they are not those of `RunningSpectrum`
    uncertainty_db: of the sound's level; the excitation is then (..., 3, ear, frame, 150), for that
        much less, for the level as it is, and for that much more
    cams: ERB numbers of the channels, ascending, if they are not the 150 from 1.75 to 39

    Raises ValueError for unknown words, frequencies and ERB numbers that do not ascend or cannot be
    grouped, and an uncertainty outside 0 to 20 dB.
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity = out_quantity = "power"

    levels: Tensor
    levels_blocks: Tensor
    node: Tensor
    weight: Tensor
    upper: Tensor
    upper_blocks: Tensor
    frequency: Tensor
    fc: Tensor
    slope: Tensor
    groups: Tensor
    groups_below: Tensor
    components_below: Tensor

    def __init__(
        self,
        accuracy: Accuracy = "exact",
        selection: Selection = "binaural",
        frequency: ArrayLike | None = None,
        uncertainty_db: float | None = None,
        cams: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        if uncertainty_db is not None and not 0 <= uncertainty_db <= 20:
            raise ValueError(f"uncertainty_db is {uncertainty_db}: give 0 to 20 dB, or None")
        if accuracy not in ("exact", "grouped"):
            raise ValueError(f"accuracy is {accuracy!r}: give exact or grouped")
        if selection not in ("binaural", "monaural"):
            raise ValueError(f"selection is {selection!r}: give binaural or monaural")
        if (frequency is not None or cams is not None) and accuracy == "grouped":
            raise ValueError(
                "components of given frequency, and those for given channels, are not grouped: "
                "leave accuracy exact"
            )
        f = component_frequencies() if frequency is None else _ascending("frequency", frequency)
        self.accuracy, self.selection = accuracy, selection
        self.fixed_axes = {-3: None, -1: f.size}
        self.uncertainty_db = uncertainty_db
        fc = erb_number_to_hz(CAMS if cams is None else _ascending("cams", cams))
        if accuracy == "exact":
            nodes, node, weight = f, np.arange(f.size), np.zeros(f.size)
            sizes = [1] * f.size
        else:
            # The components below the first channel as they are, then the channels' own grid.
            low = f[f < fc[0]]
            nodes = np.concatenate([low, fc])
            at = np.interp(hz_to_erb_number(f), hz_to_erb_number(nodes), np.arange(nodes.size))
            node = np.minimum(at.astype(np.int64), nodes.size - 2)
            weight = at - node
            sizes = [
                min(size, count - done)
                for count, size in zip(components_per_window(), GROUPED, strict=True)
                for done in range(0, count, size)
            ]
        groups = np.concatenate([[0], np.cumsum(sizes)])
        levels = roex(f, nodes)
        upper = np.where(f >= fc[:, None], roex(f, fc), 0.0)
        self.register_table("levels", levels)
        self.register_table("levels_blocks", row_blocks(levels))
        self.register_table("node", node)
        self.register_table("weight", weight)
        self.register_table("upper", upper)
        self.register_table("upper_blocks", row_blocks(upper))
        self.register_table("frequency", f)
        self.register_table("fc", fc)
        self.register_table("slope", 4 / erb(fc))
        self.register_table("groups", groups)
        self.register_table("groups_below", np.searchsorted(f[groups[1:] - 1], fc))
        self.register_table("components_below", np.searchsorted(f, fc))

    def filters(self) -> Filters:
        """The tables that the lower skirts need."""
        return Filters(*self.registered(*Filters._fields))

    def initial_state(self, shape: Shape) -> State:
        return {}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if self.selection == "binaural":
            kept = select_components(x)
        else:
            # Each ear as the only one of a listener.
            kept = select_components(x.unsqueeze(-3)).squeeze(-3)
        levels, levels_blocks, upper, upper_blocks = self.registered(*PRODUCTS)
        # A component that is not kept has no level; the floor keeps its logarithm finite.
        power = banded(kept, levels, levels_blocks).clamp(min=1e-30)
        level = torch.log10(power).mul_(10)
        if self.accuracy == "grouped":
            level = torch.lerp(level[..., self.node], level[..., self.node + 1], self.weight)
        low = lower_skirts(kept, level, self.filters())
        high = banded(kept, upper, upper_blocks)
        if self.uncertainty_db is None:
            return high + low, state
        # With the level all components change alike, which is a factor, and the lower skirts'
        # steepness. Where all are faint, other ones might be kept: it moves no loudness by more
        # than 1e-4 sone, and the two costly products serve all three levels.
        rows = [high + low]
        for db in (-self.uncertainty_db, self.uncertainty_db):
            low = lower_skirts(kept, level + db, self.filters())
            rows.append(10 ** (db / 10) * (high + low))
        return torch.stack([rows[1], rows[0], rows[2]], -4), state

    def out_shape(self, shape: Shape) -> Shape:
        levels = () if self.uncertainty_db is None else (3,)
        return (*shape[:-2], *levels, shape[-2], self.fc.shape[0])


def _ascending(name: str, values: ArrayLike) -> np.ndarray:
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not found.size or not (found[0] > 0 and np.all(np.diff(found) >= 0)):
        raise ValueError(f"{name} is {found}: give numbers above 0 and ascending")
    return found
