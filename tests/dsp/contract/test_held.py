"""Frames of one rate, held at another."""

from fractions import Fraction

import pytest
import torch

from amt_stream import Delay, Stage, Stream, check_stage
from amt_stream.dsp.stages.held import HeldFrames


class Sums(Stage):
    """The sums of each 6 samples and of the 6 before, which are 2 samples old."""

    block_size, ratio, latency, out_time_dim = 6, Fraction(1, 6), Fraction(2), -2

    def __init__(self):
        super().__init__()
        self.fixed_axes = {-2: 2}
        self.shape_remedy = "give two channels"

    def initial_state(self, shape):
        return {"before": self.state_like("before", shape)}

    def step(self, x, state):
        sums = x.unflatten(-1, (-1, 6)).sum(-1)
        before = torch.cat([state["before"][..., None], sums[..., :-1]], -1)
        return torch.cat([sums, before], -2).mT, {"before": sums[..., -1]}

    def out_shape(self, shape):
        return (*shape[:-1], 4)


@pytest.mark.parametrize("every", [4, 8, 12])
def test_the_contract_holds(every):
    x = torch.randn(3, 2, 101, generator=torch.Generator().manual_seed(0))
    check_stage(lambda: HeldFrames(Sums(), every), x)


@pytest.mark.parametrize("every", [1, 4, 8])
def test_a_value_is_that_of_the_last_frame_whose_time_has_come(every):
    x = torch.randn(2, 96, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    held, sums = HeldFrames(Sums(), every).double(), Sums().double()
    y, frames = held(x), sums(x)
    for k, value in enumerate(y):
        time = every * (k + 1) - int(held.latency)
        due = [frame for n, frame in enumerate(frames) if 6 * (n + 1) - 2 <= time]
        assert value.equal(due[-1] if due else torch.zeros(4, dtype=torch.float64))
    assert held.latency == {1: 2, 4: 4, 8: 8}[every]


def test_rows_that_began_at_other_times_stay_apart():
    x = torch.randn(3, 2, 120, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    live = Stream(HeldFrames(Sums(), 4).double(), (3, 2))
    whole = HeldFrames(Sums(), 4).double()
    with torch.no_grad():
        live(x[..., :40])
        live.reset(torch.tensor([False, True, False]))
        y = torch.cat([live(part) for part in x[..., 40:].split(8, -1)], -2)
        assert y[::2].equal(whole(x[::2])[:, 10:])
        assert y[1].equal(whole(x[1, :, 40:]))


def test_a_stage_without_such_frames_is_refused():
    with pytest.raises(ValueError, match=r"given Delay with ratio 1, blocks of 1 and frames on"):
        HeldFrames(Delay(2), 8)
