"""Sharpness against the test sounds of DIN 45692:2009, which allows 5 % or 0.05 acum."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import Sharpness, ZwickerTimeVarying, check_stage, measure, zwicker_stationary
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stages.sharpness import LEAST_SONE, loudness_of
from amt_stream.meters.signals import Noise, mix

FS = 48000
GIVEN = json.loads((Path(__file__).parents[2] / "data/sharpness_din45692.json").read_text())
WEIGHTINGS = ("din", "aures", "bismarck")
NARROW = [(*case["band_hz"], case["sharpness_acum"]) for case in GIVEN["narrow"]]
BROAD = [(*case["white_noise_hz"], case["sharpness_acum"]) for case in GIVEN["broad"]]


def noise(low, high, level_db=60.0, seconds=1.0):
    """Pascal (time,) of noise between two frequencies."""
    one = Noise(low=low, high=high, level_db=level_db)
    return mix([one], FS, 0, round(seconds * FS))[:, 0]


def of_noise(low, high, weighting="din", level_db=60.0):
    specific = zwicker_stationary(torch.from_numpy(noise(low, high, level_db))).specific
    return Sharpness(weighting).double()(specific[None]).item()


@pytest.mark.cases(12)
@pytest.mark.parametrize(("low", "high", "acum"), [*NARROW, *BROAD])
def test_sounds_of_the_standard(low, high, acum):
    assert of_noise(low, high) == pytest.approx(acum, abs=max(0.05, 0.05 * acum))


def test_there_are_as_many_as_the_standard_has():
    assert (len(NARROW), len(BROAD)) == (21, 20)


def plainly(specific, weighting):
    """The formulas as they are written, value after value."""
    total = moment = last = 0.0
    for n in specific:
        total += 0.1 * (n if n > last else (n + last) / 2)
        last = n
    for k, n in enumerate(specific):
        z = 0.1 * (k + 1)
        if weighting == "din":
            g = 1.0 if z <= 15.8 else 0.15 * np.exp(0.42 * (z - 15.8)) + 0.85
        elif weighting == "bismarck":
            g = 1.0 if z <= 15 else 0.2 * np.exp(0.308 * (z - 15)) + 0.8
        else:
            g = 0.078 * np.exp(0.171 * z) / z * total / np.log(0.05 * total + 1)
        moment += 0.1 * n * g * z
    return 0.1115 * moment / total


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weightings(weighting):
    rng = np.random.default_rng(0)
    specific = rng.uniform(0, 2, (3, 240)) * rng.uniform(0.01, 3, (3, 1))
    got = Sharpness(weighting).double()(torch.from_numpy(specific))
    expected = [plainly(one, weighting) for one in specific]
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


def test_only_that_of_aures_grows_with_loudness():
    soft, loud = ({w: of_noise(920, 1080, w, db) for w in WEIGHTINGS} for db in (60, 80))
    for weighting in ("din", "bismarck"):
        assert loud[weighting] == pytest.approx(soft[weighting], rel=0.1)
    assert loud["aures"] > 1.3 * soft["aures"]
    assert soft["din"] == pytest.approx(soft["bismarck"], rel=1e-3)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_contract(weighting):
    x = torch.rand(2, 11, 240, generator=torch.Generator().manual_seed(0))
    x[0, 3:5] = 0.0
    x[1, 4] = LEAST_SONE / 30
    check_stage(lambda: Sharpness(weighting), x)


def test_without_loudness_there_is_none():
    specific = torch.zeros(2, 240)
    specific[1] = 0.99 * LEAST_SONE / 24
    assert Sharpness()(specific).tolist() == [0.0, 0.0]
    specific[1] *= 1.02
    expected = plainly([1.0] * 240, "din")
    assert Sharpness()(specific)[1].item() == pytest.approx(expected, rel=1e-5)


def test_loudness_is_that_of_the_exact_area():
    for low, high in ((200, 300), (920, 1080), (9500, 12000), (250, 10000)):
        found = zwicker_stationary(torch.from_numpy(noise(low, high)))
        assert loudness_of(found.specific).item() == pytest.approx(found.n.item(), rel=5e-4)


def test_a_weighting_that_there_is_not():
    with pytest.raises(ValueError, match="weighting is 'zwicker': give one of din, aures, bism"):
        Sharpness("zwicker")
    with pytest.raises(ValueError, match=r"give specific loudness at 0\.1, 0\.2 \.\.\. 24 Bark"):
        Sharpness()(torch.zeros(2, 24))


def test_a_live_reading_is_that_of_the_frames():
    """Of noise that goes on, as of a steady sound; columns are what the stage gives."""
    x = np.stack([noise(3700, 4400, 60, 1.5), noise(250, 10000, 60, 1.5)], 1)
    names = [f"sharpness{w}_{side}_acum" for w in ("", "_aures") for side in ("left", "right")]
    names += ["sharpness_acum", "sharpness_mean_left_acum", "sharpness_mean_right_acum"]
    m = measure(x, FS, "zwicker", calibration="pascal", columns=names, step_ms=2)
    model = ZwickerTimeVarying(specific_loudness=True)
    specific = model(torch.tensor(x.T, dtype=torch.float32)).specific
    for w, tail in (("din", ""), ("aures", "_aures")):
        expected = Sharpness(w)(specific).numpy()
        for channel, side in zip(expected, ("left", "right"), strict=True):
            got = m[f"sharpness{tail}_{side}_acum"][: len(channel)]
            heard = ~np.isnan(got)
            assert heard[10:].all()
            np.testing.assert_allclose(got[heard], channel[heard], rtol=1e-4)
    both = np.fmax(m["sharpness_left_acum"], m["sharpness_right_acum"])
    np.testing.assert_array_equal(m["sharpness_acum"], both)
    for one, side in zip(x.T, ("left", "right"), strict=True):
        steady = Sharpness().double()(
            zwicker_stationary(torch.from_numpy(one.copy())).specific[None]
        )
        assert m.summary[f"sharpness_mean_{side}_acum"] == pytest.approx(steady.item(), rel=0.02)


def test_silence_has_no_sharpness_and_counts_for_none():
    """Noise, then silence as long: no value there, and the mean of the noise alone."""
    x = np.concatenate([noise(920, 1080, 60, 1.5), np.zeros(3 * FS)])
    names = ["sharpness_acum", "sharpness_s5_acum", "sharpness_mean_acum"]
    m = measure(x, FS, "zwicker", calibration="pascal", columns=names, step_ms=10)
    assert np.isnan(m["sharpness_acum"][[0, -1]]).all()
    assert m["sharpness_acum"][100] == pytest.approx(1.0, rel=0.1)
    assert m.summary["sharpness_mean_acum"] == pytest.approx(1.0, rel=0.1)
    nothing = measure(P0 * x[-FS:], FS, "zwicker", calibration="pascal", columns=names)
    assert nothing.summary["sharpness_mean_acum"] is None
    assert np.isnan(nothing["sharpness_s5_acum"]).all()


def test_it_is_in_no_summary_unless_a_column_asks():
    x = noise(920, 1080, 60, 1.0)
    plain = measure(x, FS, "zwicker", calibration="pascal").summary
    assert not [name for name in plain if "sharpness" in name]
    asked = measure(x, FS, "zwicker", calibration="pascal", columns=["sharpness_bismarck_acum"])
    told = {name for name in asked.summary if "sharpness" in name}
    assert "sharpness_bismarck_s5_acum" in told
    assert all(name.startswith("sharpness_bismarck_") for name in told)
