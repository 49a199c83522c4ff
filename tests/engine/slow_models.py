"""Models that take time: a mean square of each block."""

import time
from fractions import Fraction

from amt_stream.dsp.streaming import Stage

FS = 48000


class SlowModel(Stage):
    """Takes so many seconds for a second of sound."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.block_size = 480
        self.ratio = Fraction(1, 480)

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        self.spend(self.seconds * x.shape[-1] / FS)
        return x.unflatten(-1, (-1, 480)).square().mean(-1).sum(-2), state


class Sleeper(SlowModel):
    """Takes no processor time."""

    def spend(self, seconds: float) -> None:
        time.sleep(seconds)


class Burner(SlowModel):
    """Takes processor time."""

    def spend(self, seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
