"""`amt-stream stipa`: the test signal from a loudspeaker to a result, and files."""

import contextlib
import json
import subprocess
from functools import partial

import numpy as np
import pytest
import soundfile

from amt_stream import stipa_signal
from amt_stream.meters.accumulators.stipa import WORDS, Reason
from amt_stream.sessions.results.stipa_positions import INTERRUPTED, overall, read_positions
from tests.dsp.metrology.test_stipa import FS, carriers, noise_like

QUIET = [50.0] * 7


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Modulated tones, 17 s; with --full-scale-db 90 its octaves have 34 to 58 dB SPL."""
    path = tmp_path_factory.mktemp("stipa") / "hall.wav"
    soundfile.write(path, carriers(np.full((7, 2), 0.7), 17), FS, subtype="FLOAT")
    return path


def heard(run, path, *more):
    done = run("stipa", "--source", path, "--format", "json", *more)
    assert done.status in (0, 1), done.err
    return json.loads(done.out)


def test_the_signal_is_written_once(run, tmp_path):
    path = tmp_path / "signal.wav"
    done = run("stipa", "--write", path, "--samplerate", 24000, "--play-level", -26, "--seed", 7)
    assert done.status == 0, done.err
    sound, fs = soundfile.read(path)
    assert (fs, len(sound)) == (24000, 2400000)
    np.testing.assert_allclose(sound, stipa_signal(24000, 7, rms=10**-1.3), atol=2e-7)
    done = run("stipa", "--write", path)
    assert done.status == 1
    assert "exists: --force overwrites it" in done.err


def test_a_recording_is_read_as_a_table(run, recording):
    done = run("stipa", "--source", recording)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["Hz", "m1", "m2", "MTI", "dB"]
    assert lines[3].split()[:3] == ["500", "0.70", "0.70"]
    assert lines[-2].startswith("STI 0.62 ± 0.008, category D, after 16 s")
    assert lines[-1].startswith("not calibrated:")


def test_noise_that_was_measured_apart_is_added(run, recording):
    quiet = heard(run, recording, "--full-scale-db", 90)
    noisy = heard(run, recording, "--full-scale-db", 90, "--noise", ",".join(map(str, QUIET)))
    assert quiet["calibrated"]
    assert noisy["m"] == quiet["m"]
    assert noisy["sti"] < quiet["sti"] - 0.1
    assert noisy["noise_db"] == QUIET
    done = run("stipa", "--source", recording, "--noise", ",".join(map(str, QUIET)))
    assert done.status == 1
    assert "noise that is added needs the true level" in done.err
    done = run("stipa", "--source", recording, "--noise", "50,60")
    assert done.status == 2
    assert "give seven levels in dB SPL" in done.err


def test_noise_is_measured_first(run, tmp_path):
    path = tmp_path / "noise.wav"
    noise = noise_like(np.random.default_rng(1).normal(0, 0.01, 12 * FS), 2)
    soundfile.write(path, noise, FS, subtype="FLOAT")
    done = run("stipa", "--source", path, "--noise-first", "--full-scale-db", 100)
    assert done.status == 0, done.err
    levels = [float(one) for one in done.out.split(",")]
    expected = 100 + 3.01 + 20 * np.log10(0.01)
    assert 10 * np.log10(sum(10 ** (one / 10) for one in levels)) == pytest.approx(
        expected, abs=0.5
    )
    done = run("stipa", "--source", path, "--noise-first")
    assert done.status == 1
    assert "the level of noise has to be true" in done.err


def test_positions_have_a_report(run, recording, tmp_path):
    kept, page = tmp_path / "hall.json", tmp_path / "hall.html"
    report = "--save", kept, "--report", page
    heard(run, recording, "--save", kept, "--position", "Row 1")
    heard(run, recording, "--duration", 16.5, "--position", "Row 2 <", *report)
    done = run(
        "stipa", "--source", recording, "--duration", 8, "--save", kept, "--position", "Row 3"
    )
    assert done.status == 1
    assert "not valid: less than 15 s" in done.out
    assert "2 valid positions: mean 0.62, lowest 0.62 at" in done.err
    positions = read_positions(kept)
    assert [one.name for one in positions] == ["Row 1", "Row 2 <", "Row 3"]
    assert overall(positions).number == 2
    html = page.read_text("utf-8")
    assert "Row 2 &lt;" in html
    assert "NOT CALIBRATED" in html
    assert "mean of 2" in html
    heard(run, recording, "--save", kept, "--position", "Row 1", "--full-scale-db", 90)
    assert [one.name for one in read_positions(kept)] == ["Row 2 <", "Row 3", "Row 1"]


def test_another_file_is_left_alone(run, recording, tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}")
    done = run("stipa", "--source", recording, "--save", path)
    assert done.status == 1
    assert "has no positions" in done.err
    assert path.read_text() == "{}"


def test_digital_silence_has_no_numbers(run, sound_file, tmp_path):
    silent, saved = sound_file(np.zeros(5 * FS, np.float32)), tmp_path / "hall.json"
    page = tmp_path / "hall.html"
    given = "--source", silent, "--full-scale-db", 90
    done = run("stipa", *given, "--save", saved, "--report", page)
    assert done.status == 1
    assert [line.split()[1:] for line in done.out.splitlines()[1:8]] == [["---"] * 4] * 7
    (one,) = read_positions(saved)
    assert (one.level_db, one.words) == ([None] * 7, "no signal")
    assert page.read_text().count("---") == 7 * 4
    done = run("stipa", *given, "--noise-first")
    assert (done.status, done.out) == (1, "")
    assert "no sound in the octaves of 125, 250, 500, 1000, 2000, 4000, 8000 Hz" in done.err


def test_silence_and_noise_are_no_signal(run, tmp_path):
    path = tmp_path / "noise.wav"
    soundfile.write(path, np.random.default_rng(1).normal(0, 0.05, 17 * FS), FS)
    done = run("stipa", "--source", path)
    assert done.status == 1
    assert "no signal: play the STIPA test signal" in done.out
    assert "STI 0" not in done.out
    done = run("stipa", "--source", path, "--duration", 2)
    assert done.status == 1
    assert "too little: measure for 15 s or more" in done.err


def test_clipping_is_not_too_short_a_sound(run, tmp_path):
    path = tmp_path / "clipped.wav"
    x = 30 * carriers(np.full((7, 2), 0.7), 17)
    soundfile.write(path, np.clip(x, -1, 1), FS, subtype="PCM_16")
    done = run("stipa", "--source", path)
    assert done.status == 1
    assert "17 s of the sound were clipped or missing, and less than 4 s" in done.err


def test_a_recording_with_nan_is_refused(run, recording, tmp_path):
    path = tmp_path / "nan.wav"
    x, fs = soundfile.read(recording)
    x[5 * fs] = np.nan
    soundfile.write(path, x, fs, subtype="FLOAT")
    done = run("stipa", "--source", path)
    assert (done.status, done.out) == (1, "")
    assert "nan.wav has 1 invalid sample (NaN, infinity or absurdly large): repair" in done.err


def test_a_slow_recording_is_refused(run, tmp_path):
    path = tmp_path / "slow.wav"
    soundfile.write(path, np.zeros(16000 * 4), 16000)
    done = run("stipa", "--source", path)
    assert done.status == 1
    assert "22050 or more" in done.err


LIVE = ("stipa", "--device", "virtual_mic", "--channels", "1", "--format", "json")


@pytest.fixture
def live(virtual_mic, forks):
    """Begins a measurement with what the command plays itself."""
    return partial(forks.begin, *LIVE)


def heard_without_a_pause(begin, *more):
    """A valid result: of a computer that is too busy to play without a pause it says so."""
    for _ in range(5):
        with begin(*more) as process:
            out, err = process.communicate()
        assert process.returncode in (0, 1), err
        got = json.loads(out)
        if got["valid"]:
            return got
        assert {INTERRUPTED, WORDS[Reason.LOST]} & {*got["reasons"]}, got["reasons"]
    raise AssertionError(f"this computer is too busy: {got['reasons']}")


@contextlib.contextmanager
def noise_playing(path):
    """As much noise as there is signal, in each octave, beside it."""
    noise = noise_like(stipa_signal(FS, 1, 20), 9)
    # A busy computer takes its time to begin; periods of 20 s have no seam.
    soundfile.write(path, np.tile(noise, 15), FS, subtype="FLOAT")
    with subprocess.Popen(["paplay", "--device=speaker", path]) as player:
        try:
            yield
        finally:
            player.terminate()


def test_what_is_played_is_heard(live):
    """tests/soak/test_stipa.py has the figures."""
    got = heard_without_a_pause(live, "--duration", 17)
    assert 0.94 < got["sti"] <= 1
    assert got["seconds"] == pytest.approx(17, abs=0.6)
    assert got["category"] == "A+"


def test_as_much_noise_halves_it(live, tmp_path):
    with noise_playing(tmp_path / "noise.wav"):
        got = heard_without_a_pause(live, "--duration", 17)
    assert got["sti"] == pytest.approx(0.49, abs=0.05)


def test_an_output_that_is_not_there(live):
    with live("--play-on", "no such output") as process:
        _, err = process.communicate()
    assert process.returncode == 1
    assert "the output 'no such output' does not play" in err
