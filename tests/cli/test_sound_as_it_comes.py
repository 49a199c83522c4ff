"""Clipped sound and sound with an offset, as a person gives it to the commands."""

import io
import json

import numpy as np
import pytest

from amt_stream.cli.output import write_all

FS = 48000
SPL = "--model", "spl", "--full-scale-db", 120


def tone(seconds=2.0, peak=1.0):
    return peak * np.sin(2 * np.pi * 1000 * np.arange(round(seconds * FS)) / FS)


def noise(seconds=2.0):
    return 1e-3 * np.random.default_rng(0).standard_normal(round(seconds * FS))


def test_clipped_sound_is_measured_and_this_is_said(summary_of, sound_file):
    path = sound_file(np.clip(tone(peak=1.3), -1, 1), subtype="PCM_16", name="loud.wav")
    found, err = summary_of(path, *SPL)
    assert found["laeq_db"] == pytest.approx(121.1, abs=0.1)
    assert found["statistics"]["spl"]["clipped_s"] == pytest.approx(2.0, abs=0.02)
    assert err == [f"{path} is clipped for 2 s: its levels and loudness are at least what they say"]
    _, err = summary_of(path, "--model", "bs1770")
    assert err == [f"{path} is clipped for 2 s"], "these are of the digital signal as it is"


def test_what_is_beyond_full_scale_in_floating_point_is_not_clipped(summary_of, sound_file):
    found, err = summary_of(sound_file(tone(peak=1.3), subtype="FLOAT"), *SPL)
    assert found["laeq_db"] == pytest.approx(120 + 20 * np.log10(1.3), abs=0.05)
    assert (found["statistics"]["spl"]["clipped_s"], err) == (0.0, [])


def test_an_offset_is_removed_and_said_unless_it_is_kept(summary_of, sound_file, said):
    path = sound_file(noise() + 0.02, subtype="PCM_16", name="offset.wav")
    free, _ = summary_of(sound_file(noise(), subtype="PCM_16"), *SPL)
    found, err = summary_of(path, *SPL)
    assert err == [f"{path} has an offset of 2 % of full scale in channel 1, which is removed"]
    for name in ("lzeq_db", "lafmax_db", "lcpeak_db"):
        assert found[name] == pytest.approx(free[name], abs=0.05), name
    kept, err = summary_of(path, *SPL, "--keep-offset")
    assert kept["lzeq_db"] == pytest.approx(20 * np.log10(0.02) + 123.01, abs=0.1)
    assert (kept["sound"]["has_offset"], err) == (False, [])
    for typed, expected, words in (((), free, 1), (("--keep-offset",), kept, 0)):
        meter = "meter", "--source", path, "--fast", "--format", "jsonl"
        status, out, err = said(*meter, *SPL, *typed)
        assert status == 0
        told = json.loads(out.splitlines()[-1])["summary"]
        assert told["lzeq_db"] == pytest.approx(expected["lzeq_db"], abs=0.05)
        assert told["sound"].get("offset") == pytest.approx([0.02] * words or None, abs=1e-4)
        assert told["sound"]["found_samples"] == 2 * FS
        assert err.count("offset.wav has an offset of 2 % of full scale in channel 1") == words


def test_an_offset_is_that_of_the_channels_that_are_measured(summary_of, sound_file, said):
    x = np.stack([noise(), noise() + 0.02, noise() - 0.3, noise() - 0.3], axis=1)
    path = sound_file(x, subtype="PCM_16", name="four.wav")
    third, both = "-30 % of full scale in channel 3", "-30 % of full scale in channel 4"
    cases = {
        "1": ([0, None, None, None], ""),
        "3": ([None, None, -0.3, None], third),
        "3,4": ([None, None, -0.3, -0.3], f"{third}, {both}"),
        "1,2": ([0, 0.02, None, None], "2 % of full scale in channel 2"),
    }
    for channels, (offset, words) in cases.items():
        sentence = f"{path} has an offset of {words}, which is removed"
        summary, err = summary_of(path, *SPL, "-c", channels)
        assert err == ([sentence] if words else [])
        meter = "meter", "--source", path, "--fast", "--format", "jsonl", "-c", channels
        _, out, err = said(*meter, *SPL)
        live = json.loads(out.splitlines()[-1])["summary"]
        assert err.count("has an offset") == err.count("four.wav" + sentence[len(str(path)) :])
        assert err.count("has an offset") == bool(words)
        for one in (summary, live):
            assert len(one["sound"]["offset"]) == 4
            for found, expected in zip(one["sound"]["offset"], offset, strict=True):
                assert found == (None if expected is None else pytest.approx(expected, abs=1e-4))


def test_sound_that_clips_in_its_last_frame_alone_is_told_everywhere(summary_of, sound_file):
    sound = np.concatenate([noise(1.0), np.ones(100)])
    path = sound_file(sound, subtype="PCM_16", name="end.wav")
    found, _ = summary_of(path, *SPL, "--limit", "lafmax_db>150")
    assert 0.0 < found["statistics"]["spl"]["clipped_s"] < 0.02
    (limit,) = found["limits"]
    assert (limit["verdict"], limit["exceeded"]) == ("not known", None), "however short it was"


def test_a_sign_that_an_encoding_lacks_is_written_in_ascii(run, sound_file):
    path = sound_file(np.clip(tone(peak=1.3), -1, 1), subtype="PCM_16", name="loud.wav")
    call = "analyze", path, "--summary", *SPL, "--limit", "lcpeak_db>100"
    done = run(*call, PYTHONIOENCODING="ascii")
    assert ", lcpeak_db above 100: >= 12" in done.err
    assert "\\u" not in done.err


@pytest.mark.parametrize(
    ("text", "written"),
    [("\u2265 94.0", b">= 94.0"), ("\u2264 3 \u2248 4", b"<= 3 ~ 4"), ("\u266b", b"\\u266b")],
)
def test_other_characters_are_escapes(text, written):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_all(stream)
    stream.write(text)
    stream.flush()
    assert raw.getvalue() == written
