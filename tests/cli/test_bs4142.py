"""A rating level above the background, of a log with and without a sound."""

import json

import numpy as np
import pytest
import soundfile

from amt_stream.sessions.results import ResultsError
from amt_stream.sessions.results.bs4142 import LOW, Assessment, Penalties

FS = 16000


@pytest.fixture
def rows(tmp_path, said):
    """A tone for 4 s that is 10 dB above a steady one, which goes on alone for 4 s."""
    t = np.arange(8 * FS) / FS
    sound = 0.02 * np.sin(2 * np.pi * 1000 * t)
    sound[: 4 * FS] *= np.sqrt(10)
    soundfile.write("machine.wav", sound, FS)
    status, _, err = said(
        *("analyze", "machine.wav", "--full-scale-db", 100, "--model", "spl"),
        *("--step-ms", 100, "--out", "machine.csv"),
    )
    assert status == 0, err
    return "machine.csv"


PARTS = ("--from", 1, "--to", 4, "--background-from", 6, "--background-to", 8)


def test_the_form_of_a_log(rows, said):
    penalties = ("--tonal", 4, "--impulsive", 3)
    status, out, err = said("bs4142", rows, *PARTS, *penalties, "--format", "json")
    assert status == 0, err
    found = json.loads(out)
    assert found["ambient_db"] - found["residual_db"] == pytest.approx(10, abs=0.02)
    # Of 10 dB more, 0.46 dB are of what goes on without the sound.
    assert found["specific_db"] == pytest.approx(found["ambient_db"] - 0.458, abs=0.01)
    assert found["rating_db"] == pytest.approx(found["specific_db"] + 7, abs=0.01)
    assert found["difference_db"] == pytest.approx(10 - 0.458 + 7, abs=0.05)
    assert "significant" in found["words"]
    assert "was not at hand" in found["label"]
    status, out, _ = said("bs4142", rows, *PARTS, *penalties)
    assert status == 0
    assert "rating level above background 16.5 dB" in " ".join(out.split())
    assert "was not at hand" in out


def test_what_is_too_close_is_refused(rows, said):
    status, out, err = said("bs4142", rows, "--from", 5, "--to", 6, *PARTS[4:])
    assert (status, out) == (1, "")
    assert "they have to be 3 dB apart" in err


@pytest.mark.parametrize(
    ("ambient_db", "words"), [(61, "significant"), (56, "an adverse"), (52, "less likely")]
)
def test_words_of_a_difference(ambient_db, words):
    assert words in Assessment(ambient_db, 40.0, 50.0, Penalties()).words


def test_below_the_background_the_impact_is_low():
    assert Assessment(49.0, 30.0, 50.0, Penalties()).words == LOW
    with pytest.raises(ResultsError, match=r"LAeq is 50\.0 dB, and without it 48\.0 dB"):
        _ = Assessment(50.0, 48.0, 45.0, Penalties()).difference_db
