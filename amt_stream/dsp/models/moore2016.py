"""Binaural time-varying loudness after Moore, Glasberg, Varathanathan & Schlittenlacher (2016)."""

from amt_stream.dsp.fused import FusedChain
from amt_stream.dsp.models.by_components import ByComponents, front_end
from amt_stream.dsp.stages.ear import Field, Phase
from amt_stream.dsp.stages.moore.excitation import Accuracy, Excitation
from amt_stream.dsp.stages.moore.integration import FRAME_RATE
from amt_stream.dsp.stages.moore.loudness import BinauralLoudness, Moore2016Output
from amt_stream.dsp.stages.moore.specific_loudness import Constants
from amt_stream.dsp.stages.spectrum import FS, RunningSpectrum
from amt_stream.dsp.streaming import GivesOutput


class Moore2016(GivesOutput[Moore2016Output], FusedChain):
    """Sound pressure (batch, 2, time) in pascal at `fs` to `Moore2016Output`, one frame per ms.

    The method of Moore et al. (2016), with the release constants of Moore et al. (2018), as in ISO
    532-3:2023. Frames lag the sound by 44 ms from 44.1 kHz up (42 at 32 kHz, up to 50 at 8 kHz; 53
    more with the linear ear filter); frames from before the first sample read 0.

    fs: sampling rate in whole hertz; rates other than 32 kHz are resampled
    field: "free" or "diffuse" for a microphone where the listener's head would be, "eardrum" for
        headphones or a sound measured there
    ear_filter: "linear" phase is the reference, 64 ms late; "mixed" phase is 11 ms late, and the
        maxima of short bursts, from 40 to 80 dB, agree with the reference within 0.03 phon
    accuracy: "exact" is within 0.001 phon of "reference", which computes each spectral component;
        "coarse" is slightly faster, within 0.011 phon
    constants: "iso" of ISO 532-3:2023, or "author" of the program published by its authors
    specific_loudness, excitation_db: whether the output includes them
    uncertainty_db: of the sound's level, 0 to 20 dB, such as `Calibration.uncertainty_db`; the
        output then includes the loudness at the level minus and plus that, as from separate runs
        (within 1e-4 sone below 40 phon, 2e-5 of the loudness above)

    Raises ValueError for any other value.

    >>> import torch
    >>> loudness = Moore2016(fs=48000)
    >>> silence = loudness(torch.zeros(1, 2, 4800))
    >>> silence.ltl.shape
    torch.Size([1, 100])
    """

    fused = ByComponents
    frame_rate = FRAME_RATE
    edition = "iso532-3"  # for `sone_to_phon`
    # Four time constants of the long-term release leave 2 % of earlier loudness.
    settle_s = 3.0
    # Nearly ten of them, plus the short-term release, leave a fourteen-thousandth.
    memory_s = 7.5
    # The longest window extends 32 ms past the end. Then short-term loudness falls with 30 ms and
    # long-term loudness rises with 99.5 ms until they meet, after 51 ms at most.
    tail_s = 0.1

    def __init__(
        self,
        fs: int = FS,
        field: Field = "free",
        ear_filter: Phase = "mixed",
        accuracy: Accuracy = "exact",
        constants: Constants = "iso",
        specific_loudness: bool = False,
        excitation_db: bool = False,
        uncertainty_db: float | None = None,
    ) -> None:
        front, lag = front_end(fs, field, ear_filter, RunningSpectrum())
        super().__init__(
            **front,
            excitation=Excitation(accuracy, uncertainty_db=uncertainty_db),
            loudness=BinauralLoudness(
                constants, lag, specific_loudness, excitation_db, band=uncertainty_db is not None
            ),
        )
        self.fixed_axes = {-2: 2}
        self.shape_remedy = "one channel goes to both ears with x.expand(-1, 2, -1)"
        self.fs, self.uncertainty_db = fs, uncertainty_db
