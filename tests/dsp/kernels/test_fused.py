"""Stages in one go on a plan against the same functions one by one."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch

from amt_stream import (
    BS1770,
    ECMA418,
    DanielWeber,
    Dau1997,
    ECMAFluctuation,
    ECMALoudness,
    ECMARoughness,
    ECMATonality,
    Glasberg2002,
    Moore2016,
    Octaves,
    SoundLevel,
    Stream,
    ThirdOctaves,
    ZwickerTimeVarying,
)
from amt_stream.dsp.compose import Chain
from amt_stream.dsp.stream import Rebuffer
from amt_stream.dsp.streaming import fields


def sound(ears, time):
    return 0.05 * torch.randn(2, ears, time, generator=torch.Generator().manual_seed(1))


MODELS = [
    (Moore2016, 2, {"fs": 48000}),
    (Moore2016, 2, {"fs": 32000, "accuracy": "coarse", "uncertainty_db": 2.0}),
    (Moore2016, 2, {"fs": 48000, "ear_filter": "linear", "excitation_db": True}),
    (Glasberg2002, 1, {"fs": 48000}),
    (Glasberg2002, 2, {"fs": 32000}),
    (Moore2016, 2, {"accuracy": "reference"}),
    (Moore2016, 2, {"accuracy": "reference", "uncertainty_db": 2.0}),
    (ZwickerTimeVarying, 2, {"fs": 48000}),
    (ZwickerTimeVarying, 1, {"fs": 32000, "specific_loudness": True}),
    (Dau1997, 2, {"fs": 48000}),
    (Dau1997, 1, {"fs": 32000, "fhigh": 2000.0, "adaptation_kwargs": {"limit": 0}}),
    (Dau1997, 1, {"fs": 16000, "ihc_kwargs": {"method": "breebaart2001"}, "dtype": torch.float64}),
    (BS1770, 2, {"fs": 48000}),
    (BS1770, 6, {"fs": 22050, "layout": "5.1"}),
    (SoundLevel, 2, {"fs": 48000}),
    (SoundLevel, 1, {"fs": 22050, "z_high_pass": 0.5}),
    (ThirdOctaves, 2, {"fs": 44100}),
    (Octaves, 1, {"fs": 22050, "low_hz": 63.0}),
    (DanielWeber, 2, {"fs": 48000}),
    (DanielWeber, 1, {"fs": 44100}),
    (ECMALoudness, 2, {"fs": 48000}),
    (ECMALoudness, 1, {"fs": 44100, "field": "diffuse"}),
    (ECMATonality, 1, {"fs": 48000}),
    (ECMARoughness, 2, {"fs": 48000}),
    (ECMAFluctuation, 1, {"fs": 32000}),
    (ECMA418, 1, {"fs": 48000}),
]


@pytest.mark.cases(4)
@pytest.mark.parametrize(("kind", "ears", "options"), MODELS)
def test_it_gives_the_numbers_of_the_stages_one_by_one(kind, ears, options):
    """And their state, bit for bit, block after block of different lengths."""
    model = kind(**options)
    unit = model.block_size
    state = apart = model.initial_state((2, ears))
    calls = count_of_calls(model)
    with torch.no_grad():
        for length in (unit, 150 * unit, unit, 3 * unit):
            x = sound(ears, length).to(model.dtype)
            y, state = model.step(x, state)
            expected, apart = model.unfused_step(x, apart)
            assert all(map(torch.equal, fields(y), fields(expected)))
            assert length == unit or y[0].abs().max() > 0
            assert state.keys() == apart.keys()
            assert all(torch.equal(state[key], apart[key]) for key in state)
    assert len(calls) == 5  # four by themselves, and the first of the model


@pytest.mark.cases(4)
@pytest.mark.parametrize(("kind", "ears", "options"), MODELS)
def test_a_stream_has_its_state_written_in_place(kind, ears, options):
    """What it gives and keeps is what steps give, and where it keeps it does not move."""
    model = kind(**options)
    unit = model.block_size
    live, state = Stream(model, (2, ears)), model.initial_state((2, ears))
    places = [value.data_ptr() for value in live.state.values()]
    with torch.no_grad():
        for length in (unit, unit, 70 * unit, 3 * unit):
            x = sound(ears, length).to(model.dtype)
            y, (expected, state) = live(x), model.unfused_step(x, state)
            assert all(map(torch.equal, fields(y), fields(expected)))
            assert all(torch.equal(state[key], value) for key, value in live.state.items())
    assert places == [value.data_ptr() for value in live.state.values()]


@pytest.mark.parametrize(("kind", "ears"), [(Moore2016, 2), (Glasberg2002, 1)])
def test_a_row_and_a_block_of_any_length_give_the_same_numbers(kind, ears):
    """To the last bit: no sum depends on how many rows or frames are taken at once."""
    model = kind(fs=48000)
    x = torch.cat([sound(ears, 4800), 10 * sound(ears, 4800)])
    with torch.no_grad():
        together = Stream(model, (4, ears))
        expected = torch.cat([together(block).stl for block in x.split(480, -1)], -1)
        for row in (0, 3):
            alone = Stream(model, (1, ears))
            y = [alone(block).stl for block in x[row : row + 1].split(48, -1)]
            assert torch.equal(torch.cat(y, -1)[0], expected[row])
    assert expected.max() > 1


def test_a_stream_of_equal_blocks_notices_each_change():
    """A hook, another table, one that moved or changed, an unfit one, and a state that moved."""
    model = Moore2016()
    live, x = Stream(model, (1, 2)), sound(2, 2560)[:1]
    calls = count_of_calls(model)

    def by_stages(block=x):
        before = len(calls)
        live(block)
        return len(calls) - before

    with torch.no_grad():
        assert [by_stages() for _ in range(3)] == [1, 0, 0]
        assert live._accepted[x.shape] is not None
        hook = model.ear.register_forward_hook(lambda stage, args, y: None)
        assert [by_stages(), by_stages()] == [1, 1]
        hook.remove()
        assert [by_stages(), by_stages()] == [0, 0]
        model.ear.partitions = 2 * model.ear.partitions
        assert [by_stages(), by_stages(), by_stages()] == [1, 0, 0]
        model.share_memory()
        live.share_memory()
        assert [by_stages(), by_stages(), by_stages()] == [1, 0, 0]
        live.load_state_dict({key: 0 * value for key, value in live.state_dict().items()})
        live(x)
        loud = live(x).stl.max()
        other = Stream(model, (1, 2))
        assert other(x[..., :320]).stl.max() < live(x).stl.max() > 0.9 * loud
        state = {key: value.clone() for key, value in live.state.items()}
        y, expected = live(x), Chain.step(model, x, state)[0]
        assert all(map(torch.equal, fields(y), fields(expected)))
        model.excitation.ends.add_(10_000)
        with pytest.raises(ValueError, match="groups are not those of 960 components"):
            live(x)
        model.excitation.ends.sub_(10_000)
    live(x.clone().requires_grad_()).stl.sum().backward()
    with torch.no_grad(), pytest.raises(ValueError, match="multiples of 32"):
        live(x[..., 1:])


def test_hooks_of_a_stream_and_another_way_of_it_see_each_block():
    class Doubled(Stream):
        def forward(self, block):
            return 2 * super().forward(block).energy

    x, seen = sound(2, 480), []

    def note(module, *_):
        seen.append(module)

    live, doubled = (kind(BS1770(), (2, 2)) for kind in (Stream, Doubled))
    everywhere = torch.nn.modules.module.register_module_forward_hook
    with torch.inference_mode():
        for _ in range(4):
            assert torch.equal(doubled(x), 2 * live(x).energy)
        for register in (live.register_forward_pre_hook, live.register_forward_hook, everywhere):
            handle = register(note)
            live(x)
            handle.remove()
            live(x)
            assert seen.pop() is live
            assert not seen


def test_a_stage_alone_notices_each_change():
    """A hook of it, a table in place, another one, and one that does not fit."""
    model = BS1770()
    live, x = Stream(model, (1, 2)), sound(2, 480)[:1]
    calls, seen = count_of_calls(model), []

    def energy():
        return live(x).energy.item()

    with torch.no_grad():
        for _ in range(60):
            expected = energy()
        assert len(calls) == 1
        hook = model.register_forward_hook(lambda stage, args, y: seen.append(y))
        assert energy() == pytest.approx(expected)
        hook.remove()
        assert len(seen) == len(calls) == 1
        model.gains.mul_(2)
        assert energy() == pytest.approx(2 * expected)
        model.gains = 2 * model.gains
        assert energy() == pytest.approx(4 * expected)
        assert energy() == pytest.approx(4 * expected)
        assert len(calls) == 2
        model.sections = model.sections[:1]
        with pytest.raises(ValueError, match="sections has shape"):
            live(x)


def test_a_refused_block_leaves_the_stream_as_it_was():
    model = Moore2016()
    live, x = Stream(model, (1, 2)), sound(2, 2560)[:1]
    with torch.no_grad():
        live(x)
        live(x)
        before = {key: value.clone() for key, value in live.state.items()}
        model.excitation.ends.add_(10_000)
        with pytest.raises(ValueError, match="groups are not those of 960 components"):
            live(x)
    assert all(torch.equal(before[key], value) for key, value in live.state.items())


def test_the_state_is_written_where_the_stream_keeps_it_now():
    """Of the stream that runs, also after another one, and after its state has moved."""
    model = Moore2016()
    first, other, expected = (Stream(model, (1, 2)) for _ in range(3))
    x = sound(2, 320)[:1]
    with torch.no_grad():
        for n in range(6):
            if n == 4:
                first.share_memory()
            first(x)
            other(0.1 * x)
            state = expected.state
            y, after = Chain.step(model, x, state)
            for key, value in state.items():
                value.copy_(after[key])
            assert all(torch.equal(first.state[key], value) for key, value in state.items())
    assert y.stl.max() > 0
    assert not torch.equal(first.state["spectrum/past"], other.state["spectrum/past"])


def test_sound_between_other_samples_is_read_as_it_is():
    model = Moore2016()
    live, plain = Stream(model, (1, 2)), Stream(model, (1, 2))
    x = sound(4, 2560)[:1]
    with torch.no_grad():
        for _ in range(3):
            y, expected = live(x[:, ::2]), plain(x[:, ::2].contiguous())
            assert torch.equal(y.stl, expected.stl)
    assert y.stl.max() > 0


def test_one_model_serves_several_threads():
    model = Moore2016()
    blocks = [sound(2, 32 * 200)[:1] * scale for scale in (0.1, 1, 3, 10)]

    def readings(x):
        live = Stream(model, (1, 2))
        with torch.no_grad():
            return torch.cat([live(block).ltl for block in x.split(32, -1)], -1)

    alone = [readings(x) for x in blocks]
    with ThreadPoolExecutor(4) as pool:
        assert all(map(torch.equal, pool.map(readings, blocks), alone))


def count_of_calls(model):
    """One for each block that goes from stage to stage."""
    stage = next(iter(model.parts().values()))
    name = "unfused_step" if stage is model else "step"
    calls, step = [], getattr(stage, name)
    stage.__dict__[name] = lambda x, state: (calls.append(x), step(x, state))[1]
    return calls


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "options",
    [
        {"filterbank_kwargs": {"n": 3}},
        {"modulation_kwargs": {"filter_type": "butterworth"}},
        {"modulation_kwargs": {"preset": "jepsen2008"}},
        {"learnable": True},
    ],
)
def test_filters_that_are_not_run_together_go_by_the_stages(options):
    model = Dau1997(16000, fhigh=1000.0, **options)
    live, state = Stream(model, ()), model.initial_state(())
    calls, x = count_of_calls(model), sound(1, 900)[0, 0]
    with torch.no_grad():
        for block in x.split(300):
            y, (expected, state) = live(block), Chain.step(model, block, state)
            assert torch.equal(y, expected)
    assert len(calls) == 6
    assert y.abs().max() > 0


def test_a_hook_a_gradient_and_another_table_go_by_the_stages():
    model = Moore2016()
    state = model.initial_state((2, 2))
    calls, x = count_of_calls(model), sound(2, 1472)
    with torch.no_grad():
        model.step(x, state)
        model.step(x, state)
        assert len(calls) == 1
        hook = model.ear.register_forward_hook(lambda stage, args, y: None)
        model.step(x, state)
        assert len(calls) == 2
        hook.remove()
        before, _ = model.step(x, state)
        assert len(calls) == 2
        model.ear.partitions = 2 * model.ear.partitions
        after, _ = model.step(x, state)
        assert len(calls) == 3
        assert after.stl.sum() > before.stl.sum()
        assert torch.equal(model.step(x, state)[0].stl, after.stl)
        assert len(calls) == 3
    model.step(x.requires_grad_(), state)[0].stl.sum().backward()
    assert len(calls) == 4
    assert x.grad.abs().max() > 0


def test_a_table_changed_in_place_is_heard_or_refused():
    model = Moore2016()
    state, x = model.initial_state((1, 2)), sound(2, 2560)[:1]
    with torch.no_grad():
        model.step(x, state)
        before, _ = model.step(x, state)
        model.ear.partitions.mul_(2)
        assert model.step(x, state)[0].stl.sum() > before.stl.sum()
        model.excitation.ends.add_(10_000)
        with pytest.raises(ValueError, match="groups are not those of 960 components"):
            model.step(x, state)


def test_tables_that_moved_are_read_where_they_are_now():
    model = Moore2016()
    state, x = model.initial_state((1, 2)), sound(2, 2560)[:1]
    calls = count_of_calls(model)
    with torch.no_grad():
        model.step(x, state)
        before, _ = model.step(x, state)
        assert len(calls) == 1
        model.share_memory()  # the same tensors, elsewhere
        for _ in range(2):
            assert torch.equal(model.step(x, state)[0].stl, before.stl)
        assert len(calls) == 2
        model.ear.partitions.mul_(2)
        assert model.step(x, state)[0].stl.sum() > before.stl.sum()
        assert len(calls) == 2


def test_a_table_that_learns_has_its_gradient():
    model = Moore2016()
    state, x = model.initial_state((1, 2)), sound(2, 2560)[:1]
    for _ in range(2):
        model.step(x, state)
    partitions = model.ear.partitions.requires_grad_()
    model.step(x, state)[0].stl.sum().backward()
    assert partitions.grad.abs().max() > 0


def test_what_is_transformed_first_goes_by_the_stages_and_later_does_not():
    model = Glasberg2002(accuracy="reference")  # the plain form of others takes three times as much
    state, x = model.initial_state((1, 1)), sound(1, 1408)[:1]
    calls = count_of_calls(model)
    slope = torch.func.grad(lambda x: model.step(x, state)[0].stl.sum())(x)
    assert slope.abs().max() > 0
    with torch.no_grad():
        for _ in range(3):
            model.step(x, state)
    assert len(calls) == 2


def test_a_state_that_does_not_fit_is_refused():
    model = Moore2016()
    state, x = model.initial_state((1, 2)), sound(2, 2560)[:1]
    with torch.no_grad():
        model.step(x, state)
        with pytest.raises(ValueError, match="zi has shape"):
            model.step(x, {**state, "spectrum/past": state["spectrum/past"][..., 1:]})
        with pytest.raises(ValueError, match="not a multiple of 32"):
            model.step(x[..., 1:], state)


def test_a_model_that_is_gone_is_forgotten():
    stream = Stream(Moore2016(), (1, 2))
    with torch.no_grad():
        stream(sound(2, 2560)[:1])
    made = weakref.ref(stream.stage._fused)
    assert made() is not None
    del stream
    assert made() is None


def test_a_copy_has_tables_and_state_of_its_own():
    door = Rebuffer(Stream(Moore2016(), (1, 2)))
    x = sound(2, 2560)[:1]
    with torch.no_grad():
        door.push(x[..., :1000])
        other = deepcopy(door)
        expected = door.push(x[..., 1000:]).stl
        del door
        assert torch.equal(other.push(x[..., 1000:]).stl, expected)
    assert expected.max() > 0
