"""A stream on a device, whose sound and numbers are on the host, gives what a plain one gives."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from amt_stream import Moore2016, Rebuffer, Stage, Stream
from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.functional.compiler import dispatch
from amt_stream.dsp.streaming import fields
from tests.recorder import Recorder

LOUDNESSES = (1.0, 1e-3, 0.0, 30.0, 1e-5)


class Mixed(NamedTuple):
    fourth: object
    nothing: object
    wide: object
    loud: object


class Mean(Stage):
    """Each fourth sample, and sums of means of four, in several kinds of numbers; with a memory."""

    block_size = 4
    out_time_dim = Mixed(-1, None, -1, -1)
    keeps_double = ("total",)

    def initial_state(self, shape):
        return {"total": self.state_like("total", (*shape, 1))}

    def step(self, x, state):
        mean = x.unflatten(-1, (-1, 4)).mean(-1)
        total = state["total"] + mean.double().cumsum(-1)
        return Mixed(x[..., ::4], None, total, mean > 0), {"total": total[..., -1:]}


class Told(Mean):
    """The same, with a number that the host asks for."""

    def step(self, x, state):
        assert x.sum().item() == x.sum()
        return super().step(x, state)


def blocks(samples, shape=(2,), count=6):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, samples, generator=generator) for _ in range(count)]


def assert_same(a, b):
    assert type(a) is type(b)
    for one, other in zip(fields(a), fields(b), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_captured_block_of_a_model_is_the_block(monkeypatch):
    monkeypatch.setattr(dispatch, "_KINDS", ())  # kernels of the CPU leave no operation to record
    device, model = Recorder(), Moore2016(fs=48000)
    hosted, plain = HostedStream(model, (1, 2), device), Stream(model, (1, 2))
    with torch.no_grad():
        assert hosted.capture(480)
        for x, loudness in zip(blocks(480, (1, 2)), LOUDNESSES, strict=False):
            got, expected = hosted(loudness * x), plain(loudness * x)
            for a, b in zip(fields(got), fields(expected), strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=1e-6 * b.abs().max().item())
    assert device.replays == len(LOUDNESSES)


@pytest.mark.parametrize("captured", [False, True])
def test_all_kinds_of_numbers_come_back_in_memory_of_their_own(captured):
    device = Recorder()
    hosted, plain = HostedStream(Mean(), (2,), device), Stream(Mean(), (2,))
    assert not captured or hosted.capture(8)
    found = [(hosted(x), plain(x)) for x in blocks(8)]
    for got, expected in found:
        assert_same(got, expected)
    assert device.replays == (len(found) if captured else 0)


def test_other_lengths_go_launch_by_launch_and_graphs_stay():
    device = Recorder()
    hosted, plain = HostedStream(Mean(), (2,), device), Stream(Mean(), (2,))
    assert hosted.capture(8)
    for length in (8, 4, 12, 8, 8):
        for x in blocks(length, count=1):
            assert_same(hosted(x), plain(x))
    assert device.replays == 3
    with pytest.raises(ValueError, match="multiples of 4"):
        hosted(torch.zeros(2, 7))


def test_what_asks_for_a_number_goes_launch_by_launch_and_that_is_logged(caplog):
    device = Recorder()
    hosted, plain = HostedStream(Told(), (2,), device), Stream(Mean(), (2,))
    assert not hosted.capture(8)
    assert "Told cannot be captured" in caplog.text
    for x in blocks(8):
        assert_same(hosted(x), plain(x))
    assert device.replays == 0


@pytest.mark.quick
def test_state_is_reset_saved_and_taken_up_between_blocks():
    device = Recorder()
    hosted, plain = HostedStream(Mean(), (2,), device), Stream(Mean(), (2,))
    assert hosted.capture(8)
    first, second, third, *_ = blocks(8)
    assert_same(hosted(first), plain(first))
    hosted.reset()
    plain.reset()
    assert_same(hosted(second), plain(second))
    hosted.reset(torch.tensor([True, False]))
    plain.reset(torch.tensor([True, False]))
    other = Stream(Mean(), (2,))
    other.load_state_dict(hosted.state_dict())
    hosted.load_state_dict(other.state_dict())
    assert_same(hosted(third), plain(third))
    assert device.replays == 3


def test_a_stage_that_has_moved_or_has_a_hook_is_not_replayed():
    device, stage = Recorder(), Mean()
    hosted = HostedStream(stage, (2,), device)
    assert hosted.capture(8)
    heard = []
    handle = stage.register_forward_hook(lambda stage, x, y: heard.append(x))
    first, second, third, *_ = blocks(8)
    hosted(first)
    assert (len(heard), device.replays) == (1, 0)
    handle.remove()
    hosted(second)
    assert (len(heard), device.replays) == (1, 1)
    hosted.double()
    assert hosted(third).fourth.dtype == torch.float64
    assert device.replays == 1


def test_a_hook_may_give_something_else():
    hosted = HostedStream(Mean(), (2,), Recorder())
    assert hosted.capture(8)
    handle = hosted.stage.register_forward_hook(lambda stage, x, y: y.wide[..., :1])
    first, second, *_ = blocks(8)
    assert hosted(first).shape == (2, 1)
    assert not hosted.capture(4)
    handle.remove()
    assert hosted(second).wide.shape == (2, 2)


def test_a_stage_on_the_cpu_is_refused():
    with pytest.raises(ValueError, match=r"Mean is on cpu: give stage\.to\('cuda'\)"):
        HostedStream(Mean(), (2,))


def test_chunks_of_any_length_wait_on_the_host():
    whole = torch.cat(blocks(8), -1)
    door = Rebuffer(HostedStream(Mean(), (2,), Recorder()), 2)
    assert door.held.is_cpu
    found = [y for x in whole.split(5, -1) if (y := door.push(x)) is not None]
    expected = Stream(Mean(), (2,))(whole)
    got = np.concatenate([y.wide.numpy() for y in found], -1)
    np.testing.assert_array_equal(got, expected.wide.numpy())
