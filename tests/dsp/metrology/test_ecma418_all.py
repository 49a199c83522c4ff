"""All metrics of ECMA-418-2:2025 at once, against the models of each."""

from copy import deepcopy
from functools import cache

import pytest
import torch

from amt_stream import (
    ECMA418,
    ECMAFluctuation,
    ECMALoudness,
    ECMARoughness,
    ECMATonality,
    Rebuffer,
    Stream,
    aligned,
)
from amt_stream.dsp.stages import (
    ECMAEarFilter,
    ECMASpecificFluctuation,
    ECMASpecificRoughness,
    ECMATonalNoise,
)
from amt_stream.dsp.streaming import fields
from tests.dsp.chunks import pushed
from tests.dsp.kernels.forms import compiledly, plainly

FS = 48000
SECONDS = 2.4
STEPS = 40
"""Blocks of 2048 samples before what is cut in other ways."""


@cache
def sound():
    """A rough tone and slowly modulated noise, in pascal."""
    t = torch.arange(int(SECONDS * FS), dtype=torch.float64) / FS
    turn = 2 * torch.pi * t
    noise = torch.randn(t.numel(), generator=torch.Generator().manual_seed(0), dtype=t.dtype)
    tone = torch.sin(1000 * turn) * (1 + torch.cos(70 * turn))
    return 0.02 * noise * (1 + torch.cos(4 * turn)) + 0.02 * tone


@cache
def whole():
    with torch.no_grad():
        return ECMA418().double()(sound())


def held(values, count):
    """Values at 50 a second, from 0.02 s on, at `count` frames of 187.5 a second."""
    last = torch.arange(1, count + 1) * 4 // 15
    values = torch.cat([torch.zeros_like(values[:1]), values])
    return values[last.clamp(max=len(values) - 1)]


def test_values_are_those_of_each_model():
    """Whose frames come earlier."""
    late = int(ECMA418().latency) // 256
    assert ECMAFluctuation().latency == 73 * 960
    count = len(whole().n) - late
    x = sound()[: 256 * (count + 40)]  # as much as the faster ones need
    with torch.no_grad():
        n, t, r = (
            aligned(one().double(), x) for one in (ECMALoudness, ECMATonality, ECMARoughness)
        )
        f = ECMAFluctuation().double()(sound())
    expected = {"n": n.n, "specific_n": n.specific, "t": t.t, "tone_hz": t.hz}
    expected |= {"specific_t": t.specific, "r": held(r.r, count), "f": held(f.f[73:], count)}
    expected |= {"modulation_hz": held(r.hz, count), "specific_r": held(r.specific, count)}
    expected |= {"specific_f": held(f.specific[73:], count)}
    assert set(expected) == set(whole()._fields)
    for name, values in expected.items():
        got = getattr(whole(), name)[late:]
        torch.testing.assert_close(got, values[:count], rtol=1e-12, atol=1e-12)
        assert got.max() > 0.01, name


@cache
def before():
    """A stream after the first blocks."""
    live = Rebuffer(Stream(ECMA418().double(), ()))
    with torch.no_grad():
        for part in sound()[: STEPS * 2048].split(4096):
            live.push(part)
    return live


SIZES = [[480], [31, 1024, 1, 777]]
SIZES += [pytest.param(sizes, marks=pytest.mark.soak) for sizes in ([1], [7], [4096])]


@pytest.mark.parametrize("sizes", SIZES)
def test_any_split_gives_the_same(sizes):
    """In frames in which all metrics have values, by a copy of the stream, which resumes."""
    live = deepcopy(before())
    with torch.no_grad():
        pieces = pushed(live, sound()[STEPS * 2048 :], sizes)
    count = sum(len(piece.n) for piece in pieces)
    for k, name in enumerate(whole()._fields):
        got = torch.cat([piece[k] for piece in pieces])
        assert got.equal(whole()[k][STEPS * 8 : STEPS * 8 + count]), name
    assert len(got)
    assert got.max() > 0.01


def test_rows_that_began_at_other_times_stay_apart():
    """Their frames of 50 a second come in other blocks."""
    start = 3 * 2048
    x, live = torch.stack([sound(), sound().flip(0)]), Stream(ECMA418().double(), (2,))
    with torch.no_grad():
        live(x[:, :start])
        live.reset(torch.tensor([False, True]))
        parts = [live(part) for part in x[:, start : 55 * 2048].split(2048, -1)]
        alone = ECMA418().double()(x[1, start : 55 * 2048])
    for name in alone._fields:
        got = torch.cat([getattr(part, name) for part in parts], 1)
        assert got[0].equal(getattr(whole(), name)[24 : 55 * 8]), name
        assert got[1].equal(getattr(alone, name)), name
        assert got.amax((0, 1)).max() > 0.01, name


def test_another_rate():
    """Frames stand for the same times."""
    model = ECMA418(44100)
    assert model.latency / 44100 * model.frame_rate % 1 == 0
    assert model.latency / 44100 * 50 % 1 == ECMA418().latency / 48000 * 50 % 1


@pytest.mark.parametrize("form", [compiledly, plainly])
@pytest.mark.parametrize(
    ("stage", "unit", "shape"),
    [
        (ECMAEarFilter, 1, ()),
        (ECMATonalNoise, 256, (53,)),
        (ECMASpecificRoughness, 30, (2, 53)),
        (ECMASpecificFluctuation, 30, (2, 53)),
    ],
)
def test_silence_before_the_sound_changes_nothing(form, stage, unit, shape):
    """After it the state is that of a sound that begins; the ear silences what rings before."""
    count = 19
    late = stage(lead_in=count).double()
    ringing = 1e-4 if stage is ECMAEarFilter else 0.0
    x = torch.full((*shape, count * unit), ringing, dtype=torch.float64)
    with torch.no_grad():
        y, after = form(late.step, x, late.initial_state(shape))
    expected = stage().double().initial_state(shape)
    assert set(after) == set(expected)
    for name, value in after.items():
        assert value.equal(expected[name]), name
    assert all(not v.any() for v in fields(y))
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match=f"lead_in is {wrong}: give a whole number"):
            stage(lead_in=wrong)
