"""The loudness of a sound as something to learn from: its gradient, its words, its example."""

import pytest
import torch

from amt_stream import Glasberg2002, LoudnessLoss, Moore2016, ZwickerTimeVarying

FS = 32000


def noise(*shape, level_db=60.0, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return 20e-6 * 10 ** (level_db / 20) * x


@pytest.mark.parametrize("of", ["stl", "ltl", "specific_loudness"])
def test_from_sound_to_loudness_the_gradient_is_that_of_finite_differences(of):
    loss = LoudnessLoss(FS, of, unit="doublings").double()
    sound, along = noise(1, 2, 1920), noise(1, 2, 1920, seed=1)
    given = sound.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(given, target=0.5), given)
    with torch.no_grad():
        step = 1e-4 * along
        more, less = (loss(v, target=0.5) for v in (sound + step, sound - step))
    expected = ((more - less) / 2e-4).item()
    assert (slope * along).sum().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.cases(2)
@pytest.mark.parametrize("accuracy", ["exact", "reference", "coarse"])
def test_gradients_of_the_model_at_a_gain(accuracy):
    """Of loudness to the level, a number that can be read: about 3 % a dB at 60 dB SPL."""
    model, sound = Moore2016(FS, accuracy=accuracy).double(), noise(1, 2, 1600)
    gain_db = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loudness = model(sound * 10 ** (gain_db / 20)).stl[:, -20:].mean()
    (slope,) = torch.autograd.grad(loudness, gain_db)
    with torch.no_grad():
        more, less = (model(sound * 10 ** (db / 20)).stl[:, -20:].mean() for db in (1e-3, -1e-3))
    assert slope.item() == pytest.approx(((more - less) / 2e-3).item(), rel=1e-5)
    assert 0.05 < slope.item() / loudness.item() < 0.1


def test_float32_and_each_sound_of_a_batch_learn_alike():
    loss = LoudnessLoss(FS, "ltl", reduction="none")
    sounds = torch.cat([noise(1, 2, 1600), noise(1, 2, 1600, level_db=80, seed=1)])

    def slopes(loss, sounds):
        given = sounds.clone().requires_grad_()
        squares = loss(given, target=1.0)
        return torch.autograd.grad(squares.sum(), given)[0]

    single, exact = slopes(loss, sounds.float()), slopes(loss.double(), sounds)
    assert exact.abs().amax() > 0
    assert (single - exact).abs().amax() <= 1e-4 * exact.abs().amax()
    one_by_one = torch.cat([slopes(loss, sound[None]) for sound in sounds])
    assert (one_by_one - exact).abs().amax() <= 1e-12 * exact.abs().amax()


def test_what_is_kept_for_the_gradient_grows_by_60_mb_for_a_second_of_sound():
    def kept_mb(samples):
        loss, kept = LoudnessLoss(FS, "stl"), {}

        def keep(x):
            storage = x.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return x

        sound = noise(1, 2, samples).float().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            loss(sound, target=1.0)
        return sum(kept.values()) / 1e6

    assert 2.5 < kept_mb(3200) - kept_mb(1600) < 3.1  # 50 ms


@pytest.mark.quick
def test_reductions_units_and_a_reference():
    sound, other = noise(1, 2, 1920), noise(1, 2, 1920, level_db=65)
    each = LoudnessLoss(FS, "stl", reduction="none", skip_s=0.05).double()
    squares = each(sound, reference=other)
    assert squares.shape == (1, 10)
    assert torch.equal(squares, (each.loudness(sound) - each.loudness(other)).square())
    assert torch.equal(each(sound, target=each.loudness(other)), squares)
    assert each(sound, reference=sound).abs().max() == 0
    for reduction in ("mean", "sum"):
        loss = LoudnessLoss(FS, "stl", reduction=reduction, skip_s=0.05).double()
        assert loss(sound, reference=other) == getattr(squares, reduction)()
    doublings = LoudnessLoss(FS, "stl", "doublings", skip_s=0.05).double()
    target = doublings.loudness(sound) / 4
    assert doublings(sound, target=target).item() == pytest.approx(4)


@pytest.mark.parametrize("unit", ["sone", "doublings"])
def test_silence_has_a_finite_gradient(unit):
    sound = torch.zeros(1, 2, 1600, requires_grad=True)
    (slope,) = torch.autograd.grad(LoudnessLoss(FS, "stl", unit)(sound, target=1.0), sound)
    assert slope.isfinite().all()


@pytest.mark.parametrize("model", [Glasberg2002, ZwickerTimeVarying])
def test_other_models_take_its_place(model):
    of = "stl" if model is Glasberg2002 else "loudness"
    meter = model(FS)
    if of == "loudness":
        with pytest.raises(ValueError, match="gives no stl"):
            LoudnessLoss(FS, "stl", model=meter)(torch.zeros(1, 1, 3200), target=1.0)
        return
    sound = noise(1, 1, 1600).float().requires_grad_()
    loss = LoudnessLoss(FS, "stl", model=meter)(sound, target=0.0)
    assert torch.autograd.grad(loss, sound)[0].abs().max() > 0


@pytest.mark.parametrize(
    ("words", "given", "sentence"),
    [
        ({"of": "loud"}, {}, "of is 'loud': choose one of"),
        ({"unit": "phon"}, {}, "unit is 'phon': choose one of"),
        ({"reduction": "max"}, {}, "reduction is 'max': choose one of"),
        ({"skip_s": -1.0}, {}, "skip_s is -1.0: give seconds from 0 up"),
        ({"skip_s": 0.1}, {"target": 1.0}, "50 frames of loudness, the first 100 of which"),
        ({}, {}, "give either a target or a reference"),
        ({}, {"target": 1.0, "reference": torch.zeros(1, 2, 1600)}, "give either a target or"),
        ({}, {"reference": torch.zeros(1, 2, 800)}, "a reference of shape"),
        ({}, {"target": torch.zeros(3)}, r"a target of shape \(3,\) for loudness of \(1, 50\)"),
    ],
)
def test_what_is_refused(words, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        LoudnessLoss(FS, **words)(torch.zeros(1, 2, 1600), **given)
