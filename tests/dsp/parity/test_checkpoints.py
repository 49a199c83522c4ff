"""Checkpoints of torch_amt, by the documented names, and our own."""

import copy
import io
import math
import re

import numpy as np
import pytest
import scipy
import torch
from torch import nn

import amt_stream
from amt_stream import (
    AdaptLoop,
    BinauralInhibition,
    BrokenStickCompression,
    ButterworthFilter,
    Chain,
    Dau1997,
    DRNLFilterbank,
    FastDRNLFilterbank,
    FastKing2019ModulationFilterbank,
    GammatoneFilterbank,
    HeadphoneFilter,
    IHCEnvelope,
    IHCPaulick2024,
    IIRFilter,
    King2019ModulationFilterbank,
    LoudnessIntegration,
    MiddleEarFilter,
    ModulationFilterbank,
    Moore2016AGC,
    Moore2016BinauralLoudness,
    Moore2016SpecificLoudness,
    Moore2016TemporalIntegration,
    OuterMiddleEarFilter,
    PowerCompression,
    SOSFilter,
    SpatialSmoothing,
    SpecificLoudness,
    Stream,
)
from amt_stream.dsp.stages.drnl import VECTORS, drnl_parameters
from amt_stream.dsp.stages.hair_cell import CELL
from amt_stream.dsp.streaming import fields
from tests.dsp.parity.golden import GOLDEN

FS = 16000
GENUINE = torch.load(GOLDEN / "torch_amt_checkpoints.pt", weights_only=True)
TOLD = {  # what is not as it is there, and what the warning says of it
    ("AdaptLoop", "learned"): "learned b0 is not 1 - a1, so that a loop has a gain at 0 Hz",
    ("ButterworthFilter", "learned"): "a learned pole is on or outside the unit circle",
    ("GammatoneFilterbank", "learned"): "learned gains do not give a gain of 1",
    ("IHCPaulick2024", "learned"): "G_precharge is .* where it is not learned",
    ("MiddleEarFilter", "learned"): "define a filter that torch_amt designs differently, and it",
    (
        "OuterMiddleEarFilter",
        "learned",
    ): "fir_coeffs and tf_gains .*designs differently, and it",
    ("HeadphoneFilter", "learned"): "define a filter that torch_amt designs differently, and it",
    **{
        (name, kind): "of the checkpoint: no place for it here"
        for name in (
            "King2019ModulationFilterbank",
            "FastKing2019ModulationFilterbank",
            "ModulationFilterbank",
        )
        for kind in ("fixed", "learned")
    },
}
REDESIGNED = ("MiddleEarFilter", "OuterMiddleEarFilter", "HeadphoneFilter")
CASES = [(name, kind) for name in GENUINE for kind in ("fixed", "learned")]
CASES.remove(("Moore2016ExcitationPattern", "learned"))  # of which nothing is learned here


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_checkpoint_that_torch_amt_wrote_loads_or_says_what_is_not_taken(name, kind):
    made = GENUINE[name]

    def make():
        return getattr(amt_stream, made["class"])(**made["arguments"], learnable=kind == "learned")

    stage, saved = make(), made[kind]["state"]
    told = TOLD.get((name, kind))
    if told:
        with (
            pytest.warns(UserWarning, match=f"{told}.*not taken"),
            pytest.raises(RuntimeError, match=r"Missing key|Unexpected key"),
        ):
            stage.load_state_dict(saved)
        with pytest.warns(UserWarning, match=f"{told}.*not taken"):
            missing, unexpected = make().load_state_dict(saved, strict=False)
        assert [*missing, *unexpected]
        return
    if name in REDESIGNED:
        with pytest.warns(UserWarning, match="torch_amt designs differently: not taken, the"):
            stage.load_state_dict(saved)
    else:
        stage.load_state_dict(saved)
    if "y" in made[kind]:
        y = stage(*made["x"])
        for a, b in zip(y if isinstance(y, tuple) else [y], made[kind]["y"], strict=True):
            close(a, b, 2e-5)


def tensors(**values):
    return {name: torch.as_tensor(value, dtype=torch.float32) for name, value in values.items()}


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def close(got, expected, tolerance=1e-5):
    for a, b in zip(fields(got), fields(expected), strict=True):
        assert (a - b).abs().max() <= tolerance * b.abs().max()


# Made with the learned values where the class takes them; the checkpoint has the documented names.
LIKE_ANOTHER = [
    (
        BrokenStickCompression,
        {},
        {"knee_db": 42.0, "exponent": 0.4},
        tensors(knee_db_param=42.0, exponent=0.4, knee=10 ** (-58 / 20)),
        noise(2, 50, 3),
    ),
    (
        PowerCompression,
        {"num_channels": 3},
        {"exponent": torch.tensor([0.2, 0.3, 0.4])},
        tensors(knee_db_param=30.0, exponent=[0.2, 0.3, 0.4]),
        noise(2, 50, 3),
    ),
    (
        Moore2016AGC,
        {},
        {"attack_alpha": 0.3, "release_alpha": 0.02},
        tensors(attack_alpha=0.3, release_alpha=0.02),
        noise(50, 3),
    ),
    (
        Moore2016TemporalIntegration,
        {},
        {"stl_attack": 0.3, "stl_release": 0.02, "ltl_attack": 0.04, "ltl_release": 0.003},
        {
            f"{part}.{name}": torch.tensor(value)
            for part, name, value in (
                ("stl_agc", "attack_alpha", 0.3),
                ("stl_agc", "release_alpha", 0.02),
                ("ltl_agc", "attack_alpha", 0.04),
                ("ltl_agc", "release_alpha", 0.003),
            )
        },
        noise(50, 150).square(),
    ),
    (BinauralInhibition, {}, {"p": 1.2}, tensors(p=1.2), noise(2, 3, 150).square()),
    (
        Moore2016BinauralLoudness,
        {},
        {"p": 1.2, "sigma": 0.05},
        {
            "spatial_smoothing.sigma": torch.tensor(0.05),
            "spatial_smoothing.kernel_width": torch.tensor(18.0),
            "inhibition.p": torch.tensor(1.2),
        },
        noise(2, 3, 150).square(),
    ),
    (
        AdaptLoop,
        {"fs": FS},
        {"fs": FS, "tau": [0.004, 0.06, 0.1, 0.2, 0.6], "limit": 7.0, "minspl": 10.0},
        None,
        noise(2, 3, 400).square(),
    ),
]


@pytest.mark.parametrize(
    ("kind", "made", "learned", "saved", "x"),
    LIKE_ANOTHER,
    ids=[k[0].__name__ for k in LIKE_ANOTHER],
)
def test_learned_values_are_those_of_one_made_with_them(kind, made, learned, saved, x):
    other = kind(**{**made, **learned})
    if kind is AdaptLoop:
        names = ("minlvl", "a1", "b0", "limit", "corr", "mult", "init_state")
        saved = {name: getattr(other, name).clone() for name in names}
    stage = kind(**made, learnable=True)
    stage.load_state_dict(saved)
    x = tuple(x) if kind in (BinauralInhibition, Moore2016BinauralLoudness) else (x,)
    close(stage(*x), other(*x), 2e-5)
    assert not any(torch.equal(a, b) for a, b in zip(stage(*x), kind(**made)(*x), strict=True))


def filled(stage, **values):
    """`stage`, which does not learn, with other constants."""
    for name, value in values.items():
        getattr(stage, name).copy_(value)
    return stage


def test_learned_tables_of_specific_loudness():
    x = 50 + 10 * noise(2, 3, 150)
    saved = tensors(ethrq_adjustment=noise(150), C=0.06, alpha=0.25, E0_offset=8.0)
    stage = SpecificLoudness(learnable=True)
    stage.load_state_dict({**saved, "fc_erb": stage.fc_erb, "ethrq_base": stage.ethrq_base})
    close(stage(x), filled(SpecificLoudness(), **saved)(x))
    plain = Moore2016SpecificLoudness()
    saved = {name: getattr(plain, name) * 1.1 for name in ("G", "A", "Alpha")}
    learner = Moore2016SpecificLoudness(learnable=True)
    learner.load_state_dict(
        {**saved, "C": torch.tensor(0.07), "fc": plain.fc, "threshold_db": plain.threshold_db}
    )
    filled(plain, **saved).C = 0.07
    close(learner(x), plain(x))


def test_learned_smoothing():
    x = noise(2, 150).square()
    stage = SpatialSmoothing(learnable=True)
    stage.load_state_dict(tensors(sigma=0.05, kernel_width=20.0))
    g = torch.linspace(-1, 1, 145) * 20
    weights = torch.exp(-((0.05 * g) ** 2))
    padded = nn.functional.pad(x[:, None], (72, 72), mode="reflect")
    expected = nn.functional.conv1d(padded, (weights / weights.sum())[None, None])[:, 0]
    close(stage(x), expected)


def test_learned_time_constants():
    x = noise(2, 60, 4).square()
    stage = LoudnessIntegration(learnable=True)
    with pytest.warns(UserWarning, match="ltl_state of the checkpoint is not taken"):
        stage.load_state_dict(tensors(tau_attack=0.08, tau_release=0.3, ltl_state=[1.0, 2.0]))
    up, down = (1 - np.exp(-1 / (62.5 * tau)) for tau in (0.08, 0.3))
    y, expected = np.zeros(2), []
    for n in x.sum(-1).T.double().numpy():
        y = y + np.where(n > y, up, down) * (n - y)
        expected.append(y)
    close(stage(x), torch.from_numpy(np.array(expected).T).float())


def test_learned_low_passes_of_hair_cells():
    x = noise(2, 3, 300)
    stage = IHCEnvelope(FS, method="breebaart2001", learnable=True)
    stage.load_state_dict(tensors(b=[0.3, 0.25], a=[1.0, -0.4]))
    expected = x.clamp(min=0).double().numpy()
    for _ in range(5):
        expected = scipy.signal.lfilter([0.3, 0.25], [1, -0.4], expected)
    close(stage(x), torch.from_numpy(expected).float())


def test_learned_constants_of_the_hair_cell():
    values = {name: 1.1 * value for name, value in CELL.items()}
    stage = IHCPaulick2024(48000, learnable=True)
    stage.load_state_dict({**tensors(**values), "V_rest": torch.tensor(-57.03e-3)})
    for name, value in values.items():
        assert getattr(stage, name).item() == pytest.approx(value, rel=1e-5)
    with pytest.warns(UserWarning, match="has changed its sign"):
        told = IHCPaulick2024(48000, learnable=True).load_state_dict(
            tensors(**{**values, "x0": -1e-9}), strict=False
        )
    assert set(told.unexpected_keys) == set(CELL)


@pytest.mark.parametrize(
    ("kind", "names"), [(DRNLFilterbank, VECTORS), (FastDRNLFilterbank, ("a", "b", "c"))]
)
def test_learned_drnl(kind, names):
    fc = [500.0, 2000.0]
    start = drnl_parameters(np.array(fc))
    saved = {name: torch.from_numpy(1.05 * start[name]) for name in names}
    rest = {name: torch.from_numpy(v) for name, v in start.items() if name not in names}
    stage = kind(fc, FS, learnable=True)
    stage.load_state_dict({**saved, **rest})
    for name, value in saved.items():
        torch.testing.assert_close(getattr(stage, name), value)


@pytest.mark.parametrize(
    "kind",
    [
        lambda **o: HeadphoneFilter(FS, 32, **o),
        lambda **o: MiddleEarFilter(FS, order=32, **o),
        lambda **o: OuterMiddleEarFilter(FS, fhigh=4000.0, order=32, **o),
    ],
)
def test_learned_taps(kind):
    stage, x = kind(learnable=True), noise(2, 200)
    taps = noise(33)
    stage.load_state_dict({"fir_coeffs": taps})
    close(stage(x), torch.from_numpy(scipy.signal.lfilter(taps.numpy(), [1.0], x.numpy())).float())


def test_learned_sections():
    sos = scipy.signal.butter(4, 1000, fs=FS, output="sos")
    sos[0, :3] *= 1.05
    x = noise(2, 300)
    expected = torch.from_numpy(scipy.signal.sosfilt(sos, x.double().numpy())).float()
    for stage in (
        SOSFilter(scipy.signal.butter(4, 300, fs=FS, output="sos"), learnable=True),
        ButterworthFilter(4, 300.0, FS, learnable=True),
    ):
        stage.load_state_dict({"sos": torch.from_numpy(sos)})
        close(stage(x), expected)
    b, a = scipy.signal.butter(2, 1000, fs=FS)
    stage = IIRFilter([1.0, 0, 0], [1.0, -0.1, 0], learnable=True)
    stage.load_state_dict(tensors(b=b, a=a))
    close(stage(x), torch.from_numpy(scipy.signal.lfilter(b, a, x.double().numpy())).float())
    with pytest.warns(UserWarning, match="outside the unit circle"):
        told = stage.load_state_dict(tensors(b=2 * b, a=[1.0, -2.5, 1.2]), strict=False)
    assert told.unexpected_keys == ["b", "a"]


def test_learned_gammatone_filters():
    other = GammatoneFilterbank([300.0, 900.0], FS, betamul=1.3)
    stage = GammatoneFilterbank([310.0, 950.0], FS, learnable=True)
    stage.load_state_dict({"poles": other.poles.clone(), "gains": other.gains.clone()})
    close(stage(noise(2, 300)), other(noise(2, 300)), 1e-4)
    with pytest.warns(UserWarning, match="gains do not give a gain of 1"):
        told = GammatoneFilterbank([310.0, 950.0], FS, learnable=True).load_state_dict(
            {"poles": other.poles, "gains": 2 * other.gains}, strict=False
        )
    assert told.unexpected_keys == ["poles", "gains"]
    assert told.missing_keys == ["log_fc", "log_bandwidth"]


def test_a_model_of_which_all_is_learned():
    made = {"fs": FS, "flow": 300.0, "fhigh": 900.0}
    other = Dau1997(**made, filterbank_kwargs={"betamul": 1.2}, adaptation_kwargs={"limit": 8.0})
    ihc = {"ihc.b": torch.tensor([0.3, 0.25]), "ihc.a": torch.tensor([1.0, -0.4])}
    loops = ("minlvl", "a1", "b0", "limit", "corr", "mult")
    saved = {
        "filterbank.poles": other.filterbank.poles,
        "filterbank.gains": other.filterbank.gains,
        **{f"adaptation.{name}": getattr(other.adaptation, name) for name in loops},
        "modulation.att_factor": torch.tensor(0.8),
        **ihc,
    }
    stage = Dau1997(**made, learnable=True)
    told = stage.load_state_dict(saved, strict=False)
    assert told.unexpected_keys == []
    assert set(told.missing_keys) == {"modulation.log_center", "modulation.log_bandwidth"}
    hair_cells = IHCEnvelope(FS, learnable=True)
    hair_cells.load_state_dict({"b": ihc["ihc.b"], "a": ihc["ihc.a"]})
    bank = ModulationFilterbank(FS, other.fc, preset="dau1997", att_factor=0.8)
    chain = Chain(a=other.filterbank, b=hair_cells, c=other.adaptation, d=bank)
    x = 0.1 * noise(2, 400)
    for got, expected in zip(stage(x), bank.split(chain(x)), strict=True):
        close(got, expected, 1e-3)


@pytest.mark.parametrize("strict", [False, True])
def test_sections_of_a_bank_are_told(strict):
    """Bands here have a center and a width; free sections have more."""
    for stage, key in (
        (King2019ModulationFilterbank(FS, nmod=2, learnable=True), "filters.0.sos"),
        (FastKing2019ModulationFilterbank(FS, nmod=2, learnable=True), "sos_stack"),
        (ModulationFilterbank(FS, [500.0], learnable=True), "filter_coeffs.0.1.0"),
    ):
        words, saved = rf"{re.escape(key)} of the checkpoint: no place", {key: torch.ones(2, 6)}
        if strict:
            with (
                pytest.warns(UserWarning, match=words),
                pytest.raises(RuntimeError, match=rf'Unexpected key.*"{re.escape(key)}"'),
            ):
                stage.load_state_dict(saved)
        else:
            with pytest.warns(UserWarning, match=words):
                told = stage.load_state_dict(saved, strict=False)
            assert told.unexpected_keys == [key]


def test_constants_that_are_equal_are_dropped_and_others_told():
    agc = Moore2016AGC()
    same = tensors(attack_alpha=0.045, release_alpha=0.033)
    assert str(agc.load_state_dict(same)) == "<All keys matched successfully>"
    words = (
        "attack_alpha is 0.3 in the checkpoint and 0.045 here, where it is not learned: not taken"
    )
    with pytest.warns(UserWarning, match=words):
        told = agc.load_state_dict(tensors(attack_alpha=0.3, release_alpha=0.033), strict=False)
    assert told.unexpected_keys == ["attack_alpha"]
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(RuntimeError, match=r'Unexpected key.*"stl_agc\.attack_alpha"'),
    ):
        Moore2016TemporalIntegration().load_state_dict({"stl_agc.attack_alpha": torch.tensor(0.3)})
    assert agc.attack_alpha.item() == pytest.approx(0.045)


BOUND = [
    (SpecificLoudness, {"erb_step": 0.25}, {"f_min": 60.0, "f_max": 17890.0}, "f_min=50"),
    (Moore2016SpecificLoudness, {}, {"variant": "iso532-3"}, "variant='documented'"),
    (LoudnessIntegration, {}, {"frame_rate": 1000.0}, "frame_rate"),
    (IHCEnvelope, {"fs": 48000}, {"fs": 44100}, "fs=48000"),
    (AdaptLoop, {"fs": 48000}, {"fs": 44100}, "fs=48000"),
    (BrokenStickCompression, {}, {"dboffset": 94.0}, "dboffset=100"),
]


@pytest.mark.parametrize(("kind", "made", "other", "word"), BOUND)
def test_a_checkpoint_made_with_other_arguments_is_refused(kind, made, other, word):
    file = io.BytesIO()
    torch.save(kind(**made, learnable=True).state_dict(), file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    kind(**made, learnable=True).load_state_dict(saved)
    with pytest.raises(RuntimeError, match=f"the checkpoint was made with {word}"):
        kind(**{**made, **other}, learnable=True).load_state_dict(saved, strict=False)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "attack_alpha is nan in the checkpoint: give numbers from -0.5 to 1.5"),
        (2.0, "attack_alpha is 2 in the checkpoint"),
        (-math.inf, "attack_alpha is -inf in the checkpoint"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_a_value_that_cannot_be_is_refused(value, said, strict):
    saved = Moore2016AGC(learnable=True).state_dict()
    saved["attack_alpha"] = torch.tensor(value)
    stage = Moore2016AGC(learnable=True)
    with pytest.raises(RuntimeError, match=re.escape(said)) as refused:
        stage.load_state_dict(saved, strict=strict)
    assert "Missing" not in str(refused.value)
    assert 0 < stage.attack_alpha < 1
    saved["attack_alpha"] = torch.tensor(1.01)
    stage.load_state_dict(saved)
    assert stage.coefficients[0] == 1.0


def test_not_a_number_is_refused_wherever_something_is_learned():
    saved = SpatialSmoothing(learnable=True).state_dict()
    key = next(iter(saved))
    saved[key] = torch.full_like(saved[key], math.nan)
    with pytest.raises(RuntimeError, match=f"{key} is nan in the checkpoint: give finite numbers"):
        SpatialSmoothing(learnable=True).load_state_dict(saved)


def test_a_constant_that_was_changed_stays_so_in_another_dtype():
    stage = SpecificLoudness()
    stage.C.fill_(0.1)
    stage.double()
    assert stage.C.item() == pytest.approx(0.1, rel=1e-6)
    assert stage.alpha.item() == 0.2
    assert copy.deepcopy(stage).float().C.item() == pytest.approx(0.1, rel=1e-6)


def test_assigning_keeps_the_dtype():
    saved = Stream(Moore2016AGC(learnable=True).double(), (3,)).state_dict()
    live = Stream(Moore2016AGC(learnable=True), (3,))
    live.load_state_dict(saved, assign=True)
    assert {v.dtype for v in live.state_dict().values()} == {torch.float32}
    live(torch.rand(4, 3))
