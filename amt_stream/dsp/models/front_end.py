"""The common first stages of the loudness models of Glasberg, Moore and colleagues."""

from fractions import Fraction

from amt_stream.dsp.stages.ear import EarFilter, Field, Phase
from amt_stream.dsp.stages.moore.integration import FRAME_RATE
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.stages.spectrum import FS, RunningSpectrum
from amt_stream.dsp.streaming import Stage


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
