"""Tones, impulses and A-weighted levels against printed examples, and on sounds with known ones."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import (
    Impulses,
    Rating,
    TonalAudibility,
    ToneAudibility,
    ToneSpectrum,
    check_stage,
)
from amt_stream.dsp.functional.rating import tones
from amt_stream.dsp.functional.rating.onsets import STATES, impulse_onsets
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stages.rating import a_weights

DATA = json.loads((Path(__file__).parents[2] / "data" / "rating.json").read_text("utf-8"))
PRINTED = DATA["annex_E"]
LINE_HZ = 44100 / 16384
"""Hertz between the printed lines; the tables round it to one decimal."""
HZ = LINE_HZ * np.arange(36, 74)
FS = 16000


def db(power):
    return 10 * np.log10(power)


def power(level_db):
    return P0**2 * 10 ** (np.asarray(level_db) / 10)


def of_spectrum(level_db, hz=HZ):
    stage = ToneAudibility(hz).double()
    return [float(v) for v in stage(torch.from_numpy(power(level_db))[None])[:-1]]


def white(db_per_hz, seconds, fs, seed):
    noise = np.random.default_rng(seed).standard_normal(round(seconds * fs))
    return P0 * np.sqrt(10 ** (db_per_hz / 10) * fs / 2) * noise


def tone(hz, level_db, seconds, fs):
    return (
        P0
        * np.sqrt(2)
        * 10 ** (level_db / 20)
        * np.sin(2 * np.pi * hz / fs * np.arange(round(seconds * fs)))
    )


def spectra(sound, fs):
    """The tones of all spectra of a sound."""
    y = TonalAudibility(fs)(torch.from_numpy(sound).float()[None])
    return [v[y.complete > 0].double().numpy() for v in y[:-1]]


def single(at):
    """Noise, tone and audibility in dB of the printed tone at `at` Hz, each alone."""
    places, values = np.empty((38, 3), np.int64), np.empty((38, 4))
    count = tones._single_tones(power(PRINTED["level"]), HZ, LINE_HZ, places, values)
    (k,) = np.flatnonzero(np.abs(HZ[places[:count, 0]] - at) < 0.1)
    return *db(values[k, [0, 2]] / P0**2), values[k, 3], HZ[places[:count, 0]]


def test_the_printed_tone():
    noise, level, audible, found = single(PRINTED["tone"])
    assert [noise, level, audible] == pytest.approx(
        [PRINTED["LS"], PRINTED["LT"], PRINTED["dL"]], abs=0.006
    )
    np.testing.assert_allclose(found, [118.4, 137.3, 158.8], atol=0.05)


def test_printed_tones_join():
    complete, audible, hz, level, _, _, count = of_spectrum(PRINTED["level"])
    assert level == pytest.approx(PRINTED["combined_LT_three_tones"], abs=0.005)
    assert (complete, count) == (1, 3)
    # The printed lines end below the critical band of the highest tone: too little noise is left of
    # it, and it leads. With all lines the printed audibility is 9.18 dB, at 137.3 Hz.
    assert hz == pytest.approx(158.8, abs=0.05)
    assert audible == pytest.approx(9.05, abs=0.02)


def test_printed_rows():
    """Audibility from printed levels; with the lines 2.7 Hz apart it would be 0.022 dB off."""
    off = [
        tones._audibility(10 ** (r["LT"] / 10), 10 ** (r["LS"] / 10), r["f"], LINE_HZ) - r["dL"]
        for r in DATA["rows"]
    ]
    assert np.abs(off).max() < 0.0095
    assert np.sqrt(np.mean(np.square(off))) < 0.0065


@pytest.mark.parametrize(
    ("level_db", "found"),
    [
        ([40] * 38, (-10, 0, 0)),  # noise alone
        ([40] * 19 + [70] + [40] * 18, (70 - 40, HZ[19], 1)),
        ([40] * 14 + [70] * 11 + [40] * 13, (-10, 0, 0)),  # wider than a tone
        ([40] * 18 + [45.9] + [40] * 19, (-10, 0, 0)),  # less than 6 dB above the noise
    ],
)
def test_spectra_with_and_without_a_tone(level_db, found):
    """A line above even noise: LS is 1.76 dB below it, and one line loses nothing."""
    complete, audible, hz, level, noise, _, count = of_spectrum(level_db)
    above, at, joined = found
    assert (complete, hz, count) == pytest.approx((1, at, joined))
    if not joined:
        assert audible == -10
        return
    _, width = tones.critical_band(at)
    expected = above + 1.76 - db(width / LINE_HZ) - tones.masking_index(at)
    assert (level, noise, audible) == pytest.approx((70, 38.24, expected), abs=1e-3)


def test_two_tones_far_apart_stay_single():
    hz = LINE_HZ * np.arange(60, 300)
    for apart, joined in ((6, 2), (16, 1)):  # fD is 21 Hz at 212 Hz
        level_db = np.full(hz.size, 40.0)
        level_db[[20, 20 + apart]] = 70, 69
        *_, count = of_spectrum(level_db, hz)
        assert count == joined


def test_uncertainty_of_one_tone_and_of_three():
    """9 dB^2 for each, 4.34 df/width for the band; weights by power."""
    level_db = np.full(38, 40.0)
    level_db[19] = 70
    *_, uncertainty, _ = of_spectrum(level_db)
    _, width = tones.critical_band(HZ[19])
    first, width = tones.critical_band(HZ[19])
    lines = np.sum((first <= HZ) & (first + width >= HZ)) - 1
    expected = 1.645 * np.sqrt(9 * (1 + 1 / lines) + (4.34 * LINE_HZ / width) ** 2)
    assert uncertainty == pytest.approx(expected, abs=1e-6)


def test_the_window_reads_a_tone_on_a_line():
    stage = ToneSpectrum(FS).double()
    at = 400
    sound = tone(at * stage.line_hz, 60, stage.spectrum_s + 0.1, FS)
    y = stage(torch.from_numpy(sound)[None])[0].numpy()
    (frame,) = np.flatnonzero(y[:, at])
    assert frame == np.ceil(stage.spectrum_s * 10) - 1
    weight_db = db(a_weights(stage.frequencies[at]))
    assert db(y[frame, at] / P0**2) == pytest.approx(60 + weight_db, abs=1e-6)


def test_a_weights():
    """IEC 61672-1:2013, Table 3."""
    hz = 1000 * 10 ** (np.array([-16, -10, -3, 0, 6, 10]) / 10)
    np.testing.assert_allclose(db(a_weights(hz)), [-44.7, -19.1, -3.2, 0, 1, -2.5], atol=0.06)


EXPECTED = {(c["tone_hz"], c["tone_db"]): c["dL"] for c in DATA["tone_in_white"]}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("hz", "level_db"), EXPECTED)
def test_a_tone_in_white_noise(hz, level_db):
    """The mean of 12 spectra, for each of three seeds; up to 0.24 dB are lost between lines."""
    off = []
    for seed in range(3):
        sound = white(20, 35.2, 48000, seed) + tone(hz, level_db, 35.2, 48000)
        _, audible, at, *_ = spectra(sound, 48000)
        assert len(audible) == 12
        np.testing.assert_allclose(at, hz, atol=2)
        off.append(db(np.mean(10 ** (audible / 10))) - EXPECTED[hz, level_db])
    assert min(off) > -0.6
    assert max(off) < 0.5
    assert -0.45 < np.mean(off) < 0.25


def test_white_noise_has_no_tone():
    _, audible, *_, count = spectra(white(20, 60, FS, 4), FS)
    assert len(audible) >= 20
    assert (audible == -10).all()
    assert not count.any()


def test_louder_changes_no_audibility_and_no_prominence():
    sound = white(30, 7, FS, 5) + tone(500, 60, 7, FS)
    sound[4 * FS :] *= 10
    low, high = (Rating(FS)(torch.from_numpy(k * sound)[None]) for k in (1.0, 10**0.3))
    torch.testing.assert_close(high.audibility, low.audibility, atol=1e-4, rtol=0)
    for field in (3, 4, 5):
        both = high.onsets[..., field], low.onsets[..., field]
        torch.testing.assert_close(*both, rtol=1e-4, atol=1e-4)
    assert low.onsets[..., 3].max() == pytest.approx(20, abs=1)


def onsets(level_db, step_s=0.02):
    zi = torch.zeros(1, STATES, dtype=torch.float64)
    times = torch.tensor([step_s, 1.0], dtype=torch.float64)
    y, _ = impulse_onsets(torch.as_tensor(level_db, dtype=torch.float64)[None], times, zi)
    return y[0][y[0, :, 4] > 0].numpy()


@pytest.mark.parametrize("step", DATA["energy_steps"], ids=str)
def test_steps_of_energy_through_f(step):
    t = step["dt"] * np.arange(round(4 / step["dt"])) - 2
    before, after = 10 ** (step["from_db"] / 10), 10 ** (step["to_db"] / 10)
    energy = np.where(t <= 0, before, after + (before - after) * np.exp(-t / 0.125))
    (found,) = onsets(db(energy), step["dt"])
    np.testing.assert_allclose(found[3:6], [step[key] for key in ("LD", "OR", "P")], rtol=1e-4)


def brute(level, step_s=0.02):
    """The onsets of a whole trace, plainly: (start, end) in levels."""
    steep = 10 * step_s
    rises = np.flatnonzero(np.diff(level) > steep)
    rises = rises[rises >= 49]  # to the first level at 1 s
    runs = np.split(rises, np.flatnonzero(np.diff(rises) > 1) + 1)
    joined = []
    for start, end in ((v[0], v[-1] + 1) for v in runs if len(v)):
        if joined and start - joined[-1][1] <= 2:
            a, b = joined[-1]
            ends = level[end] - level[b] > steep * (end - b)
            if ends and level[start] - level[a] > steep * (start - a):
                joined[-1][1] = end
                continue
        joined.append([start, end])
    return joined


def test_random_traces_as_from_the_whole():
    rng, number = np.random.default_rng(6), 0
    for _ in range(40):
        level = 50 + np.cumsum(rng.normal(0, 0.4, 400)) + 3 * rng.random(400)
        level = np.append(level, level[-1] - np.arange(1, 6))
        expected = []
        for a, b in brute(level):
            slope = np.polyfit(0.02 * np.arange(b - a + 1), level[a : b + 1], 1)[0]
            if slope > 10:
                expected.append([level[a], level[b] - level[a], slope])
        np.testing.assert_allclose(onsets(level)[:, 2:5], expected, atol=1e-6)
        number += len(expected)
    assert number > 1000


def test_an_onset_that_may_go_on_is_known_20_ms_after_its_end():
    rise = 50 + np.r_[np.zeros(60), 4 * np.arange(1, 5), np.full(20, 16.0)]
    zi = torch.zeros(1, STATES, dtype=torch.float64)
    times = torch.tensor([0.02, 1.0], dtype=torch.float64)
    for gap in (0, 2, 3):
        level = np.append(rise, np.full(20, 66.0))
        level[64 + gap :] += 5 if gap else 0
        y = impulse_onsets(torch.as_tensor(level)[None], times, zi)[0][0].numpy()
        ends, waits = y[:, 5], y[:, 6]
        alone = 3 * np.log10(200) + 2 * np.log10(16)
        assert waits[64] == pytest.approx(alone)
        assert y[64, 7] == pytest.approx(0.1)
        assert not waits[:64].any()
        if gap == 2:  # one with the next rise
            assert not ends[:67].any()
            assert waits[67] == ends[69] != pytest.approx(alone)
        else:
            assert ends[66] == pytest.approx(alone)


def test_a_steady_sound_has_no_onset():
    for sound in (white(40, 8, FS, 7), tone(1000, 70, 8, FS)):
        y = Impulses(FS)(torch.from_numpy(sound)[None])
        level = db(y.fast.numpy() / P0**2)
        steady = np.abs(level[:, 20:] - level[:, 20:].mean()).max() < 3
        assert steady
        # Noise swells a little by chance: an onset of it has no adjustment (P = 5 is K_I = 0).
        assert y.onsets[..., 5].max() < 5


def test_a_hammer_is_an_onset_at_its_time():
    sound = white(20, 4, FS, 8)
    sound[2 * FS : 2 * FS + 80] *= 1000
    y = Impulses(FS)(torch.from_numpy(sound)[None])
    frame, step = (int(v) for v in (y.onsets[0, ..., 4] > 0).nonzero()[0])
    began_ago, ended_ago, _, rise, rate, prominence, *_ = y.onsets[0, frame, step].tolist()
    known_s = 0.1 * frame + 0.02 * (step + 1)
    assert known_s - began_ago == pytest.approx(2.0, abs=0.021)
    assert ended_ago == pytest.approx(0.06)
    assert known_s < 2.12
    assert rise > 30
    assert prominence == pytest.approx(3 * np.log10(rate) + 2 * np.log10(rise), abs=1e-5)


def test_levels_are_those_of_a_sound_level_meter():
    from amt_stream import SoundLevel

    sound = torch.from_numpy(white(40, 2, FS, 9) + tone(200, 60, 2, FS))[None]
    mine, other = Impulses(FS).double()(sound), SoundLevel(FS).double()(sound)
    torch.testing.assert_close(
        mine.mean_square, other.mean_square[:, 0].unflatten(-1, (-1, 10)).mean(-1)
    )
    torch.testing.assert_close(mine.fast.flatten(-2), other.power[:, 0, 1::2])


@pytest.mark.parametrize("make", [lambda: Rating(8000), lambda: Impulses(11025)])
def test_they_stream(make):
    noise = torch.randn(2, 1, 30000, generator=torch.Generator().manual_seed(1))
    noise[..., 20000:] *= 20
    check_stage(make, noise, tolerance=1e-9)


def test_what_is_no_input_is_refused():
    for make in (ToneSpectrum, Impulses, TonalAudibility, Rating):
        with pytest.raises(ValueError, match="fs is 4000"):
            make(4000)
    with pytest.raises(ValueError, match="fs is 11025: give a multiple of 50 Hz"):
        ToneSpectrum(11025)
    with pytest.raises(ValueError, match="combine is 'mean': give 'sum' or 'max'"):
        Rating(combine="mean")
    with pytest.raises(ValueError, match="not equally spaced"):
        ToneAudibility(np.array([1.0, 2, 4]))
