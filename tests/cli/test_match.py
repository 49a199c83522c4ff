"""`amt-stream match`: gains in a table, and sounds that are equally loud."""

import json

import numpy as np
import pytest
import soundfile

from tests.sessions.report.conftest import FS

NOISE = 0.02 * np.random.default_rng(3).standard_normal(FS)


def test_written_sounds_are_equally_loud(said, sound_file, tmp_path):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE / 4, name="b.wav")
    status, out, _ = said("match", a, b, "--by", "lufs", "--out", "equal")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "integrated loudness in LUFS, by bs1770"
    assert lines[2].split()[1:4] == [lines[2].split()[1], "reference", lines[2].split()[1]]
    assert lines[3].split()[2:4] == ["+12.04", lines[2].split()[1]]
    written, fs = soundfile.read(tmp_path / "equal" / "b.wav")
    assert fs == FS
    np.testing.assert_allclose(written, soundfile.read(b)[0] * 10 ** (12.0412 / 20), rtol=1e-3)
    assert sorted(p.name for p in (tmp_path / "equal").iterdir()) == ["a.wav", "b.wav"]
    status, _, err = said("match", a, b, "--by", "lufs", "--out", "equal")
    assert status == 1
    assert "exists: --force overwrites it" in err


def test_json_has_each_sound_and_what_is_uncalibrated_is_said(said, sound_file):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE / 40, name="b.wav")
    status, out, err = said("match", b, a, "--by", "laeq", "--json")
    assert status == 0
    found = json.loads(out)
    assert (found["by"], found["unit"]) == ("laeq", "dB")
    assert found["sounds"][1]["gain_db"] == pytest.approx(-32.04, abs=0.01)
    assert "uncalibrated" in err
    status, out, err = said("match", b, a, a, "--by", "laeq", "--full-scale-db", "100")
    assert status == 0
    assert "uncalibrated" not in err


def test_chosen_channels_are_matched_and_written(said, sound_file, tmp_path):
    three = sound_file(np.stack([NOISE, NOISE / 4, NOISE / 2], 1), name="three.wav")
    a = sound_file(NOISE, name="a.wav")
    status, _, err = said("match", three, three, "--by", "laeq")
    assert status == 1
    assert "has 3 channels: choose one (channels 1), or two" in err
    pair = sound_file(np.stack([NOISE, NOISE / 4], 1), name="pair.wav")
    status, out, _ = said("match", pair, three, "-c", "2", "--by", "laeq", "--out", "equal")
    assert status == 0
    assert out.splitlines()[3].split()[2] == "+0.00"
    written = soundfile.read(tmp_path / "equal" / "three.wav")[0]
    np.testing.assert_allclose(written, NOISE / 4, atol=1e-7)
    status, _, err = said("match", pair, a, "-c", "2", "--by", "laeq")
    assert (status, err.count("\n")) == (1, 1)
    assert "a.wav has no channel 2: it has 1" in err


def test_a_gain_beyond_full_scale_is_said(said, sound_file):
    peaks = np.where(np.arange(FS) % 4000, NOISE, 0.9)
    a, b = sound_file(NOISE * 10, name="a.wav"), sound_file(peaks, name="b.wav")
    status, _, err = said("match", a, b, "--by", "lufs")
    assert status == 0
    assert "above full scale, which players and integer formats clip" in err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["a.wav"], "a.wav is alone: give the reference"),
        (["a.wav", "gone.wav"], "gone.wav"),
        (["a.wav", "a.wav", "--out", "x"], "two of the sounds would be written to x/a.wav"),
        (["a.wav", "b.wav", "--out", "a.wav"], "a.wav is a file: --out names a folder"),
        (["a.wav", "b.wav", "--out", "a.wav/x"], "a.wav is a file: --out names a folder"),
        (["a.wav", "b.wav", "--out", "."], "is one of the files"),
        (["a.wav", "b.wav", "--by", "sone"], "--by"),
        (["a.wav", "b.wav", "--out", ""], "is not a path: give a file or folder"),
        (
            ["a.wav", "b.wav", "--by", "laeq", "--field", "eardrum"],
            "--field is for ltl, zwicker, ecma: laeq takes the sound as it is; leave it out",
        ),
    ],
)
def test_a_mistake_is_one_sentence(said, sound_file, more, words):
    sound_file(NOISE, name="a.wav"), sound_file(NOISE, name="b.wav")
    status, out, err = said("match", *more)
    assert status in (1, 2)
    assert out == ""
    assert words in err.splitlines()[-1]


def test_a_silent_sound_is_named_and_the_others_are_matched(said, sound_file, tmp_path):
    a, b = sound_file(NOISE, name="a.wav"), sound_file(NOISE / 4, name="b.wav")
    silent, gone = sound_file(0 * NOISE, name="silent.wav"), tmp_path / "gone.wav"
    typed = ["match", a, silent, b, gone, "--by", "lufs", "--out", "equal"]
    status, out, err = said(*typed)
    assert status == 1
    lines = [line.split() for line in out.splitlines()[2:]]
    assert [line[2] for line in lines] == ["reference", "---", "+12.04", "---"]
    assert sorted(path.name for path in (tmp_path / "equal").iterdir()) == ["a.wav", "b.wav"]
    words = [line for line in err.splitlines() if "silent.wav" in line or "gone.wav" in line]
    assert len(words) == 2
    assert "silent.wav has no integrated loudness: it is silent, too weak or too short" in words[0]
    status, out, _ = said(*typed, "--force", "--json")
    assert status == 1
    sounds = json.loads(out)["sounds"]
    assert [one.get("gain_db") is None for one in sounds] == [False, True, False, True]
    assert "it is silent" in sounds[1]["error"]


def test_without_a_reference_nothing_is_matched(said, sound_file):
    a, silent = sound_file(NOISE, name="a.wav"), sound_file(0 * NOISE, name="silent.wav")
    status, out, err = said("match", silent, a, "--by", "laeq")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "silent.wav has no LAeq" in err


def test_a_length_that_is_wrong_is_said(said, sound_file):
    a, b = (sound_file(NOISE, name=name, subtype="PCM_16") for name in ("a.wav", "b.wav"))
    b.write_bytes(b.read_bytes()[:-20000])
    words = f"b.wav: its header says {FS} samples, but there are {FS - 10000}"
    for command in (["match", a, b, "--by", "laeq"], ["explain", b, "--lowest-hz", "4000"]):
        status, out, err = said(*command, *["--json"] * (command[0] == "match"))
        assert (status, words in err) == (1, True), "a part is missing"
        if command[0] == "match":
            assert [one["cut_off"] for one in json.loads(out)["sounds"]] == [False, True]


def test_clipped_sound_and_an_offset_are_said_beside_the_gain(said, sound_file):
    a = sound_file(NOISE, name="a.wav")
    loud = np.clip(NOISE * 60, -127 / 128, 127 / 128)
    b = sound_file(np.round(loud * 128) / 128, name="b.wav", subtype="PCM_U8")
    c = sound_file(NOISE * 60, name="c.wav", subtype="FLOAT")
    d = sound_file(NOISE - 0.1, name="d.wav", subtype="PCM_24")
    status, out, err = said("match", a, b, c, d, "--by", "laeq")
    assert status == 0
    clipped = "it is clipped: it may have been louder"
    assert [line.endswith(clipped) for line in out.splitlines()[2:]] == [False, True, False, False]
    assert out.splitlines()[5].split()[2] == "+0.00"
    assert err.count(clipped) == err.count(f"b.wav: {clipped}") == 1
    assert "d.wav has an offset of -10 % of full scale in channel 1, which is removed" in err
