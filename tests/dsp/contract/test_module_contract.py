"""What torch expects of a module, for every stage that the package exports."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import amt_stream as amt
from amt_stream import Stage, Stream
from amt_stream.dsp import models, stages
from amt_stream.dsp.streaming import fields, without
from tests.dsp.noise import noise


def power(*shape):
    return 1e4 * noise(*shape).square()


def level_db(*shape):
    return 50 + 10 * noise(*shape)


def at_60_db(*shape):
    """Louder, compression would amplify the rounding before it at every zero crossing."""
    return 0.02 * noise(*shape)


def loudness(*shape):
    return noise(*shape).square()


def knocking_machine(*shape):
    """A tone in noise, and a knock: what a rating looks for."""
    sound = 0.01 * noise(*shape) + 0.1 * torch.sin(0.8 * torch.arange(shape[-1]))
    sound[..., shape[-1] // 2 :][..., :400] *= 100
    return sound


@dataclass(frozen=True)
class Case:
    """How a stage is made, and an input of its `step`; called, it may take it in parts.

    slope_over: the distance over which its output has no kink, for numerical gradients
    """

    make: Callable[..., Stage]
    shape: tuple[int, ...]
    signal: Callable[..., torch.Tensor] = noise
    parts: Callable[[torch.Tensor], Any] = lambda x: (x,)
    slope_over: float = 1e-6

    def input(self, stage):
        return self.signal(*self.shape).to(stage.dtype)


def two_ears(x):
    """Frames of the ears apart."""
    return x[..., 0, 0, :], x[..., 1, 0, :]


BANDS = [200.0, 1000.0]
CASES = {
    "AdaptLoop": Case(lambda **o: amt.AdaptLoop(8000, **o), (2, 2, 16), loudness),
    "BS1770": Case(partial(amt.BS1770, 22050), (2, 2, 441)),
    "BinauralInhibition": Case(amt.BinauralInhibition, (2, 2, 3, 7), loudness, two_ears),
    "BinauralLoudness": Case(
        partial(stages.BinauralLoudness, "iso", 1, True), (2, 2, 3, 150), power
    ),
    "BrokenStickCompression": Case(amt.BrokenStickCompression, (2, 16, 3)),
    "ButterworthFilter": Case(lambda **o: amt.ButterworthFilter(2, 100.0, 8000, **o), (2, 3, 16)),
    "Chain": Case(lambda: amt.Chain(wait=amt.Delay(2), bend=nn.PReLU(3)), (2, 3, 16)),
    "CoreLoudness": Case(amt.CoreLoudness, (2, 3, 28), level_db),
    "Delay": Case(partial(amt.Delay, 3), (2, 3, 16)),
    "DRNLFilterbank": Case(lambda **o: amt.DRNLFilterbank(BANDS, 8000, **o), (2, 16)),
    "DanielWeber": Case(amt.DanielWeber, (1, 9600)),
    "DanielWeberRoughness": Case(amt.DanielWeberRoughness, (1, 9600)),
    "Dau1997": Case(lambda **o: amt.Dau1997(8000, 300.0, 600.0, **o), (2, 16), slope_over=1e-8),
    "ECMA418": Case(amt.ECMA418, (1, 2048)),
    "ECMAEarFilter": Case(amt.ECMAEarFilter, (2, 64)),
    "ECMAFilterbank": Case(amt.ECMAFilterbank, (2, 64)),
    "ECMAEnvelopes": Case(amt.ECMAEnvelopes, (2, 64)),
    "ECMAFluctuation": Case(amt.ECMAFluctuation, (1, 960)),
    "ECMALoudness": Case(amt.ECMALoudness, (1, 6144)),
    "ECMARoughness": Case(amt.ECMARoughness, (1, 4800)),
    "ECMASpecificFluctuation": Case(amt.ECMASpecificFluctuation, (1, 2, 53, 30), loudness),
    "ECMASpecificLoudness": Case(amt.ECMASpecificLoudness, (2, 3, 4, 53), loudness),
    "ECMASpecificRoughness": Case(amt.ECMASpecificRoughness, (1, 2, 53, 60), loudness),
    "ECMASpecificTonality": Case(amt.ECMASpecificTonality, (2, 3, 4, 53), loudness),
    "ECMATonality": Case(amt.ECMATonality, (1, 6144)),
    "ECMATonalNoise": Case(amt.ECMATonalNoise, (1, 53, 4096)),
    "EarFilter": Case(amt.EarFilter, (2, 2, 64)),
    "ERBIntegration": Case(
        lambda **o: amt.ERBIntegration(
            f_min=800.0, f_max=2000.0, erb_step=0.5, frequency=30.0 * np.arange(1, 120), **o
        ),
        (2, 3, 119),
        loudness,
    ),
    "Excitation": Case(amt.Excitation, (2, 3, 960), power),
    "ExcitationPattern": Case(partial(amt.ExcitationPattern, f_max=200.0), (2, 3, 17), level_db),
    "FastDRNLFilterbank": Case(lambda **o: amt.FastDRNLFilterbank(BANDS, 8000, **o), (2, 16)),
    "FastKing2019ModulationFilterbank": Case(
        lambda **o: amt.FastKing2019ModulationFilterbank(8000, nmod=3, **o), (2, 2, 16)
    ),
    "FastModulationFilterbank": Case(
        lambda **o: amt.FastModulationFilterbank(8000, BANDS, **o), (2, 2, 16)
    ),
    "Gain": Case(partial(amt.Gain, 0.3), (2, 3, 16)),
    "GammatoneFilterbank": Case(lambda **o: amt.GammatoneFilterbank(BANDS, 8000, **o), (2, 16)),
    "Glasberg2002": Case(partial(amt.Glasberg2002, 32000), (2, 1, 128)),
    "HeadphoneFilter": Case(partial(amt.HeadphoneFilter, 16000, 32), (2, 16)),
    "IHCEnvelope": Case(lambda **o: amt.IHCEnvelope(8000, **o), (2, 3, 16)),
    "IHCPaulick2024": Case(lambda **o: amt.IHCPaulick2024(8000, **o), (2, 3, 16)),
    "IIRFilter": Case(lambda **o: amt.IIRFilter([1.0, 0.5], [1.0, -0.9], **o), (2, 3, 16)),
    "King2019": Case(
        lambda **o: amt.King2019(8000, 300.0, 600.0, **o), (2, 16), at_60_db, slope_over=1e-9
    ),
    "King2019ModulationFilterbank": Case(
        lambda **o: amt.King2019ModulationFilterbank(8000, nmod=3, **o), (2, 2, 16)
    ),
    "ImpulseOnsets": Case(partial(amt.ImpulseOnsets, 8000), (2, 16000), knocking_machine),
    "Impulses": Case(partial(amt.Impulses, 8000), (2, 16000), knocking_machine),
    "LoudnessIntegration": Case(amt.LoudnessIntegration, (2, 5, 4), loudness),
    "MicrophoneCorrection": Case(
        partial(stages.MicrophoneCorrection, 8000, [[(100.0, 1.0), (2000.0, -1.0)], None]),
        (2, 2, 16),
    ),
    "MiddleEarFilter": Case(partial(amt.MiddleEarFilter, 16000, order=32), (2, 16)),
    "ModulationFilterbank": Case(
        lambda **o: amt.ModulationFilterbank(8000, BANDS, **o), (2, 2, 16)
    ),
    "ModulationRms": Case(partial(stages.ModulationRms, 1000, 4.0), (2, 2, 3, 16)),
    "ModulationSpectrum": Case(partial(amt.ModulationSpectrum, 16000, frame_ms=0.5), (2, 2, 16)),
    "MonauralLoudness": Case(partial(amt.MonauralLoudness, 1), (2, 2, 3, 150), power),
    "Moore2016": Case(partial(amt.Moore2016, 32000), (2, 2, 128)),
    "Moore2016AGC": Case(amt.Moore2016AGC, (2, 5, 3), loudness),
    "Moore2016BinauralLoudness": Case(
        amt.Moore2016BinauralLoudness, (2, 2, 3, 150), loudness, two_ears
    ),
    "Moore2016ExcitationPattern": Case(
        partial(amt.Moore2016ExcitationPattern, 10.0, 20.0),
        (2, 3, 960),
        power,
        lambda x: (torch.arange(1, 961) * 15.625, 10 * torch.log10(x)),
    ),
    "Moore2016SpecificLoudness": Case(amt.Moore2016SpecificLoudness, (2, 3, 150), level_db),
    "Moore2016TemporalIntegration": Case(amt.Moore2016TemporalIntegration, (2, 5, 4), loudness),
    "Osses2021": Case(lambda **o: amt.Osses2021(8000, 300.0, 600.0, **o), (2, 16), slope_over=1e-8),
    "NarrowBandSpectrum": Case(partial(amt.NarrowBandSpectrum, 8000, 12.5), (2, 640)),
    "OuterMiddleEarFilter": Case(
        partial(amt.OuterMiddleEarFilter, 16000, fhigh=4000.0, order=32), (2, 16)
    ),
    "Parallel": Case(lambda: amt.Parallel(now=nn.PReLU(3), then=amt.Delay(2)), (2, 3, 16)),
    "Paulick2024": Case(
        lambda **o: amt.Paulick2024(
            16000,
            n_channels=2,
            outerear_kwargs={"order": 32},
            adaptation_kwargs={"preset": None},
            **o,
        ),
        (2, 16),
        slope_over=1e-8,
    ),
    "PointwiseModule": Case(lambda: amt.PointwiseModule(nn.PReLU(3)), (2, 3, 16)),
    "PowerCompression": Case(amt.PowerCompression, (2, 16, 3)),
    "PartialLoudness": Case(partial(amt.PartialLoudness, 32000), (1, 2, 1600)),
    "PartialLoudnessOfComponents": Case(
        partial(
            amt.PartialLoudnessOfComponents,
            frequency=40.0 * np.arange(1, 51),
            cams=np.arange(4.0, 20.0),
        ),
        (1, 2, 50, 50),
        power,
    ),
    "Rating": Case(partial(amt.Rating, 8000), (1, 25600), knocking_machine),
    "Resample": Case(partial(amt.Resample, 48000, 32000), (2, 48)),
    "RunningSpectrum": Case(amt.RunningSpectrum, (2, 2, 128)),
    "SOSFilter": Case(lambda **o: amt.SOSFilter([[1, 0.5, 0, 1, -0.9, 0]], **o), (2, 3, 16)),
    "Sharpness": Case(amt.Sharpness, (2, 3, 240), loudness),
    "SoundLevel": Case(partial(amt.SoundLevel, 8000), (2, 160)),
    "SpatialSmoothing": Case(amt.SpatialSmoothing, (2, 3, 150), loudness),
    "SpecificLoudness": Case(partial(amt.SpecificLoudness, f_max=200.0), (2, 3, 17), level_db),
    "Stipa": Case(amt.Stipa, (2, 9600)),
    "StipaCells": Case(amt.StipaCells, (2, 9600)),
    "ThirdOctaveLevels": Case(amt.ThirdOctaveLevels, (2, 48)),
    "Octaves": Case(partial(amt.Octaves, 8000, 500.0), (2, 160)),
    "ThirdOctaves": Case(partial(amt.ThirdOctaves, 8000, 1000.0), (2, 160)),
    "TonalAudibility": Case(partial(amt.TonalAudibility, 8000), (1, 25600), knocking_machine),
    "ToneAudibility": Case(partial(amt.ToneAudibility, np.arange(40) * 2.7), (2, 3, 40), power),
    "ToneSpectrum": Case(partial(amt.ToneSpectrum, 8000), (1, 25600), knocking_machine),
    "ZwickerLoudness": Case(partial(amt.ZwickerLoudness, True), (2, 4, 20), loudness),
    "ZwickerTimeVarying": Case(partial(amt.ZwickerTimeVarying, 48000), (2, 96)),
}


def exported():
    """Every stage that can be imported by name, the base class apart."""
    homes = dict.fromkeys(amt.__all__, amt)
    homes |= {name: home for home in (stages, models) for name in home.__all__}
    found = {name: getattr(home, name) for name, home in homes.items()}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, Stage) and kind is not Stage
    }


STAGES = exported()
# It takes the argument, but has nothing to learn.
LEARNERS = [
    name
    for name, kind in STAGES.items()
    if "learnable" in inspect.signature(kind).parameters and name != "Moore2016ExcitationPattern"
]


DEAR = ("DanielWeber", "ECMA418", "ECMAFluctuation", "ECMARoughness", "ECMATonality")
"""Chains of which each stage is tried by itself, as is `ECMALoudness`: in `make soak`."""


def test_every_exported_stage_has_a_case():
    assert set(STAGES) == set(CASES)


@pytest.mark.parametrize("name", [name for name in STAGES if name not in DEAR])
def test_the_input_of_a_case_shows_in_every_output(name):
    stage = CASES[name].make()
    x, live = CASES[name].input(stage), Stream(stage, shape_of(CASES[name], stage))
    blocks = 3 + ceil(stage.latency / x.shape[stage.time_dim])
    with torch.no_grad():
        given = [fields(live(n * x)) for n in range(1, blocks + 1)]
    assert all(any(v.any() for v in y) for y in zip(*given, strict=True))


@pytest.fixture(
    params=[
        *(pytest.param(name, marks=[pytest.mark.soak] if name in DEAR else []) for name in STAGES),
        *(f"{name} learnable" for name in LEARNERS),
    ]
)
def case(request):
    """A stage of each kind, and of each that can learn also one that does."""
    name, _, learnable = request.param.partition(" ")
    chosen = CASES[name]
    options = {"learnable": True} if learnable else {}
    return Case(lambda: chosen.make(**options).float(), chosen.shape, chosen.signal, chosen.parts)


def shape_of(case, stage):
    return without(case.shape, stage.time_dim)


def stepped(case, stage):
    """Tensors that come out of one step from silence, for the input of `case`."""
    y, _ = stage.step(case.input(stage), stage.initial_state(shape_of(case, stage)))
    return fields(y)


def assert_same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.equal(b)


def changed(stage):
    """`stage` with other weights, as training leaves them."""
    with torch.no_grad():
        for weight in stage.parameters():
            weight.mul_(1.01)
    return stage


@pytest.mark.cases(37)
def test_a_checkpoint_holds_the_parameters_and_goes_into_another(case):
    stage, other = changed(case.make()), case.make()
    saved = stage.state_dict()
    assert set(saved) == {name for name, _ in stage.named_parameters()}
    other.load_state_dict(saved)
    assert_same(stepped(case, other), stepped(case, stage))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        other.load_state_dict({**saved, "more": torch.zeros(1)})
    for name in saved:
        with pytest.raises(RuntimeError, match="Missing key"):
            other.load_state_dict({key: v for key, v in saved.items() if key != name})


def tables(stage):
    return {name: v.clone() for name, v in stage.named_buffers()}


@pytest.mark.cases(37)
def test_dtype(case):
    stage = case.make()
    single, y = tables(stage), stepped(case, stage)
    assert stage.dtype == torch.float32
    assert {v.dtype for v in y if v.is_floating_point()} == {torch.float32}
    for half in (torch.float16, torch.bfloat16):
        with pytest.raises(TypeError, match=r"does not run in torch\.(float16|bfloat16)"):
            stage.to(half)
    assert_same(stepped(case, stage), y)
    stage.double()
    for module in stage.modules():
        for name, designed in getattr(module, "_designs", {}).items():
            exact = torch.tensor(designed)
            torch.testing.assert_close(getattr(module, name), exact, rtol=1e-14, atol=0)
    doubles = stepped(case, stage)
    assert {v.dtype for v in doubles if v.is_floating_point()} == {torch.float64}
    for a, b in zip(doubles, y, strict=True):
        torch.testing.assert_close(a, b.double(), rtol=1e-3, atol=1e-4 * b.abs().max().item())
    stage.float()
    for name, v in stage.named_buffers():
        assert v.dtype == single[name].dtype, name
        assert v.equal(single[name]), name
    assert_same(stepped(case, stage), y)


@pytest.mark.cases(37)
def test_device(case):
    stage = changed(case.make())
    y, saved = stepped(case, stage), copy.deepcopy(stage.state_dict())
    assert_same(stepped(case, stage.to("cpu")), y)
    with torch.device("meta"):
        drawn = case.make()
    for on_meta in (drawn, stage.to("meta")):
        assert {v.device.type for v in (*on_meta.parameters(), *on_meta.buffers())} == {"meta"}
    # Both forms hold the same, so one of them shows how a step goes, and of few samples.
    most = drawn.block_size * max(1, 2 // drawn.block_size)
    x = case.input(drawn)
    x = x.narrow(drawn.time_dim, 0, min(most, x.shape[drawn.time_dim]))
    here = case.make()
    expected, _ = here.step(x.to(here.dtype), here.initial_state(shape_of(case, here)))
    outputs, _ = drawn.step(x.to("meta"), drawn.initial_state(shape_of(case, drawn)))
    assert [v.shape for v in fields(outputs)] == [v.shape for v in fields(expected)]
    assert {v.device.type for v in fields(outputs)} == {"meta"}
    for on_meta in (drawn, stage):
        on_meta.to_empty(device="cpu").load_state_dict(saved)
        assert_same(stepped(case, on_meta), y)


def test_training_mode_changes_nothing(case):
    stage = case.make()
    y = stepped(case, stage.train())
    assert_same(stepped(case, stage.eval()), y)
    assert not any(module.training for module in stage.modules())


def test_gradients_can_be_turned_off_and_on(case):
    stage = case.make().requires_grad_(False)
    assert not any(v.requires_grad for v in stepped(case, stage))
    stage.requires_grad_(True)
    weights = dict(stage.named_parameters())
    assert all(weight.requires_grad for weight in weights.values())
    if weights:
        sum(v.sum() for v in stepped(case, stage)).backward()
        reached = {name for name, weight in weights.items() if weight.grad is not None}
        assert reached == set(weights)
        assert all(weight.grad.isfinite().all() for weight in weights.values())


def attributes(stage):
    """All that the stage and its parts hold: the objects, and what is in them."""
    held = {}
    for path, module in stage.named_modules():
        for key, value in vars(module).items():
            items = (
                value.items()
                if isinstance(value, dict)
                else enumerate(value)
                if isinstance(value, list | tuple)
                else ()
            )
            held[path, key] = value
            held |= {(path, key, item): inner for item, inner in items}
    return held


def test_all_is_there_before_the_first_call_and_step_keeps_nothing(case):
    stage = case.make()
    weights = {name: weight.shape for name, weight in stage.named_parameters()}
    before, values = attributes(stage), tables(stage)
    y = stepped(case, stage)
    after = attributes(stage)
    # The first step makes what runs a chain quickly, of the tables that are there.
    quick = [after.pop(key) for key in [*after] if key[1:] in (("_fused",), ("_begun",))]
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)
    assert all(v.equal(values[name]) for name, v in stage.named_buffers())
    stepped(replace(case, signal=lambda *shape: 3 * case.signal(*shape)), stage)
    for one in filter(None, quick):
        assert {id(table) for table in one.tables} <= {id(v) for v in stage.buffers()}
        for workspace in chain.from_iterable(one.workspaces.values()):
            for scratch in workspace.arrays.values():
                scratch.fill_(torch.nan if scratch.is_floating_point() else 99)
    assert_same(stepped(case, stage), y)
    stage(*case.parts(case.input(stage)))
    assert {name: weight.shape for name, weight in stage.named_parameters()} == weights


@pytest.mark.cases(37)
def test_copies_are_equal_and_apart(case):
    stage = changed(case.make())
    y = stepped(case, stage)
    for twin in (copy.deepcopy(stage), pickle.loads(pickle.dumps(stage))):
        assert_same(stepped(case, twin), y)
        assert twin.extra_repr() == stage.extra_repr()
        changed(twin)
        assert_same(stepped(case, stage), y)


def test_memory_can_be_shared(case):
    stage = case.make()
    y = stepped(case, stage)
    stage.share_memory()
    assert all(v.is_shared() for v in (*stage.parameters(), *stage.buffers()) if v.numel())
    assert_same(stepped(case, stage), y)


def test_it_says_what_it_is(case):
    stage = case.make()
    assert repr(stage).startswith(type(stage).__name__ + "(")
    assert stage.extra_repr() or any(True for _ in stage.children())
    if "learnable" in inspect.signature(type(stage)).parameters:
        assert stage.learnable == any(True for _ in stage.parameters())


@pytest.mark.cases(37)
def test_a_stream_is_saved_and_copied_in_mid_sound(case):
    stage = changed(case.make())
    x = case.input(stage)
    live = Stream(stage, shape_of(case, stage))
    with torch.no_grad():
        live(x)
        other = Stream(case.make(), shape_of(case, stage))
        other.load_state_dict(live.state_dict())
        twins = (other, copy.deepcopy(live), pickle.loads(pickle.dumps(live)))
        again = [fields(twin(x)) for twin in twins]
        expected = fields(live(x))
    for y in again:
        assert_same(y, expected)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        other.load_state_dict({**live.state_dict(), "more": torch.zeros(1)})
    live.double()
    kept = set(stage.keeps_double)
    assert all(v.dtype == torch.float64 for v in live.state.values() if v.is_floating_point())
    live.float()
    assert all(
        v.dtype == (torch.float64 if key in kept else torch.float32)
        for key, v in live.state.items()
        if v.is_floating_point()
    )


class Stepped(nn.Module):
    """One step from silence as a call, for `torch.func.functional_call`."""

    def __init__(self, case, stage):
        super().__init__()
        self.case, self.stage = case, stage

    def forward(self, x):
        y, _ = self.stage.step(x, self.stage.initial_state(shape_of(self.case, self.stage)))
        return fields(y)


@pytest.mark.parametrize("name", LEARNERS)
def test_gradients_are_the_slopes(name):
    case = CASES[name]
    stage = case.make(learnable=True).double()
    names, weights = zip(*stage.named_parameters(), strict=True)
    module = Stepped(case, stage)

    def output(x, *given):
        placed = {f"stage.{key}": weight for key, weight in zip(names, given, strict=True)}
        return torch.func.functional_call(module, placed, (x,))

    x = case.input(stage).requires_grad_()
    assert torch.autograd.gradcheck(
        output,
        (x, *weights),
        eps=case.slope_over,
        check_undefined_grad=False,
        fast_mode=True,
    )


@pytest.mark.cases(24)
def test_a_stream_becomes_that_of_the_wider_stage(case):
    stage = case.make()
    shape, x = shape_of(case, stage), case.input(stage).double()
    wider, expected = Stream(case.make(), shape).double(), Stream(case.make().double(), shape)
    with torch.no_grad():
        for a, b in zip(fields(wider(x)), fields(expected(x)), strict=True):
            peak = b.abs().max().item() if b.numel() else 0
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10 * peak)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_a_dtype_without_real_numbers_is_refused(case):
    stage = case.make()
    for module in (stage, Stream(stage, shape_of(case, stage))):
        for dtype in (torch.complex64, torch.complex128, torch.float16):
            with pytest.raises(TypeError, match=rf"does not run in {dtype}: .* float32 or float64"):
                module.to(dtype)
    assert stage.dtype == torch.float32


def test_autocast_is_refused(case):
    stage = case.make()
    parts, x = case.parts(case.input(stage)), case.input(stage)
    live = Stream(stage, shape_of(case, stage))
    with torch.autocast("cpu"):
        with pytest.raises(TypeError, match=r"does not run under autocast, .*enabled=False"):
            stage(*parts)
        with pytest.raises(TypeError, match="does not run under autocast"):
            live(x)
        with torch.autocast("cpu", enabled=False), torch.no_grad():
            live(x)
