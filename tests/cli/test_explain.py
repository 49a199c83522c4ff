"""`amt-stream explain`: shares of bands, and what less in a band does, against closed forms."""

import csv
import io
import json

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.cli.commands import explain as command
from amt_stream.core.tables import PLAIN
from amt_stream.dsp.functional.ecma418.bands import CENTERS
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows.models.band_shares import (
    band_limits,
    band_weights,
    binaural_parts,
    higher_parts,
)
from amt_stream.offline.explain import QUALITIES, Explanation, explain, weakened
from amt_stream.offline.whole_sound import WholeSound
from tests.sessions.report.conftest import FS

FULL_SCALE_DB = 100.0
T = np.arange(FS) / FS
A_500, A_4000 = -3.2, 1.0
"""A-weighting in dB (IEC 61672-1)."""
BANDS = np.array([[353.0, 500.0, 707.0], [707.0, 1000.0, 1414.0], [1414.0, 2000.0, 2828.0]])


def tone(hz, db_spl, rate=0.0):
    level = np.sqrt(1 / 1.5 if rate else 1.0) * 10 ** ((db_spl - FULL_SCALE_DB) / 20)
    return level * (1 + bool(rate) * np.sin(2 * np.pi * rate * T)) * np.sin(2 * np.pi * hz * T)


@pytest.fixture(scope="module")
def found():
    """500 Hz on the left, and 4 kHz modulated by 70 Hz on the right, in two bands."""
    sound = np.stack([tone(500, 60), tone(4000, 60, 70)], 1)
    return explain(sound, FS, FULL_SCALE_DB, lowest_hz=1000, highest_hz=2000)


def test_shares_are_where_the_sounds_are(found):
    assert found.band_names == ["1000", "2000"]
    assert found.places == ("both", "left", "right")
    for name, share in found.shares.items():
        assert share.shape == (2, 2)
        assert share.sum() == pytest.approx(1), name
        assert found.shares_by_second[name].shape == (1, 2, 2)
    loudness, roughness = found.shares["loudness"], found.shares["roughness"]
    assert loudness[0, 0] > 0.95 * loudness[0].sum() > 0.2
    assert loudness[1, 1] > 0.99 * loudness[1].sum() > 0.2
    assert roughness[1, 1] > 0.99
    assert found.shares["tonality"][0, 0] > 0.9


def test_changes_are_in_the_band_and_the_ear_of_the_sound(found):
    assert all(change.shape == (3, 2) for change in found.changes.values())
    roughness, loudness, tonality = (
        found.changes[name] for name in ("roughness", "loudness", "tonality")
    )
    both, left, right = range(3)
    assert np.abs(roughness[:, 0]).max() < 1e-6
    assert roughness[right, 1] == roughness[both, 1] < -0.01
    assert loudness[left, 0] < -0.1 > loudness[right, 1]
    # Where there is no sound, nothing changes: all is that of the other band and ear.
    np.testing.assert_allclose(loudness[both], [loudness[left, 0], loudness[right, 1]], atol=0.02)
    assert tonality[left, 0] < -0.002
    assert roughness[left, 1] == pytest.approx(0, abs=1e-6)
    assert loudness[right, 0] == pytest.approx(0, abs=0.01)
    # LAeq of two channels is that of the higher one.
    np.testing.assert_allclose(
        found.changes["laeq"][:, 1], [-3, 0, found.changes["laeq"][both, 1]], atol=0.02
    )


def test_values_are_those_of_a_measurement(found):
    sound = np.stack([tone(500, 60), tone(4000, 60, 70)], 1)
    summary = measure(sound, FS, "ecma,spl", FULL_SCALE_DB, step_ms=1000).summary
    for name, of in QUALITIES.items():
        assert found.values[name] == pytest.approx(summary[of.key], rel=2e-6), name


def test_ears_share_as_both_combine():
    specific = np.random.default_rng(2).random((2, 5, 53))
    specific[:, 0, 7] = 0
    parts = binaural_parts(specific)
    np.testing.assert_allclose(parts.sum(0), np.sqrt(np.square(specific).mean(0)))
    squares = np.square(specific)
    np.testing.assert_allclose(parts[0] * squares[1], parts[1] * squares[0])
    np.testing.assert_allclose(binaural_parts(specific[:1]), specific[:1])
    value = np.array([[1.0, 2.0, 2.0, 0.0, np.nan], [2.0, 1.0, 2.0, 0.0, 1.0]])
    parts = higher_parts(specific, value)
    of_left = np.array([0, 1, 0.5, 0.5, 0])[:, None]
    np.testing.assert_allclose(parts, specific * [of_left, 1 - of_left])


def test_bands_share_all_of_the_model():
    limits = band_limits(3)
    weights = band_weights(limits)
    np.testing.assert_allclose(weights.sum(1), 1)
    at = np.argmax(weights, 1)
    inner = slice(6, 50)
    assert np.all(CENTERS[inner] < 1.2 * limits[at[inner], 2])
    assert np.all(CENTERS[inner] > limits[at[inner], 0] / 1.2)


def test_laeq_of_two_tones_changes_as_by_hand():
    sound = WholeSound(
        (tone(500, 60) + tone(4000, 60))[:, None].astype(np.float32),
        FS,
        [Calibration(FULL_SCALE_DB)],
    )
    powers = 10 ** (np.array([60 + A_500, 60 + A_4000]) / 10)
    before, *after = (
        measure(one.samples, FS, "spl", FULL_SCALE_DB).summary["laeq_db"]
        for one in (sound, weakened(sound, BANDS, 0), weakened(sound, BANDS, 2))
    )
    less = 10**-0.3
    expected = [powers @ [less, 1], powers @ [1, less]]
    np.testing.assert_allclose(
        np.subtract(after, before), 10 * np.log10(expected / powers.sum()), atol=0.02
    )


def test_the_filters_of_all_bands_make_everything_weaker_by_3_db():
    noise = 0.05 * np.random.default_rng(1).standard_normal((FS // 4, 2)).astype(np.float32)
    sound = WholeSound(noise, FS, [Calibration(FULL_SCALE_DB)])
    less = sound
    for band in range(len(BANDS)):
        less = weakened(less, BANDS, band)
    # Where filters of other bands would ring in before the start, they are cut.
    inner = slice(2000, -2000)
    np.testing.assert_allclose(less.samples[inner], 10**-0.15 * noise[inner], atol=2e-4)


def test_texts_have_every_band(found, capsys):
    lines = command.text_lines(found)
    assert lines[0].startswith(f"loudness {found.values['loudness']:.2f} sone_HMS, roughness")
    assert lines[3].split("  ")[0].strip() == "band in Hz"
    assert len([line for line in lines if line.split()[:1] == ["1000"]]) == 4
    assert [line.rpartition(", ")[2] for line in lines if line.startswith("change in %")] == [
        *("both ears", "left ear", "right ear")
    ]
    assert lines[-1].split() == ["2000", *lines[-1].split()[1:4], "-3.00"]
    command.write_csv(found, PLAIN)
    text = capsys.readouterr().out
    rows = list(csv.DictReader(line for line in text.splitlines() if line[0] != "#"))
    assert [row["band_hz"] for row in rows] == found.band_names
    for place, key in enumerate(("laeq_change", "laeq_left_change", "laeq_right_change")):
        expected = found.changes["laeq"][place, 1]
        assert float(rows[1][key]) == pytest.approx(expected, rel=1e-5), key
    assert float(rows[1]["roughness_right_share"]) == pytest.approx(
        found.shares["roughness"][1, 1], rel=1e-5
    )
    again = json.load(io.StringIO(json.dumps(found.to_dict(), allow_nan=False)))
    assert again["changes"]["laeq"][0][1] == pytest.approx(found.changes["laeq"][0, 1], abs=1e-6)


def test_what_a_sound_lacks_has_no_share():
    nothing = {"roughness": np.full((1, 2), np.nan)}
    changes = {name: np.zeros((1, 2)) for name in ("roughness", "laeq")}
    values = {"roughness": 0.0, "laeq": 50.0}
    empty = Explanation(BANDS[:2], values, nothing, nothing, changes, True, 1.0)
    assert command.text_lines(empty)[4].split() == ["500", "---"]
    assert empty.to_dict()["shares"] == {"roughness": [[None, None]]}


def test_what_nobody_hears_has_no_share():
    heard, inaudible = tone(500, 60), tone(500, 7)
    found = explain(
        np.stack([heard, inaudible, heard], 1),
        FS,
        FULL_SCALE_DB,
        lowest_hz=1000,
        highest_hz=2000,
        channels=[2],
    )
    assert 0 < found.values["loudness"] < 0.02
    assert np.isnan(found.shares["loudness"]).all()
    assert np.isnan(found.shares_by_second["loudness"]).all()


@pytest.mark.parametrize(
    ("samples", "more", "words"),
    [
        (T[: FS // 2], [], "the sound has 0.5 s, of which roughness does not count the first"),
        (T, ["--lowest-hz", "2000", "--highest-hz", "500"], "give two ascending frequencies"),
        (T, ["--bands", "sixth"], "--bands"),
        (T, ["-c", "3"], "a.wav has no channel 3: it has 1, counted from 1"),
        (np.append(T, np.nan), [], "channel 1: repair the file"),
    ],
)
def test_a_mistake_is_one_sentence(said, sound_file, samples, more, words):
    sound_file(samples, name="a.wav")
    status, out, err = said("explain", "a.wav", *more)
    assert status in (1, 2)
    assert out == ""
    assert words in err.splitlines()[-1]


def test_the_command_prints_the_same(said, sound_file):
    sound_file(tone(500, 60), name="a.wav")
    options = ["--lowest-hz", "1000", "--highest-hz", "2000", "--format", "json"]
    options += ["--progress", "0.1"]
    status, out, err = said("explain", "a.wav", *options)
    assert status == 0
    assert "uncalibrated" in err
    assert err.splitlines()[-2].startswith("amt-stream: a.wav: 100%, 0 s left")
    found = json.loads(out)
    assert found["file"] == "a.wav"
    assert found["places"] == ["both"]
    assert found["changes"]["laeq"][0] == pytest.approx([-3, 0], abs=0.01)
    assert found["shares"]["loudness"][0][0] > 0.95
