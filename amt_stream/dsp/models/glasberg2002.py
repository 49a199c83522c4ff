"""Time-varying loudness after Glasberg & Moore (2002), calibrated with ANSI S3.4-2007."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.dsp.fused import FusedChain
from amt_stream.dsp.models.by_components import ByComponents, front_end
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.dsp.stages.ear import Field, Phase, ear_gain_db
from amt_stream.dsp.stages.moore.excitation import Accuracy, Excitation
from amt_stream.dsp.stages.moore.integration import FRAME_RATE, LONG_TERM_2002
from amt_stream.dsp.stages.moore.loudness import Glasberg2002Output, MonauralLoudness
from amt_stream.dsp.stages.spectrum import FS, RunningSpectrum
from amt_stream.dsp.streaming import GivesOutput

CALIBRATION_DB = 3.41
"""Makes 1 kHz at 40 dB in the free field read 0.997 sone, as in ANSI S3.4-2007, Table 7."""

ONE_CHANNEL = "one channel stands for two ears that hear the same"


class Glasberg2002(GivesOutput[Glasberg2002Output], FusedChain):
    """Sound pressure (batch, 1 or 2, time) in pascal at `fs` to `Glasberg2002Output`, a frame a ms.

    The method of Glasberg & Moore (2002) with the loudness of ANSI S3.4-2007. The ears do not
    interact; the loudness of both is their sum. One channel counts for both ears, at two thirds of
    the cost. Convert to phon by `sone_to_phon(n, Glasberg2002.edition)`. Frames lag the sound as in
    `Moore2016`.

    fs: sampling rate in whole hertz; rates other than 32 kHz are resampled
    field: "free" or "diffuse" for a microphone where the listener's head would be, "eardrum" for
        headphones or a sound measured there
    ear_filter: "linear" phase is the reference, 64 ms late; "mixed" phase is 11 ms late, and the
        maxima of short bursts, from 40 to 80 dB, agree with the reference within 0.03 phon
    accuracy: "exact" is within 0.001 phon of "reference", which computes each spectral component;
        "coarse" is slightly faster, within 0.011 phon
    ltl_release: release coefficient per ms of long-term loudness: 2 s; 0.005 gives 0.2 s

    Raises ValueError for any other value.

    >>> import torch
    >>> loudness = Glasberg2002(fs=48000)
    >>> silence = loudness(torch.zeros(1, 1, 4800))
    >>> silence.stl_ears.shape
    torch.Size([1, 2, 100])
    """

    fused = ByComponents
    frame_rate = FRAME_RATE
    per_channel = True
    edition = "ansi-s3.4"  # for `sone_to_phon`
    # As in Moore2016, with a short-term release of 50 ms: they meet after 69 ms at most.
    tail_s = 0.12

    def __init__(
        self,
        fs: int = FS,
        field: Field = "free",
        ear_filter: Phase = "mixed",
        accuracy: Accuracy = "exact",
        ltl_release: float = LONG_TERM_2002[1],
    ) -> None:
        front, lag = front_end(fs, field, ear_filter, RunningSpectrum(CALIBRATION_DB))
        super().__init__(
            **front,
            excitation=Excitation(accuracy, "monaural"),
            loudness=MonauralLoudness(lag, ltl_release),
        )
        self.fixed_axes = {-2: (1, 2)}
        self.shape_remedy = ONE_CHANNEL
        self.fs = fs
        # Four time constants of the long-term release leave 2 % of earlier loudness.
        self.settle_s = 4 / (FRAME_RATE * ltl_release)
        # Nearly ten of them, plus the short-term release, leave a fourteen-thousandth.
        self.memory_s = 9.6 / (FRAME_RATE * ltl_release) + 0.8


class Glasberg2002Steady(NamedTuple):
    """Loudness of both ears in sone, and loudness level in phon (...)."""

    n: Tensor
    phon: Tensor


def glasberg2002_from_lines(
    level_db: Tensor, frequency: ArrayLike, field: Field = "free"
) -> Glasberg2002Steady:
    """Loudness of a steady sound of spectral lines, by ANSI S3.4-2007, without any windows.

    level_db: in dB SPL (..., 1 or 2, line); one ear counts as both
    frequency: (line,) in Hz, in any order; noise is lines 10 Hz apart or closer
    field: sound field of the levels: "free", "diffuse" or "eardrum"

    Computed in float64. Raises ValueError for levels and frequencies that do not match.

    >>> import torch
    >>> round(glasberg2002_from_lines(torch.tensor([[40.0]]), [1000.0]).phon.item())
    40
    """
    f = np.asarray(frequency, np.float64)
    loudness = MonauralLoudness().double()
    level_db = loudness.converted(level_db)
    shape = tuple(level_db.shape)
    if len(shape) < 2 or shape[-2] not in (1, 2):
        raise ValueError(
            "glasberg2002_from_lines takes levels of shape (..., 1 or 2, line), given "
            f"{shape}: {ONE_CHANNEL}"
        )
    if shape[-1:] != f.shape:
        raise ValueError(
            f"glasberg2002_from_lines: levels of shape {shape} and frequencies of shape {f.shape}: "
            "give a frequency for each line"
        )
    order = np.argsort(f)
    f = f[order]
    gain_db = torch.from_numpy(ear_gain_db(field, f)).to(level_db.device)
    level = level_db[..., torch.from_numpy(order)] + gain_db
    excitation = Excitation("reference", "monaural", f).to(level_db.device, torch.float64)
    # A time axis of one frame.
    patterns, _ = excitation.step(10 ** (level / 10)[..., None, :], {})
    n = loudness.to(level_db.device).instantaneous(patterns).sum((-2, -1))
    return Glasberg2002Steady(n, sone_to_phon(n.detach(), Glasberg2002.edition))
