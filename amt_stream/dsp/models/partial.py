"""Partial loudness: the loudness of a target in a background. Experimental."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.core.words import counted
from amt_stream.dsp.compose import Chain
from amt_stream.dsp.models.by_components import front_end
from amt_stream.dsp.models.glasberg2002 import CALIBRATION_DB, ONE_CHANNEL, Glasberg2002
from amt_stream.dsp.stages.ear import Field, Phase, ear_gain_db
from amt_stream.dsp.stages.moore.excitation import Accuracy
from amt_stream.dsp.stages.moore.integration import FRAME_RATE
from amt_stream.dsp.stages.moore.partial import (
    STEP,
    PartialLoudnessOfComponents,
    PartialLoudnessOutput,
)
from amt_stream.dsp.stages.spectrum import FS, RunningSpectrum
from amt_stream.dsp.stream import Rebuffer, Stream
from amt_stream.dsp.streaming import GivesOutput

SKIPPED = 200
"""Frames until all windows are full of the sound, and its onset is over."""

FINE_CAMS = 1.8 + 0.1 * np.arange(372)
"""ERB numbers of the channels of a steady sound, as in ANSI S3.4-2007."""


class PartialLoudness(GivesOutput[PartialLoudnessOutput], Chain):
    """Sound pressure (batch, 2 or 4, time) in pascal at `fs` to `PartialLoudnessOutput`.

    Experimental: no listening data was at hand. Channels are the target and the background, or
    target L, R and background L, R; one channel of each counts for both ears. A frame is 1 ms,
    as a click between two longer ones would be lost; frames lag the sound as in `Moore2016`.

    fs, field, ear_filter, accuracy: as of `Glasberg2002`
    k_offset_db: added to the ratio of target to background at the masked threshold
    background: mean intensities (1 or 2, 960) of a stored background, as `mean_components` gives
        them; the channels are then those of the target
    mixed: whether the channels have that background too, which is then taken from them; this is
        right only if it is steady
    channels: how many there are; by default 2, or as many as the stored background has

    Attributes: `frequencies`, centers of the auditory filters in Hz (150,); `stored`, whether there
    is a stored background

    Raises ValueError for any other value.

    >>> import torch
    >>> PartialLoudness(fs=48000)(torch.zeros(1, 2, 4800)).partial_stl.shape
    torch.Size([1, 100])
    """

    frame_rate = FRAME_RATE
    edition = Glasberg2002.edition
    settle_s, memory_s = 8.0, 20.0
    # That of Glasberg2002, and audibility is a step late.
    tail_s = 0.2

    def __init__(
        self,
        fs: int = FS,
        field: Field = "free",
        ear_filter: Phase = "mixed",
        accuracy: Accuracy = "exact",
        k_offset_db: float = 0.0,
        background: ArrayLike | None = None,
        mixed: bool = False,
        channels: int | None = None,
    ) -> None:
        takes = (2, 4) if background is None else (len(np.atleast_2d(background)),)
        channels = takes[0] if channels is None else channels
        if channels not in takes:
            raise ValueError(
                f"PartialLoudness: {counted(channels, 'channel')}: give the target and the "
                "background as channels 1 and 2, or target L, R and background L, R as 1 to 4"
                if background is None
                else f"PartialLoudness: {counted(channels, 'channel')}: give as many as the stored "
                f"background has, {takes[0]}"
            )
        front, lag = front_end(fs, field, ear_filter, RunningSpectrum(CALIBRATION_DB))
        partial = PartialLoudnessOfComponents(accuracy, lag, k_offset_db, background, mixed)
        super().__init__(**front, partial=partial)
        self.per_channel = False  # the channels are two sounds, or two ears of each
        self.fixed_axes, self.shape_remedy = {-2: channels}, partial.shape_remedy
        self.fs, self.channels, self.stored = fs, channels, background is not None
        self.frequencies = partial.excitation.design("fc")


def mean_components(
    blocks: Iterable[Tensor], fs: int, field: Field = "free", ear_filter: Phase = "mixed"
) -> Tensor:
    """Mean intensities (ear, 960) of a steady sound, a `background` of `PartialLoudness`.

    blocks: of sound pressure (ear, time) in pascal, one after another
    fs, field, ear_filter: as of the model

    Raises ValueError for a sound shorter than a second.
    """
    front, _ = front_end(fs, field, ear_filter, RunningSpectrum(CALIBRATION_DB))
    feed: Rebuffer[Tensor] | None = None
    frames, total = 0, torch.zeros((), dtype=torch.float64)
    with torch.inference_mode():
        for block in blocks:
            if feed is None:
                feed = Rebuffer(Stream(Chain(**front), tuple(block.shape[:-1])), STEP)
            if (found := feed.push(block)) is None:
                continue
            after = found[..., max(0, SKIPPED - frames) :, :]
            frames += found.shape[-2]
            if after.shape[-2]:
                total = total + after.double().sum(-2)
    if frames < FRAME_RATE:
        raise ValueError(f"the background has {frames / FRAME_RATE:g} s: give a second or more")
    return total / (frames - SKIPPED)


class PartialLoudnessSteady(NamedTuple):
    """Loudness of both ears in sone, and how far a target is above its masked threshold (...).

    partial: of the target in the background
    target, background: of each alone
    audible_db: in the channel where it is highest; at least -100
    audible_hz: center of that channel
    """

    partial: Tensor
    target: Tensor
    background: Tensor
    audible_db: Tensor
    audible_hz: Tensor


def partial_loudness_from_lines(
    target_db: Tensor,
    target_hz: ArrayLike,
    background_db: Tensor,
    background_hz: ArrayLike,
    field: Field = "free",
    k_offset_db: float = 0.0,
) -> PartialLoudnessSteady:
    """Loudness of a steady target in a steady background, both of spectral lines. Experimental.

    target_db, background_db: in dB SPL (..., 1 or 2, line); one ear counts as both; no line is
        silence
    target_hz, background_hz: (line,) in Hz, in any order; noise is lines 10 Hz apart or closer
    field: sound field of the levels: "free", "diffuse" or "eardrum"
    k_offset_db: added to the ratio of target to background at the masked threshold

    Computed in float64. Raises ValueError for levels and frequencies that do not match.

    >>> import torch
    >>> tone, noise = torch.tensor([[60.0]]), torch.full((1, 100), 50.0)
    >>> y = partial_loudness_from_lines(tone, [1000.0], noise, 505.0 + 10.0 * torch.arange(100))
    >>> print(f"{y.audible_db:.1f} dB, {y.partial:.3f} of {y.target:.3f} sone")
    1.6 dB, 0.094 of 4.166 sone
    """
    hz = [np.asarray(f, np.float64) for f in (target_hz, background_hz)]
    levels = [target_db.double(), background_db.double()]
    for level, f in zip(levels, hz, strict=True):
        shape = tuple(level.shape)
        if len(shape) < 2 or shape[-2] not in (1, 2) or shape[-1:] != f.shape:
            raise ValueError(
                f"partial_loudness_from_lines: levels of shape {shape} and frequencies of shape "
                f"{f.shape}: give levels (..., 1 or 2, line) and a frequency for each line; "
                f"{ONE_CHANNEL}"
            )
    frequency = np.concatenate(hz)
    if not frequency.size:
        raise ValueError("partial_loudness_from_lines: there is no line: give one of either sound")
    order = np.argsort(frequency, kind="stable")
    lead = torch.broadcast_shapes(*(level.shape[:-1] for level in levels))
    silent = [torch.full((*lead, f.size), -torch.inf, dtype=torch.float64) for f in hz]
    target, background = (level.expand(*lead, -1) for level in levels)
    of_both = torch.stack(
        [torch.cat([target, silent[1]], -1), torch.cat([silent[0], background], -1)], -3
    )
    gain_db = torch.from_numpy(ear_gain_db(field, frequency))
    # A time axis of one frame.
    intensity = (10 ** ((of_both + gain_db) / 10))[..., torch.from_numpy(order)].unsqueeze(-2)
    stage = PartialLoudnessOfComponents(
        k_offset_db=k_offset_db, frequency=frequency[order], cams=FINE_CAMS
    ).double()
    partial, quiet, masker = stage.loudness(intensity).sum(-2).squeeze(-1).unbind(-1)
    best = stage.best(stage.audibility_db(intensity).squeeze(-2))
    return PartialLoudnessSteady(partial, quiet, masker, *best)
