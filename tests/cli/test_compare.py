"""`amt-stream compare`: two recordings, how much louder one is, and how sure that is."""

import json

import numpy as np

from tests.sessions.report.conftest import FS

NOISE = 0.02 * np.random.default_rng(3).standard_normal(FS)


def test_two_files_differ_by_their_gain(said, sound_file):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE / 2, name="b.wav")
    level = ("--full-scale-db", "100", "--calibration-uncertainty", "0.3", "--model", "spl")
    status, out, _ = said("compare", a, b, *level, "--same-place", "--json")
    assert status == 0
    found = json.loads(out)
    levels = {one["name"]: one for one in found["readings"]}
    assert abs(levels["laeq_db"]["difference"] + 6.0206) < 1e-3
    assert levels["laeq_db"]["uncertainty"] == 0.0
    assert found["common_calibration"]
    status, out, _ = said("compare", a, b, *level)
    assert status == 0
    (line,) = [line for line in out.splitlines() if line.startswith("LAeq ")]
    assert line.split()[3:9] == ["-6.02", "dB", "1.41", "A", "is", "louder"]
    assert "repeatability unknown" in line
    assert "its error cancels" in out.splitlines()[-2]
    assert "includes repeatability" in out.splitlines()[-1]


def test_a_page_is_written_with_both_over_time(said, sound_file, tmp_path):
    a, b = sound_file(NOISE, name="<a>.wav"), sound_file(NOISE / 2, name="b.wav")
    status, out, err = said("compare", a, b, "--model", "spl", "--out", "page.html")
    assert (status, out) == (0, "")
    assert "page.html: " in err
    page = (tmp_path / "page.html").read_text()
    assert "&lt;a&gt;.wav" in page
    assert "<a>" not in page
    assert page.count("<svg") == 2
    assert "-6.02" in page
    assert said("compare", a, b, "--model", "spl", "--out", "page.html")[0] == 1


def test_what_cannot_be_compared_is_said(said, sound_file):
    a = sound_file(NOISE, name="a.wav")
    status, _, err = said("compare", a, "gone.wav", "--model", "spl")
    assert status == 1
    assert "gone.wav is not a file: give a log" in err
    status, _, err = said("compare", a, a, "--calibration-uncertainty", "1")
    assert status == 2
    assert "an uncertainty needs a calibration" in err


def test_what_is_wrong_with_a_sound_is_said(said, sound_file):
    a = sound_file(np.clip(NOISE * 60, -1, 1), name="a.wav", subtype="PCM_16")
    b = sound_file(NOISE, name="b.wav", subtype="PCM_16")
    b.write_bytes(b.read_bytes()[:-20000])
    clipped = "A is clipped: its levels and loudness are at least so high"
    length = f"B: its header says {FS} samples, but there are {FS - 10000}"
    status, out, _ = said("compare", a, b, "--model", "spl")
    assert status == 1, "a part of B is missing"
    assert {clipped, length} <= {*out.splitlines()}
    page = said("compare", a, b, "--model", "spl", "--json")
    assert {clipped, length} <= {*json.loads(page[1])["notes"]}


def test_an_adjustment_has_no_uncertainty_of_a_level(said, sound_file):
    noise = 1e-3 * np.random.default_rng(4).standard_normal(4 * FS)
    tone = 1e-2 * np.sin(2 * np.pi * 1000 / FS * np.arange(4 * FS))
    a, b = sound_file(noise, name="a.wav"), sound_file(noise + tone, name="b.wav")
    level = ("--full-scale-db", "100", "--calibration-uncertainty", "0.3", "--model", "rating,spl")
    status, out, _ = said("compare", a, b, *level, "--json")
    assert status == 0
    found = {one["name"]: one for one in json.loads(out)["readings"]}
    assert found["kt_db"]["difference"] == 6
    assert found["rating_laeq_db"]["uncertainty"] > 1
    for name in ("kt_db", "ki_db", "lceq_minus_laeq_db"):
        if name in found:
            assert (found[name]["uncertainty"], found[name]["sure"]) == (None, None)
    (line,) = [one for one in said("compare", a, b, *level)[1].splitlines() if "K_T" in one[:5]]
    assert line.split()[3:] == ["+6.00", "dB", "?"]


def test_clipped_sound_leaves_open_which_one_is_louder(said, sound_file):
    loud = sound_file(np.clip(NOISE * 60, -1, 1) + 0.0, name="loud.wav", subtype="PCM_16")
    louder = sound_file(NOISE * 100, name="louder.wav", subtype="FLOAT")
    typed = "--model", "spl", "--full-scale-db", 100
    for pair, words in (
        ((loud, louder), "which one is louder is not known: A is clipped"),
        ((louder, loud), "which one is louder is not known: B is clipped"),
        ((sound_file(NOISE, name="soft.wav"), loud), "B is louder here"),
    ):
        status, out, _ = said("compare", *pair, *typed)
        (line,) = [one for one in out.splitlines() if one.startswith("LAeq ")]
        assert (status, words in line, "\N{GREATER-THAN OR EQUAL TO} " in line) == (0, True, True)
    status, out, _ = said("compare", loud, louder, *typed, "--json")
    (level,) = [one for one in json.loads(out)["readings"] if one["name"] == "laeq_db"]
    assert level["difference"] > level["uncertainty"]
    assert level["sure"] is None


def test_an_offset_is_said(said, sound_file):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE + 0.1, name="b.wav")
    _, out, _ = said("compare", a, b, "--model", "spl")
    assert "B has an offset of 10 % of full scale in channel 1, which is removed" in out
    assert out.count("has an offset") == 1


def test_a_sample_that_is_no_number_has_a_remedy_that_there_is(said, sound_file):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE * np.nan, name="b.wav")
    status, _, err = said("compare", a, b, "--model", "spl")
    assert status == 1
    assert err.endswith("b.wav has nan at sample 0 (0.000000 s), channel 1: repair the file\n")


def test_a_silent_sound_has_no_levels_and_that_is_said(said, sound_file):
    a, b = (sound_file(k * NOISE, name=f"{k}.wav") for k in (1, 0))
    status, out, _ = said("compare", a, b, "--model", "spl")
    assert status == 0
    assert "LAeq " not in out
    assert "B has no value of LAeq, LAFmax, LCpeak, LAF10, LAF50, LAF90: its sound is silent" in out
    out = said("compare", b, b, "--model", "spl")[1]
    assert "no reading has a value in both" in out


def test_one_level_of_full_scale_is_one_calibration_for_any_number_of_channels(said, sound_file):
    mono = sound_file(NOISE, name="mono.wav")
    stereo = sound_file(np.stack([NOISE, NOISE], axis=1), name="stereo.wav")
    status, out, _ = said("compare", mono, stereo, "--model", "spl", "--full-scale-db", "100")
    assert status == 0
    assert "both have the same level, treated as one calibration: its error cancels" in out


def test_progress_is_said_while_files_are_measured(said, sound_file, monkeypatch):
    monkeypatch.setattr("amt_stream.cli.sounds.progress.BEAT_S", 0.0)
    a, b = (sound_file(NOISE, name=f"{name}.wav") for name in "ab")
    err = said("compare", a, b, "--model", "spl")[2]
    shares = [line.rsplit(": ", 1)[1].split("%")[0] for line in err.splitlines() if "%" in line]
    assert float(shares[0]) < 50 < float(shares[-1]) == 100
    assert "50" in shares
