"""The model."""

from fractions import Fraction

from amt_stream.streaming import Stage


class MeanSquare(Stage):
    """Pressure (..., channel, time) in pascal to its mean square over 10 ms (..., channel, frame).

    fs: sampling rate in hertz, a multiple of 100
    field: "free" or "diffuse"; makes no difference
    """

    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True

    def __init__(self, fs: int = 48000, field: str = "free") -> None:
        super().__init__()
        if field not in ("free", "diffuse"):
            raise ValueError(f"MeanSquare: field is {field!r}: give free or diffuse")
        self.fs, self.field = fs, field
        self.block_size = fs // 100
        self.ratio = Fraction(1, self.block_size)

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        return x.unflatten(-1, (-1, self.block_size)).square().mean(-1), state
