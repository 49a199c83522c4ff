"""What the loudness models of Glasberg, Moore and colleagues begin with."""

from fractions import Fraction

from amt_stream.dsp.stages.ear import EarFilter, Field, Phase
from amt_stream.dsp.stages.integration import FRAME_RATE
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.stages.spectrum import FS, RunningSpectrum
from amt_stream.dsp.streaming import Stage


def front_end(
    fs: int, field: Field, ear_filter: Phase, spectrum: RunningSpectrum
) -> tuple[dict[str, Stage], int]:
    """Stages from sound at `fs` Hz to its spectrum, and how many frames come before time 0."""
    front: dict[str, Stage] = {} if fs == FS else {"resample": Resample(fs, FS)}
    front |= {"ear": EarFilter(FS, field, ear_filter), "spectrum": spectrum}
    rates = {"resample": Fraction(fs), "ear": Fraction(FS), "spectrum": Fraction(FS)}
    lag = sum(stage.latency / rates[name] for name, stage in front.items()) * FRAME_RATE
    # A whole number: the center of each filter stands on a whole millisecond.
    return front, int(lag)
