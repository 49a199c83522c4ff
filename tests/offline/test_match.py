"""Gains that make sounds equally loud."""

import numpy as np
import pytest
import soundfile

from amt_stream import match, measure
from amt_stream.offline.match import MEASURES

FS = 48000
T = np.arange(FS // 2) / FS
FULL_SCALE_DB = 100.0
NOISE = 0.05 * np.random.default_rng(1).standard_normal((len(T), 2)).astype(np.float32)


def tone(hz, db_spl):
    return 10 ** ((db_spl - FULL_SCALE_DB) / 20) * np.sin(2 * np.pi * hz * T)


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("ltl", "max_ltl_phon"),
        ("zwicker", "zwicker_n5_phon"),
        pytest.param("ecma", "ecma_loudness_mean_sone", marks=pytest.mark.soak),
    ],
)
def test_a_matched_sound_measures_as_loud_as_the_reference(by, key):
    reference = tone(1000, 60)
    first, other = match([reference, NOISE], FS, by, FULL_SCALE_DB)
    assert (first.gain_db, first.before, first.after) == (0.0, first.before, first.before)
    louder = NOISE * np.float32(10 ** (other.gain_db / 20))
    measured = measure(louder, FS, MEASURES[by].model, FULL_SCALE_DB).summary[key]
    assert measured == pytest.approx(first.before, abs=0.01)
    assert measured == pytest.approx(other.after, rel=1e-12)
    assert other.peak_dbfs == pytest.approx(20 * np.log10(np.abs(louder).max()), abs=1e-4)


def test_the_loudness_level_is_the_level_of_a_1_khz_tone_that_is_as_loud():
    """48.9 phon of 4 kHz at 40 dB SPL: ISO 532-3:2023, Annex C."""
    _, other = match([tone(4000, 40), tone(1000, 40)], FS, "ltl", FULL_SCALE_DB)
    assert 40 + other.gain_db == pytest.approx(48.9, abs=0.2)


@pytest.mark.parametrize("by", ["lufs", "laeq"])
def test_a_measure_of_power_has_the_gain_of_the_levels(by):
    quieter = NOISE * np.float32(0.25)
    found = match([NOISE, quieter, NOISE], FS, by, FULL_SCALE_DB)
    assert [one.gain_db for one in found] == pytest.approx([0, 12.0412, 0], abs=0.002)


def test_a_gain_is_found_where_a_gate_makes_the_levels_grow_faster():
    """LUFS leaves out what is below -70: here the weaker half, until there is gain."""
    weak = np.concatenate([NOISE * np.float32(0.004), NOISE * np.float32(0.002)])
    reference, other = match([NOISE, weak], FS, "lufs")
    assert other.after == pytest.approx(reference.before, abs=0.01)
    assert other.gain_db > reference.before - other.before + 1
    assert not other.calibrated


def test_a_file_has_its_own_rate(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, NOISE, FS, "FLOAT")
    found = match([path, NOISE[::-1]], FS, "laeq")
    assert abs(found[1].gain_db) < 0.1


@pytest.mark.parametrize(
    ("sounds", "given", "words"),
    [
        ([NOISE], {}, "1 sound: give the reference, and at least one more"),
        ([NOISE, NOISE], {"by": "sone"}, "by is 'sone': there are ltl, zwicker, ecma, lufs, laeq"),
        ([NOISE, 0 * NOISE], {"by": "laeq"}, "sound 2 has no LAeq: it is silent"),
        ([0 * NOISE, NOISE], {"by": "ltl"}, "sound 1 has no highest long-term loudness"),
        ([NOISE, NOISE * 1e-4], {"by": "laeq"}, "cannot be made equally loud"),
        ([NOISE, NOISE], {"fs": None}, "fs is missing"),
    ],
)
def test_what_cannot_be_matched_is_refused(sounds, given, words):
    with pytest.raises(ValueError, match=words):
        match(sounds, **{"fs": FS, **given})
