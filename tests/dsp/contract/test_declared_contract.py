"""What a stage says of itself as a model: a value without meaning does not pass."""

import inspect
from fractions import Fraction

import pytest
import torch

from amt_stream.dsp.compose import Chain, Delay, Parallel
from amt_stream.dsp.contract import RULES, check_contract
from amt_stream.dsp.stages import (
    BS1770,
    Gain,
    GammatoneFilterbank,
    IHCEnvelope,
    LoudnessIntegration,
    Resample,
    RunningSpectrum,
    SoundLevel,
)
from amt_stream.dsp.streaming import Stage
from amt_stream.dsp.testing import check_stage
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from tests.dsp.contract.test_module_contract import STAGES

X = torch.randn(3, 2, 61, generator=torch.Generator().manual_seed(0))


class Energy(Stage):
    """Squares: a stage that says nothing of itself as a model."""

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        return x.square(), state


WRONG = {
    "fs": (0, -48000, "48 kHz", float("nan"), True),
    "input_unit": ("Pa", "full_scale", "", 1),
    "channels": (0, 1.5, "2", True),
    "per_channel": (1, "yes", None),
    "settle_s": (-1.0, float("inf"), "3 s", None),
    "memory_s": (-1.0, float("nan"), "3 s", None),
    "tail_s": (-1.0, float("nan"), "3 s", None),
    "frames_stand_for_end": (0, None),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_value_without_meaning_is_refused(name, value):
    said = f"{name} is .*: give "
    with pytest.raises(ValueError, match=f"Odd: {said}"):
        type("Odd", (Energy,), {name: value})
    with pytest.raises(ValueError, match=f"Energy: {said}"):
        setattr(Energy(), name, value)
    computed = type("Computed", (Energy,), {name: property(lambda self: value)})()
    with pytest.raises(ValueError, match=f"Computed: {said}"):
        check_contract(computed)
    with pytest.raises(AssertionError, match=f"Computed: {said}"):
        check_stage(type(computed), X)
    with pytest.raises(ValueError, match=f"Computed: {said}"):
        Engine(SignalSource([Tone(1000.0, level_db=60.0)], fs=48000, paced=False), computed)


class ThreeChannels(Energy):
    channels = 3


class RefusesOneChannel(Energy):
    per_channel = True

    def initial_state(self, shape):
        if shape[-1] != 2:
            raise ValueError("two ears, please")
        return {}


class AnyAndJustTwo(Energy):
    per_channel = True
    channels = 2


@pytest.mark.parametrize(
    ("defect", "rule"),
    [
        (ThreeChannels, "declares 3 channels and takes 2"),
        (RefusesOneChannel, "declares per_channel and refuses one channel: two ears, please"),
        (AnyAndJustTwo, "per_channel is True and channels is 2"),
    ],
)
def test_check_stage_catches_each_false_declaration(defect, rule):
    with pytest.raises(AssertionError, match=rule):
        check_stage(defect, X)
    check_stage(Energy, X)


def test_a_chain_says_what_follows_from_its_stages():
    chain = Chain(wait=Delay(3), meter=BS1770(48000, 5))
    assert {name: getattr(chain, name) for name in RULES} == {
        "fs": 48000,
        "input_unit": "full scale",
        "channels": 5,
        "per_channel": False,
        "settle_s": 0.1,
        "memory_s": 0.0,
        "tail_s": 0.1,
        "frames_stand_for_end": True,
    }
    slower = Chain(slower=Resample(44100, 48000), level=SoundLevel(48000))
    assert (slower.fs, slower.per_channel, slower.input_unit) == (44100, True, "pascal")
    assert slower.settle_s == SoundLevel.settle_s
    plain = Chain(gain=Gain(2.0))
    assert [getattr(plain, name) for name in RULES] == [
        *(None, None, None, False, 0.0, 0.0, 0.0, False)
    ]
    both = Parallel(level=Energy(), late=Delay(2))
    assert (both.fs, both.settle_s) == (None, 0.0)


def test_what_a_class_or_its_user_declares_wins_over_the_stages():
    class Programme(Chain):
        settle_s = 4.0

    model = Programme(to_full_scale=Gain(0.1), meter=BS1770(48000, 2))
    assert (model.settle_s, model.input_unit) == (4.0, "full scale")
    model.input_unit = "pascal"
    model.settle_s = 5.0
    assert (model.settle_s, model.input_unit) == (5.0, "pascal")


def test_stages_for_different_rates_are_no_chain():
    bank = GammatoneFilterbank((100.0, 4000.0), fs=48000)
    with pytest.raises(ValueError, match=r"'ihc' was built for 44100 Hz and gets 48000 Hz, as 'ba"):
        Chain(bank=bank, ihc=IHCEnvelope(44100))
    with pytest.raises(
        ValueError, match=r"gets 24000 Hz, as 'slower' was built for 48000 Hz: build"
    ):
        Chain(slower=Resample(48000, 24000), bank=bank)
    with pytest.raises(ValueError, match="'b' was built for 44100 Hz and gets 48000 Hz"):
        Parallel(a=GammatoneFilterbank((100.0, 4000.0), fs=48000), b=IHCEnvelope(44100))
    # `fs` of a stage of frames is that of the sound they came from.
    assert Chain(a=RunningSpectrum(), b=LoudnessIntegration(fs=48000)).fs == 32000


def test_the_engine_feeds_what_the_model_declares():
    """A full-scale sine of 90.3 dB SPL is 0.92 Pa and 1.0 of full scale."""
    heard = {}
    for unit in (None, "pascal", "full scale"):
        model = Energy()
        model.input_unit, model.settle_s = unit, 0.5
        frames = []
        source = SignalSource([Tone(1000.0, level_db=90.0)], fs=8000, duration=1.0, paced=False)
        calibration = Calibration(100.0, source="test")
        with Engine(source, model, [frames.append], calibration=calibration) as engine:
            engine.wait()
        values = torch.cat([torch.from_numpy(f.values) for f in frames], -1)
        heard[unit] = values.mean().item()
        settling = sum(int(f.settling.sum()) for f in frames)
        assert settling == pytest.approx(4000, abs=1)
    assert heard[None] == heard["pascal"]
    assert heard["pascal"] / heard["full scale"] == pytest.approx(
        calibration.pascal_per_unit**2, rel=1e-4
    )


def test_a_stage_that_says_nothing_runs_as_two_ears_at_any_rate():
    assert Energy().ratio == Fraction(1)
    for fs in (8000, 44100):
        engine = Engine(
            SignalSource([Tone(500.0, level_db=60.0)], fs=fs, duration=0.1, paced=False), Energy()
        )
        with engine:
            engine.wait()
        assert engine.health.device_state == "ended"


GAINS = [[[20.0, 0.0], [20000.0, 1.0]]]
OTHERS = {"fc": [200.0, 1000.0], "order": 2, "cutoff": 100.0, "fs_out": 32000, "gains": GAINS}
AT_A_RATE = [
    (kind, name)
    for kind in STAGES.values()
    for name in inspect.signature(kind).parameters
    if name in ("fs", "fs_in")
]


@pytest.mark.parametrize(
    ("kind", "name"), AT_A_RATE, ids=[f"{kind.__name__} {name}" for kind, name in AT_A_RATE]
)
@pytest.mark.parametrize("fs", ["banana", float("nan"), float("inf"), 0, -5, True])
def test_a_rate_that_is_none_is_refused_in_one_sentence(kind, name, fs):
    needed = [p.name for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
    arguments = {other: OTHERS[other] for other in needed if other != name}
    with pytest.raises(ValueError, match=r": fs is .*: (give|a sampling rate)"):
        kind(**arguments, **{name: fs})


def test_a_rate_too_low_to_resample_is_told_the_nearest_that_works():
    with pytest.raises(ValueError, match="the nearest rate that works is 25 Hz"):
        Resample(1, 32000)
