"""Components of a target and a background to partial loudness. Experimental."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.dsp.functional.loudness import Channels, agc, specific_loudness
from amt_stream.dsp.functional.partial import masked_threshold, partial_specific_loudness
from amt_stream.dsp.stages.moore.excitation import CAMS, Accuracy, Excitation
from amt_stream.dsp.stages.moore.integration import FRAME_RATE, LONG_TERM_2002, SHORT_TERM_2002
from amt_stream.dsp.stages.moore.specific_loudness import channel_constants
from amt_stream.dsp.stages.spectrum import component_frequencies
from amt_stream.dsp.streaming import Shape, Stage, State, output

MEAN_S = 1.0
"""Audibility is that of the mean components; a mean with half this time constant varies as much."""

STEP = 50
"""Frames between two values of the audibility."""

LEAST_AUDIBILITY = 1e-10

# Read from a figure of Moore, Glasberg & Baer (1997), +-0.5 dB; linear in lg f, flat outside.
K_HZ = (50, 63, 80, 100, 125, 160, 200, 250, 315, 400, 500, 630, 800, 900, 1000)
K_DB = (
    *(13.504, 10.039, 7.125, 4.919, 3.127, 1.543, 0.403),
    *(-0.513, -1.269, -1.884, -2.328, -2.670, -2.900, -2.966, -3.0),
)


def threshold_ratio(fc: np.ndarray, k_offset_db: float = 0.0) -> np.ndarray:
    """Ratio K of target to background at the masked threshold, at `fc` Hz."""
    return 10 ** ((np.interp(np.log10(fc), np.log10(K_HZ), K_DB) + k_offset_db) / 10)


@output
class PartialLoudnessOutput(NamedTuple):
    """Loudness of a target in a background per frame, in sone, the sum of both ears. Experimental.

    partial_stl, partial_ltl: short-term and long-term loudness of the target in the background
        (..., frame)
    target_ltl, background_ltl: long-term loudness of each alone (..., frame)
    audible_db: how far the target is above its masked threshold, in the channel where it is
        farthest, of the mean components of the last second; at least -100 (..., frame)
    audible_hz: center of that channel (..., frame)
    audibility_db: the same of each channel, of the ear where it is higher (..., frame, channel)
    """

    partial_stl: Tensor
    partial_ltl: Tensor
    target_ltl: Tensor
    background_ltl: Tensor
    audible_db: Tensor
    audible_hz: Tensor
    audibility_db: Tensor


class PartialLoudnessOfComponents(Stage):
    """Intensities (..., channel, frame, component) to `PartialLoudnessOutput`, a frame per ms.

    Channels are the target's and then the background's, of one ear, which counts as two, or of two.
    Each source keeps the components that are less than 60 dB below its strongest. Levels of both
    together shape the filters (Moore, Glasberg & Baer 1997); loudness follows ANSI S3.4-2007
    without inhibition, and its smoothing Glasberg & Moore (2002).

    accuracy: as of `Excitation`
    frames_before: number of frames from before the sound, which count as silence
    k_offset_db: added to the ratio at the masked threshold
    background: mean intensities (1 or 2, component) of a background that is not a channel; the
        channels are then those of the target
    mixed: whether the channels have the background too, which is then taken from them
    frequency, cams: of the components and the channels of hearing, as of `Excitation`
    """

    time_dim = -2
    in_quantity = "power"
    block_size = STEP
    # In float32 a slow release stops 1e-4 above its target.
    keeps_double = ("short_term", "long_term", "short", "long")

    def __init__(
        self,
        accuracy: Accuracy = "exact",
        frames_before: int = 0,
        k_offset_db: float = 0.0,
        background: ArrayLike | None = None,
        mixed: bool = False,
        frequency: ArrayLike | None = None,
        cams: np.ndarray = CAMS,
    ) -> None:
        super().__init__()
        if not -20 <= k_offset_db <= 20:
            raise ValueError(f"k_offset_db is {k_offset_db!r}: give -20 to 20 dB")
        self.frames_before, self.k_offset_db, self.mixed = frames_before, k_offset_db, mixed
        given = None if frequency is None else cams
        self.excitation = Excitation(accuracy, "monaural", frequency, cams=given)
        self.cam_step = float(cams[1] - cams[0])
        fc = self.excitation.design("fc")
        for name, values in channel_constants("ansi", cams).items():
            self.register_table(name, values)
        self.register_table("fc", fc)
        self.register_table("k", threshold_ratio(fc, k_offset_db))
        self.register_table("short_term", np.array(SHORT_TERM_2002))
        self.register_table("long_term", np.array(LONG_TERM_2002))
        self.register_table("pace", np.full(2, -np.expm1(-STEP / (FRAME_RATE * MEAN_S / 2))))
        components = component_frequencies().size if frequency is None else np.size(frequency)
        self.stored = background is not None
        if background is not None:
            stored = np.asarray(background, np.float64)
            if stored.shape not in ((1, components), (2, components)):
                raise ValueError(
                    f"the background has shape {stored.shape}: give mean intensities of shape "
                    f"(1 or 2, {components})"
                )
            self.register_table("background", stored[:, None, :])
        self.fixed_axes = {-3: len(stored) if self.stored else (2, 4), -1: components}
        self.shape_remedy = (
            "give the channels of the target, as many as of the stored background"
            if self.stored
            else "give the target and the background, or target L, R and background L, R"
        )
        dims = (*(-1,) * 6, -2)
        self.out_time_dim = PartialLoudnessOutput(*dims)  # type: ignore[arg-type]

    def tables(self) -> Channels:
        """Tables of specific loudness."""
        return Channels(*self.registered(*Channels._fields))

    def sources(self, x: Tensor) -> Tensor:
        """Intensities (..., 2, ear, frame, component) of the target and of the background."""
        if not self.stored:
            return x.unflatten(-3, (2, -1))
        (background,) = self.registered("background")
        target = (x - background).clamp(min=0) if self.mixed else x
        return torch.stack([target, background.expand_as(x)], -4)

    def patterns(self, sources: Tensor) -> tuple[Tensor, Tensor]:
        """Excitation (..., 2, ear, frame, channel) of the sources.

        By filters that both shape together, and by those that each would shape alone.
        """
        kept = self.excitation.selected(sources)
        alone = self.excitation.density(kept)
        both = alone.sum(-4, keepdim=True).expand_as(alone)
        upper = self.excitation.upper_excitation(kept)
        skirts = self.excitation.lower_excitation
        return upper + skirts(kept, both)(), upper + skirts(kept, alone)()

    def loudness(self, sources: Tensor) -> Tensor:
        """Loudness in sone (..., 3, 2, frame) of each ear, unsmoothed, float64.

        That of the target in the background, of the target alone, and of the background alone.
        """
        tables = self.tables()
        (k,) = self.registered("k")
        together, alone = self.patterns(sources)
        target, background = together.unbind(-4)
        heard = partial_specific_loudness(target, background, tables, k)
        sums = heard.sum(-1).unsqueeze(-3), specific_loudness(alone, tables).sum(-1).double()
        n = self.cam_step * torch.cat(sums, -3)
        return n.expand(*n.shape[:-2], 2, -1)

    def audibility_db(self, sources: Tensor) -> Tensor:
        """How far the target is above its masked threshold (..., frame, channel)."""
        (k,) = self.registered("k")
        target, background = self.patterns(sources)[0].unbind(-4)
        ratio = target / masked_threshold(background, self.tables(), k)
        return 10 * torch.log10(ratio.amax(-3).clamp(min=LEAST_AUDIBILITY))

    def best(self, audibility_db: Tensor) -> tuple[Tensor, Tensor]:
        """The highest audibility in dB, and where it is in Hz."""
        db, at = audibility_db.max(-1)
        return db, self.fc[at]

    def initial_state(self, shape: Shape) -> State:
        *rows, channels, components = shape
        return {
            "before": torch.full(rows, self.frames_before, device=self.device),
            "short": self.state_like("short", (*rows, 6)),
            "long": self.state_like("long", (*rows, 6)),
            "mean": self.state_like("mean", (*rows, channels, components)),
        }

    def step(self, x: Tensor, state: State) -> tuple[PartialLoudnessOutput, State]:
        before, frames = state["before"], x.shape[-2]
        begun = torch.arange(frames, device=before.device) >= before[..., None]
        n = torch.where(begun[..., None, :], self.loudness(self.sources(x)).flatten(-3, -2), 0.0).mT
        short_term, long_term, pace = self.registered("short_term", "long_term", "pace")
        stl, short = agc(n, short_term, state["short"])
        ltl, long = agc(stl, long_term, state["long"])
        stl, ltl = (v.unflatten(-1, (3, 2)).sum(-1).to(x.dtype) for v in (stl, ltl))
        # A stored background is subtracted from the mean, because single frames vary more.
        steps = x.unflatten(-2, (-1, STEP)).mean(-2)
        means, mean = agc(steps, pace, state["mean"])
        # Frames have the audibility before their step, which is complete only with the last.
        earlier = torch.cat([state["mean"].unsqueeze(-2), means[..., :-1, :]], -2)
        audibility = self.audibility_db(self.sources(earlier)).repeat_interleave(STEP, -2)
        db, hz = self.best(audibility)
        partial, target, other = ltl.unbind(-1)
        y = PartialLoudnessOutput(stl[..., 0], partial, target, other, db, hz, audibility)
        before = (before - frames).clamp(min=0)
        return y, {"before": before, "short": short, "long": long, "mean": mean}

    def out_shape(self, shape: Shape) -> PartialLoudnessOutput:
        rows = shape[:-2]
        shapes = (*(rows,) * 6, (*rows, self.fc.shape[0]))
        return PartialLoudnessOutput(*shapes)  # type: ignore[arg-type]
