"""What torch users do to a module: watch what passes in it, and change its parts."""

import copy

import pytest
import torch
from torch import nn

from amt_stream import (
    AdaptLoop,
    Chain,
    Dau1997,
    Delay,
    EarFilter,
    Excitation,
    Gain,
    IHCEnvelope,
    Moore2016,
    Moore2016BinauralLoudness,
    Moore2016SpecificLoudness,
    Moore2016TemporalIntegration,
    Parallel,
    Rebuffer,
    Resample,
    RunningSpectrum,
    Stream,
    ThirdOctaveLevels,
)
from amt_stream.dsp.streaming import fields
from amt_stream.engine import Engine, Noise, SignalSource


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def watched(stage):
    """What the hooks of `stage` are given, block by block."""
    seen = []
    stage.register_forward_hook(lambda module, args, y: seen.append((module, args, y)))
    return seen


def test_a_hook_in_a_live_chain_sees_every_block():
    chain = Chain(late=Delay(3), ear=EarFilter(), spectrum=RunningSpectrum())
    seen = watched(chain.ear)
    door = Rebuffer(Stream(chain, (1, 2)))
    with torch.no_grad():
        outputs = [door.push(x) for x in noise(1, 2, 320).split(50, -1)]
    assert [args[0].shape[-1] // 32 for _, args, _ in seen] == [1, 2, 1, 2, 1, 2, 1]
    assert [y.shape[-2] for y in outputs] == [1, 2, 1, 2, 1, 2, 1]
    assert all(module is chain.ear for module, _, _ in seen)
    given = torch.cat([args[0] for _, args, _ in seen], -1)
    assert torch.equal(given[..., 3:], noise(1, 2, 320)[..., :-3])
    torch.testing.assert_close(torch.cat([y for _, _, y in seen], -1), EarFilter()(given))


def test_hooks_see_a_whole_sound_in_one_piece():
    chain = Chain(ear=EarFilter(), spectrum=RunningSpectrum())
    seen, own = watched(chain.ear), watched(chain)
    chain(noise(1, 2, 330))
    assert [args[0].shape for _, args, _ in seen] == [(1, 2, 352)]
    assert len(own) == 1


def test_hooks_are_gone_when_taken_away():
    chain, calls = Chain(a=Gain(2.0), b=Gain(3.0)), []
    live, x = Stream(chain, (2,)), noise(2, 4)
    handles = [
        chain.a.register_forward_pre_hook(lambda *given: calls.append("before a")),
        chain.b.register_forward_hook(lambda *given: calls.append("after b")),
        chain.register_forward_hook(lambda *given: calls.append("after all")),
    ]
    live(x)
    assert calls == ["before a", "after b", "after all"]
    for handle in handles:
        handle.remove()
    live(x)
    assert len(calls) == 3


def test_what_a_hook_returns_takes_the_place():
    chain = Chain(a=Gain(2.0), b=Gain(3.0))
    x = noise(2, 4)
    chain.a.register_forward_pre_hook(lambda module, args: args[0] + 1)
    chain.a.register_forward_hook(lambda module, args, y: y - 1)
    chain.b.register_forward_pre_hook(
        lambda module, args, kwargs: ((args[0] + 2,), kwargs), with_kwargs=True
    )
    chain.b.register_forward_hook(lambda module, args, kwargs, y: y / 2, with_kwargs=True)
    expected = 3 * (2 * (x + 1) - 1 + 2) / 2
    torch.testing.assert_close(chain(x), expected)
    torch.testing.assert_close(Stream(chain, (2,))(x), expected)


@pytest.mark.parametrize("return_stages", [False, True])
def test_hooks_of_a_model_see_what_its_dict_holds(return_stages):
    model = Dau1997(8000, 300.0, 600.0, return_stages=return_stages)
    seen = {name: watched(stage) for name, stage in model.stages().items()}
    y = model(noise(2, 64))
    assert all(len(calls) == 1 for calls in seen.values())
    if return_stages:
        for name, expected in y[1].items():
            assert torch.equal(seen[name][0][2], expected)
    Stream(model, (2,))(noise(2, 64))
    assert all(len(calls) == 2 for calls in seen.values())


@pytest.mark.parametrize("live", [False, True])
def test_hooks_of_the_parts_of_compound_classes(live):
    x = noise(2, 5, 150).square()
    loudness, integration = Moore2016BinauralLoudness(), Moore2016TemporalIntegration()
    parts = [*loudness.children(), *integration.children()]
    seen = [watched(part) for part in parts]
    if live:
        Stream(loudness, (2, 150))(x)
        Stream(integration, (2, 150))(x)
    else:
        loudness(*x)
        integration(x)
    assert [len(calls) for calls in seen] == [1, 1, 1, 1]


def test_hooks_in_a_parallel():
    both = Parallel(now=Gain(2.0), then=Chain(wait=Delay(2), louder=Gain(3.0)))
    seen = watched(both.then.louder)
    Stream(both, (2,))(noise(2, 8))
    assert torch.equal(seen[0][2][:, 2:], 3 * noise(2, 8)[:, :-2])


def test_a_hook_sees_every_block_of_an_engine():
    model = Moore2016(48000)
    seen, frames = watched(model.loudness), []
    source = SignalSource([Noise(level_db=60.0)], duration=0.2, paced=False)
    with Engine(source, model, [frames.append]) as engine:
        assert engine.wait(60), engine.error
    stl = torch.cat([torch.from_numpy(given.values.stl) for given in frames])
    assert len(stl) > 190
    # The hook also sees blocks that warm the model up, and frames for time outside the sound.
    heard = torch.cat([y.stl[0] for _, _, y in seen]).unfold(0, len(stl), 1)
    assert (heard == stl).all(-1).any()


CHANGES = [
    (lambda c: setattr(c, "a", Delay(5)), "'a' cannot be set"),
    (lambda c: setattr(c, "b", Gain(1.0)), "'b' cannot be set"),
    (lambda c: setattr(c, "a", nn.Tanh()), "'a' cannot be set"),
    (lambda c: setattr(c, "a", None), "'a' cannot be taken out"),
    (lambda c: delattr(c, "a"), "'a' cannot be taken out"),
    (lambda c: c.add_module("b", Gain(1.0)), "'b' cannot be added"),
    (lambda c: c.register_module("b", Gain(1.0)), "'b' cannot be added"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
@pytest.mark.parametrize("kind", [Chain, Parallel])
def test_the_stages_of_a_chain_are_fixed(kind, change, said):
    chain = kind(a=Delay(3))
    with pytest.raises(
        AttributeError, match=rf"{said}, because .* make a new one, {kind.__name__}"
    ):
        change(chain)
    assert list(chain.stages()) == ["a"]
    assert chain.latency == 3
    assert copy.deepcopy(chain).latency == 3


def test_the_way_that_the_refusal_names():
    old = Chain(a=Delay(3), b=Gain(2.0))
    new = Chain(**{**old.stages(), "a": Delay(5)})
    assert (old.latency, new.latency) == (3, 5)
    assert new.b is old.b


@pytest.mark.parametrize("kind", [Chain, Parallel])
def test_stages_come_by_name(kind):
    stages = IHCEnvelope(8000), AdaptLoop(8000)
    with pytest.raises(TypeError, match=rf"{kind.__name__} takes its stages by name.*IHCEnvelope"):
        kind(*stages)
    with pytest.raises(TypeError, match=r"Sequential with stages in it.*Chain\(name=stage"):
        kind(inner=nn.Sequential(*stages))
    with pytest.raises(TypeError, match=rf"{kind.__name__} takes its stages by name.*Sequential"):
        kind(nn.Sequential(*stages))


def test_an_ear_filter_in_a_chain_says_its_rate():
    with pytest.raises(ValueError, match="'ear' was built for 48000 Hz and gets 32000 Hz"):
        Chain(down=Resample(48000, 32000), ear=EarFilter(48000))
    assert Chain(wait=Delay(1), down=Resample(48000, 32000), ear=EarFilter(32000)).fs == 48000


def test_power_into_a_stage_of_decibels_is_refused():
    with pytest.raises(
        ValueError,
        match="'loudness' takes dB, the stage before it gives power: for Excitation take",
    ):
        Chain(excitation=Excitation(), loudness=Moore2016SpecificLoudness())
    with pytest.raises(ValueError, match="'excitation' takes power, the stage before it gives dB"):
        Chain(levels=ThirdOctaveLevels(), excitation=Excitation())
    assert Moore2016(32000).out_quantity is None
    assert len(fields(Moore2016(32000)(torch.zeros(1, 2, 320)))) == 4
