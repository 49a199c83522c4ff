"""The model: signal processing alone. `check_stage` proves that it streams."""

from fractions import Fraction
from typing import TYPE_CHECKING

from torch import Tensor

from amt_stream import Stage, State

if TYPE_CHECKING:
    from amt_stream.meters.plugin import MakesModel


class MeanSquare(Stage):
    """Pressure (..., channel, time) in pascal to its mean square over 10 ms (..., channel, frame).

    fs: sampling rate in hertz, a multiple of 100
    field: "free" or "diffuse"; makes no difference

    Raises ValueError for another rate or field.
    """

    # What the engine has to know; `help(amt_stream.Stage)` explains each.
    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True

    def __init__(self, fs: int = 48000, field: str = "free") -> None:
        super().__init__()
        # A person reads these sentences: they say what was wrong, and the remedy.
        if fs % 100:
            raise ValueError(f"MeanSquare: fs is {fs!r}: give a multiple of 100 Hz")
        if field not in ("free", "diffuse"):
            raise ValueError(f"MeanSquare: field is {field!r}: give free or diffuse")
        self.fs, self.field = fs, field
        self.block_size = fs // 100
        self.ratio = Fraction(1, self.block_size)

    def initial_state(self, shape: tuple[int, ...]) -> State:
        # Each frame is of its own block, so nothing is remembered.
        return {}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return x.unflatten(-1, (-1, self.block_size)).square().mean(-1), state


if TYPE_CHECKING:  # mypy says here if the entry could not make it
    _: MakesModel = MeanSquare
