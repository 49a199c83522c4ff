"""Excitation pattern of the auditory filters, with level-dependent spread of masking."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.dsp.functional.banded import band_blocks, banded, filled_up
from amt_stream.dsp.functional.excitation import Filters, lower_skirts, select_components
from amt_stream.dsp.functional.group_skirts import PER_HZ, SILENCE, Groups, group_skirts
from amt_stream.dsp.scales import erb, erb_number_to_hz, hz_to_erb_number
from amt_stream.dsp.stages.spectrum import component_frequencies
from amt_stream.dsp.streaming import Shape, Stage, State

Accuracy = Literal["exact", "reference", "coarse"]
Selection = Literal["binaural", "monaural"]

CAM_STEP = 0.25
CAMS = 1.75 + CAM_STEP * np.arange(150)
"""ERB numbers of the channels."""

GROUP_CAM = {"exact": 0.125, "coarse": 0.25}
"""Width of the groups of components for the lower skirts."""

NEGLIGIBLE = 30
"""p |g| beyond which a weight is omitted; this moves a level by at most 3e-6 dB."""


PRODUCTS = ("levels", "levels_blocks", "upper", "upper_blocks")
"""Tables of the two banded products of `Excitation`."""


def roex(f: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Weights (center, f) of symmetric rounded-exponential filters (ANSI S3.4-2007, 3.5)."""
    g = (f - center[:, None]) / center[:, None]
    z = 4 * center[:, None] / erb(center[:, None]) * np.abs(g)
    return np.where((g <= 4) & (z < NEGLIGIBLE), (1 + z) * np.exp(-z), 0.0)


class Excitation(Stage):
    """Intensities (..., ear, frame, 960) to excitation (..., ear, frame, 150), ratios re 0 dB.

    accuracy: of the lower skirts; "reference" computes each component, "exact" groups of 0.125 Cam
        by their moments (loudness within 0.001 phon of that), "coarse" groups of 0.25 Cam (within
        0.011 phon). With `frequency` or `cams`, each component is computed
    selection: ignores components 60 dB or more below the strongest one, in either ear with
        "binaural", in the same ear with "monaural"
    frequency: of the components in Hz, ascending; by default those of `RunningSpectrum`
    uncertainty_db: of the sound's level; the excitation is then (..., 3, ear, frame, 150), for the
        level minus the uncertainty, the level, and the level plus the uncertainty
    cams: ERB numbers of the channels, ascending; by default the 150 from 1.75 to 39

    Raises ValueError for unknown words, for frequencies and ERB numbers that do not ascend or are
    combined with "coarse", and for an uncertainty outside 0 to 20 dB.
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity = out_quantity = "power"

    def __init__(
        self,
        accuracy: Accuracy = "exact",
        selection: Selection = "binaural",
        frequency: ArrayLike | None = None,
        uncertainty_db: float | None = None,
        cams: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        known: object = 0.0 if uncertainty_db is None else uncertainty_db
        if not (isinstance(known, Real) and 0 <= float(known) <= 20):
            raise ValueError(f"uncertainty_db is {uncertainty_db!r}: give 0 to 20 dB, or None")
        if accuracy not in ("exact", "reference", "coarse"):
            raise ValueError(f"accuracy is {accuracy!r}: give exact, reference or coarse")
        if selection not in ("binaural", "monaural"):
            raise ValueError(f"selection is {selection!r}: give binaural or monaural")
        given = frequency is not None or cams is not None
        if given and accuracy == "coarse":
            raise ValueError(
                "components of given frequency, and those for given channels, are taken one by "
                "one: leave accuracy exact"
            )
        f = component_frequencies() if frequency is None else _ascending("frequency", frequency)
        self.accuracy, self.selection = accuracy, selection
        self.fixed_axes = {-3: None, -1: f.size}
        self.uncertainty_db = uncertainty_db
        fc = erb_number_to_hz(CAMS if cams is None else _ascending("cams", cams))
        self.by_groups = not given and accuracy in GROUP_CAM
        tables = grouped(f, fc, GROUP_CAM[accuracy]) if self.by_groups else one_by_one(f, fc)
        for name, values in {"fc": fc, **tables}.items():
            self.register_table(name, values)
        nodes = (tables["middle"] - 1) / PER_HZ if self.by_groups else f
        upper = np.where(f >= fc[:, None], roex(f, fc), 0.0)
        for name, weights in {"levels": roex(f, nodes).T, "upper": upper.T}.items():
            self.register_table(name, filled_up(weights))
            self.register_table(f"{name}_blocks", band_blocks(weights))
        self.nodes = nodes.size

    def filters(self) -> Filters:
        """Tables of the lower skirts, computed per component."""
        return Filters(*self.registered(*Filters._fields))

    def groups(self) -> Groups:
        """Tables of the lower skirts, computed per group."""
        return Groups(*self.registered(*Groups._fields))

    def initial_state(self, shape: Shape) -> State:
        return {}

    def selected(self, x: Tensor) -> Tensor:
        """The intensities of `x`, with 0 for components that `selection` ignores."""
        if self.selection == "binaural":
            return select_components(x)
        # Treat each ear as a listener with one ear.
        return select_components(x.unsqueeze(-3)).squeeze(-3)

    def density(self, kept: Tensor) -> Tensor:
        """Power per ERB (..., node) about each group or component; it sets the lower skirts."""
        levels, levels_blocks = self.registered(*PRODUCTS[:2])
        return banded(kept, levels, levels_blocks, self.nodes)

    def upper_excitation(self, kept: Tensor) -> Tensor:
        """Excitation (..., channel) by the components above each channel's center."""
        upper, upper_blocks = self.registered(*PRODUCTS[2:])
        return banded(kept, upper, upper_blocks, self.fc.shape[0])

    def lower_excitation(self, kept: Tensor, density: Tensor) -> Callable[..., Tensor]:
        """That by the components below it, as a function of dB added to the levels per ERB."""
        if self.by_groups:
            return partial(group_skirts, kept, density, self.groups())
        # The clamp keeps the logarithm of ignored components finite.
        level = torch.log10(density.clamp(min=SILENCE)).mul_(10)
        return partial(_by_components, kept, level, self.filters())

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        kept = self.selected(x)
        skirts = self.lower_excitation(kept, self.density(kept))
        high = self.upper_excitation(kept)
        if self.uncertainty_db is None:
            return high + skirts(), state
        # The level scales all components by a factor and changes the steepness of the lower
        # skirts. For faint sounds it could also change the selection, but that moves loudness by
        # at most 1e-4 sone, and so the two costly products serve all three levels.
        rows = [
            10 ** (db / 10) * (high + skirts(db))
            for db in (-self.uncertainty_db, 0.0, self.uncertainty_db)
        ]
        return torch.stack(rows, -4), state

    def out_shape(self, shape: Shape) -> Shape:
        levels = () if self.uncertainty_db is None else (3,)
        return (*shape[:-2], *levels, shape[-2], self.fc.shape[0])


def _by_components(kept: Tensor, level: Tensor, filters: Filters, db: float = 0.0) -> Tensor:
    return lower_skirts(kept, level + db if db else level, filters)


def one_by_one(f: np.ndarray, fc: np.ndarray) -> dict[str, np.ndarray]:
    """Tables of `Filters`."""
    below = np.searchsorted(f, fc)
    return {"frequency": f, "fc": fc, "slope": 4 / erb(fc), "components_below": below}


def grouped(f: np.ndarray, fc: np.ndarray, cam: float) -> dict[str, np.ndarray]:
    """Tables of `Groups` of width `cam`, an integer fraction of `CAM_STEP`, counted from `fc`.

    A center never splits a group, and none is empty; components below all centers stand alone.
    """
    v, center = PER_HZ * f + 1, PER_HZ * fc + 1
    parts = round(CAM_STEP / cam)
    part = np.floor((hz_to_erb_number(f) - hz_to_erb_number(fc[0])) / cam) % parts
    place = parts * np.searchsorted(fc, f, side="right") + part
    first = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (f < fc[0]))
    ends = np.append(first, f.size)
    middle = np.add.reduceat(v, first) / np.diff(ends)
    slope, bend = _derivatives(middle)
    return {
        "apart": v - np.repeat(middle, np.diff(ends)),
        "ends": ends,
        "middle": middle,
        "slope": slope,
        "bend": bend,
        "above": np.searchsorted(fc, f[ends[1:] - 1], side="right"),
        "center": center,
    }


def _derivatives(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finite-difference weights (3, n) of the first and second derivative at x[i].

    From a parabola through x[i - 1], x[i] and x[i + 1]; at the ends from a line, without curvature.
    """
    slope, bend = np.zeros((3, x.size)), np.zeros((3, x.size))
    step = np.diff(x)
    a, b = step[:-1], step[1:]
    slope[:, 1:-1] = -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))
    bend[:, 1:-1] = 2 / (a * (a + b)), -2 / (a * b), 2 / (b * (a + b))
    slope[1:, 0] = -1 / step[0], 1 / step[0]
    slope[:2, -1] = -1 / step[-1], 1 / step[-1]
    return slope, bend


def _ascending(name: str, values: ArrayLike) -> np.ndarray:
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not found.size or not (found[0] > 0 and np.all(np.diff(found) >= 0)):
        raise ValueError(f"{name} is {found}: give numbers above 0 and ascending")
    return found
