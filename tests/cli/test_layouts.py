"""What channels are for, in every way of use: weights of programme loudness, and ears."""

import json
import os

import numpy as np
import pytest
import soundfile

from amt_stream.dsp.channel_layout import WEIGHTS, layout_of_mask
from amt_stream.sessions import Session
from amt_stream.sessions.replay import replay_session

FS = 48000
CASE_6 = {"L": -28, "R": -28, "C": -24, "Ls": -30, "Rs": -30, "LFE": -12}
"""EBU Tech 3341, Table 1, case 6, which reads -23 LUFS, beside loud low-frequency effects."""
WAVE, OGG = "L R C LFE Ls Rs", "L C R Ls Rs LFE"
PROGRAMME = ["--model", "bs1770"]
BOTH = ["--model", "bs1770,spl", "--full-scale-db", 100]


def case_6(order, seconds=1.0):
    """The tones of these positions, in this order, (time, channel)."""
    tone = np.sin(2 * np.pi * 1000 * np.arange(round(seconds * FS)) / FS)
    return np.stack([10 ** (CASE_6[one] / 20) * tone for one in order.split()], 1)


@pytest.fixture
def film(sound_file):
    """Case 6 in the order of Ogg, in a file that does not say its order."""
    return sound_file(case_6(OGG), name="film.wav", subtype="PCM_24")


@pytest.mark.parametrize(
    ("order", "typed"),
    [
        (WAVE, ()),
        (WAVE, ("--layout", "5.1")),
        (WAVE, ("--layout", "FL FR FC LFE BL BR")),
        (OGG, ("--layout", OGG)),
        ("C Ls LFE Rs L R", ("--layout", "c,ls,lfe,rs,l,r")),
        ("L R C Ls Rs", ()),
    ],
)
def test_case_6_reads_right_in_every_order(summary_of, sound_file, order, typed):
    found, err = summary_of(sound_file(case_6(order)), *PROGRAMME, *typed)
    assert found["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert found["layout"] == {"positions": order.split(), "origin": "user" if typed else "usual"}
    told = [line for line in err if "does not say what its" in line]
    assert len(told) == (0 if typed else 1)


def test_a_usual_layout_is_named_and_stereo_needs_no_word(summary_of, sound_file):
    _, err = summary_of(sound_file(case_6(WAVE), name="six.wav"), *PROGRAMME)
    assert err[0].endswith(
        "six.wav does not say what its 6 channels are for: they are taken as 5.1 "
        "(L R C LFE Ls Rs), unless a layout is given"
    )
    found, err = summary_of(sound_file(case_6("L R")), *PROGRAMME)
    assert (err, found["layout"]["positions"]) == ([], ["L", "R"])


def test_chosen_channels_keep_their_weights(summary_of, said, film):
    """Each alone, they add up to all: a choice leaves the others out, and changes nothing else."""
    whole, _ = summary_of(film, *PROGRAMME, "--layout", OGG)
    energies = []
    for number, position in enumerate(OGG.split(), 1):
        typed = [film, *PROGRAMME, "--layout", OGG, "-c", number]
        if WEIGHTS[position] == 0:
            status, _, err = said("analyze", "--summary", *typed)
            assert status == 1
            (line,) = err.splitlines()
            assert line.endswith(
                "BS1770: LFE has the weight 0 (ITU-R BS.1770-5), so that there is no loudness: "
                "choose other channels, or give the layout M to measure it as a sound of its own"
            )
            continue
        found, err = summary_of(*typed)
        energies.append(10 ** (found["integrated_lufs"] / 10))
        assert found["layout"] == {"positions": [position], "origin": "user"}
        weight = "keep their weights in its loudness: Ls 1.41" if position == "Ls" else ""
        assert weight in " ".join(err)
    assert 10 * np.log10(sum(energies)) == pytest.approx(whole["integrated_lufs"], abs=1e-3)
    own, err = summary_of(film, *PROGRAMME, "--layout", "M", "-c", 6)
    assert own["integrated_lufs"] == pytest.approx(CASE_6["LFE"] - 3.01, abs=0.02)
    assert own["layout"] == {"positions": ["M"], "origin": "user"}


def test_every_channel_for_itself(said, film):
    """Where nobody says what they are for, and where the user says that each is its own sound."""
    for typed in ([], ["--layout", "mono"]):
        status, out, _ = said("analyze", film, *PROGRAMME, "--summary", "-c", "all", *typed)
        assert status == 0
        read = [json.loads(line)["integrated_lufs"] for line in out.splitlines()]
        own = [CASE_6[position] - 3.01 for position in OGG.split()]
        assert read == pytest.approx(own, abs=0.03)


def test_ears_are_those_of_the_layout(said, film):
    """Models of ears hear L and R as if these had been chosen, and header and rows say so."""
    typed = ["--layout", OGG, "--step-ms", 100, "--format", "jsonl"]
    status, out, err = said("analyze", film, *BOTH, *typed)
    assert status == 0
    assert "film.wav is 5.1 (L C R Ls Rs LFE): spl hears channel 1 (L) as left and 3 (R)" in err
    header, *rows, _ = map(json.loads, out.splitlines())
    source, (programme, levels) = header["header"]["source"], header["header"]["models"]
    assert source["channels"] == [1, 2, 3, 4, 5, 6]
    assert source["layout"] == {"positions": OGG.split(), "origin": "user"}
    assert "channels" not in programme
    assert levels == {"name": "spl", "channels": [1, 3]}
    _, out, _ = said(
        "analyze", film, "--model", "spl", "--full-scale-db", 100, "-c", "1,3", *typed[2:]
    )
    _, *alone, _ = map(json.loads, out.splitlines())
    for row, own in zip(rows, alone, strict=True):
        assert {name: row[name] for name in own if name.startswith("l")} == {
            name: own[name] for name in own if name.startswith("l")
        }
    assert rows[-1]["momentary_lufs"] == pytest.approx(-23.0, abs=0.05)


def test_ears_of_a_sound_that_only_they_hear(summary_of, film):
    found, err = summary_of(film, "--model", "spl", "--full-scale-db", 100, "--layout", OGG)
    assert found["channels"] == [1, 3]
    assert found["layout"] == {"positions": ["L", "R"], "origin": "user"}
    assert len(err) == 1
    assert found["laeq_left_db"] == pytest.approx(100 + CASE_6["L"], abs=0.02)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (BOTH, "film.wav has 6 channels: choose one (channels 1), or two as left and right"),
        ([*PROGRAMME, "--layout", "7.1"], "has 8 channels, and "),
        ([*PROGRAMME, "--layout", "7.1", "-c", "1,2"], "of which 2 chosen: give the position of"),
        ([*BOTH, "--layout", "C LFE Ls Rs Lss Rss"], "without a left and a right channel"),
        ([*BOTH, "-c", "1,2,3"], "channels 1, 2, 3: choose one, or two different ones as left"),
        ([*PROGRAMME, "-c", "7"], "has no channel 7: it has 6"),
    ],
)
def test_what_is_not_clear_is_refused_in_a_sentence(said, film, typed, told):
    status, out, err = said("analyze", film, *typed)
    assert (status, out) == (1, "")
    line = err.splitlines()[-1]
    assert told in line


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--layout", "7.2"], "the layout '7.2' is unknown: give one of mono, stereo"),
        (["--layout", "L R Left"], "no position of a channel is called 'Left'"),
        (["-c", "1,2,3", "--model", "spl"], "give one channel (1), or two different ones"),
    ],
)
def test_wrong_usage(said, film, typed, told):
    status, _, err = said("analyze", film, *typed)
    assert status == 2
    assert told in err


def test_the_meter_reads_as_analyze(said, summary_of, film):
    expected, _ = summary_of(film, *BOTH, "--layout", OGG)
    typed = ["--source", film, "--fast", *BOTH, "--layout", OGG, "--format", "jsonl"]
    status, out, err = said("meter", *typed)
    assert status == 0, err
    header, *_, last = map(json.loads, out.splitlines())
    for name in ("integrated_lufs", "true_peak_dbtp", "laeq_db", "laeq_right_db"):
        assert last["summary"][name] == expected[name]
    assert header["header"]["source"]["layout"]["positions"] == OGG.split()
    assert header["header"]["models"][1]["channels"] == [1, 3]
    assert "spl hears channel 1 (L) as left and 3 (R) as right" in err


@pytest.mark.parametrize("typed", [["--layout", OGG], ["--layout", OGG, "-c", "6"]])
def test_a_pipe_has_as_many_channels_as_its_layout(run, typed):
    data = (case_6(OGG) * 2**15).round().astype("<i2").tobytes()
    typed = ["--source", "-", *BOTH, *typed, "--format", "jsonl"]
    done = run("meter", *typed, stdin=data)
    assert done.status == 0, done.err
    summary = json.loads(done.out.splitlines()[-1])["summary"]
    assert summary["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert "6 channels" in done.err


def test_a_pipe_without_a_layout(run):
    data = (case_6(WAVE) * 2**15).round().astype("<i2").tobytes()
    done = run("meter", "--source", "-", *PROGRAMME, "-c", "6", "--format", "jsonl", stdin=data)
    assert done.status == 0, done.err
    summary = json.loads(done.out.splitlines()[-1])["summary"]
    assert summary["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert "standard input" in done.err
    assert "taken as 5.1 (L R C LFE Ls Rs)" in done.err
    typed = "--source", "-", "--model", "spl", "-c", "6", "--format", "csv"
    done = run("meter", *typed, stdin=data)
    assert done.status == 2
    assert "the number of channels of raw PCM, 1 or 2, or more with --layout" in done.err


def test_a_preset_has_a_layout(summary_of, said, film, tmp_path):
    preset = tmp_path / "film.toml"
    preset.write_text(f'[model]\nname = "bs1770"\n[meter]\nlayout = "{OGG}"\n')
    found, err = summary_of(film, "--preset", preset)
    assert found["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert err == []
    typed = ["--source", film, "--fast", "--preset", preset, "--format", "jsonl"]
    _, out, _ = said("meter", *typed)
    assert json.loads(out.splitlines()[-1])["summary"]["layout"] == found["layout"]
    # What is typed wins.
    found, _ = summary_of(film, "--preset", preset, "--layout", "6.0")
    assert found["layout"]["positions"] == ["L", "R", "C", "Cs", "Ls", "Rs"]
    preset.write_text('[model]\nname = "bs1770"\n[meter]\nlayout = "5.2"\n')
    status, _, err = said("analyze", film, "--preset", preset)
    assert status == 1
    assert 'meter.layout is "5.2" and must be a layout, such as "5.1", or positions' in err


def test_several_microphones_have_no_layout(said, film):
    typed = ["-c", "1", "-c", "2", "--layout", "5.1", "--format", "csv"]
    status, _, err = said("meter", "--source", film, "--fast", "--model", "spl", *typed)
    assert status == 2
    assert "each microphone is a sound of its own: leave it out" in err
    status, _, err = said("meter", "-c", "1,2,3", "-c", "4", "--format", "csv")
    assert status == 2
    assert "of each microphone, give one channel (1), or two" in err


def test_a_part_with_another_layout_is_not_continued(said, film, tmp_path):
    out = ["--out", tmp_path / "rows", "--resume"]
    assert said("analyze", film, *PROGRAMME, "--layout", OGG, *out)[0] == 0
    status, _, err = said("analyze", film, *PROGRAMME, "--layout", "5.1", *out)
    assert status == 1
    assert "was measured with another layout" in err


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_a_log_is_replayed_and_its_sound_says_what_channels_are_for(
    said, summary_of, film, tmp_path, sound
):
    typed = ["--source", film, "--fast", *BOTH, "--layout", OGG, "--quiet"]
    status, _, err = said("meter", *typed, "--log", "night", "--log-sound", sound)
    assert status == 0, err
    replayed = replay_session(tmp_path / "night")
    assert replayed.same, replayed.differs
    assert replayed.rows == len(list(Session(tmp_path / "night").rows()))
    (recording,) = (tmp_path / "night").glob(f"sound*.{sound}")
    found, err = summary_of(recording, *PROGRAMME)
    assert found["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert found["layout"] == {"positions": OGG.split(), "origin": "source"}
    assert not any("does not say" in line for line in err)


def test_a_log_continues_only_with_the_same_layout(said, film):
    typed = ["meter", "--source", film, "--fast", *PROGRAMME, "--quiet", "--log", "night"]
    assert said(*typed, "--layout", OGG)[0] == 0
    status, _, err = said(*typed, "--restore", "--layout", "5.1")
    assert status == 1
    assert "layout" in err


def test_match_by_loudness_of_programmes(said, film, sound_file, tmp_path):
    """The matched sound is written in the order of WAVE files, and its mask says so."""
    louder = sound_file(2 * case_6(OGG), name="louder.wav")
    typed = ["match", film, louder, "--by", "lufs", "--layout", OGG, "--out", "matched"]
    status, out, err = said(*typed)
    assert status == 0, err
    assert "-23.02" in out
    assert "-6.02" in out
    data = (tmp_path / "matched" / "louder.wav").read_bytes()
    form = data[data.index(b"fmt ") + 8 :]
    mask = int.from_bytes(form[20:24], "little")
    assert layout_of_mask(mask, 6).positions == tuple(WAVE.split())
    written, _ = soundfile.read(tmp_path / "matched" / "louder.wav", always_2d=True)
    np.testing.assert_allclose(written, case_6(WAVE), atol=2e-4)
    # Loudness of ears is that of L and R, and all channels get the gain.
    status, out, err = said("match", film, louder, "--by", "laeq", "--layout", OGG)
    assert status == 0
    assert "spl hears channel 1 (L) as left and 3 (R) as right" in err
    status, _, err = said("match", film, louder, "--by", "laeq")
    assert "film.wav has 6 channels: choose one" in err


def test_explain_and_compare_hear_left_and_right(said, film, sound_file):
    quiet = sound_file(0.5 * case_6(WAVE, 1.1), name="quiet.wav")
    typed = ["--layout", "5.1", "--lowest-hz", "1000", "--highest-hz", "2000", "--format", "json"]
    status, out, err = said("explain", quiet, *typed)
    assert status == 0, err
    assert json.loads(out)["places"] == ["both", "left", "right"]
    assert "ecma hears channel 1 (L) as left and 2 (R) as right" in err
    typed = ["compare", quiet, quiet, "--model", "bs1770,spl", "--layout", "5.1"]
    status, out, err = said(*typed)
    assert status == 0, err
    assert err.count("spl hears channel 1 (L)") == 1
    assert "LUFS" in out


def test_a_device_opens_as_many_channels_as_its_layout(run, virtual_mic):
    typed = ["-d", "virtual_mic", "--duration", "0.5", "--format", "jsonl", *PROGRAMME]
    done = run("meter", *typed, "--layout", OGG)
    assert done.status == 0, done.err
    source = json.loads(done.out.splitlines()[0])["header"]["source"]
    assert source["channels"] == [1, 2, 3, 4, 5, 6]
    assert source["layout"] == {"positions": OGG.split(), "origin": "user"}
    # Chosen channels are a sound of their own.
    done = run("meter", *typed, "-c", "1,3,4,6,5")
    assert done.status == 0, done.err
    source = json.loads(done.out.splitlines()[0])["header"]["source"]
    assert source["channels"] == [1, 3, 4, 6, 5]
    assert source["layout"] == {"positions": ["L", "R", "C", "Ls", "Rs"], "origin": "usual"}
    assert "does not say what its 5 channels are for" in done.err
    # Models of ears hear L and R.
    done = run("meter", *typed[:-1], "bs1770,spl", "--layout", OGG)
    assert done.status == 0, done.err
    models = json.loads(done.out.splitlines()[0])["header"]["models"]
    assert models[1]["channels"] == [1, 3]
    done = run("meter", *typed[:-1], "spl", "--layout", "5.1", "-c", "1,2")
    assert done.status == 1
    assert "has 6 channels, and " in done.err


def test_a_station_sends_what_channels_are_for(begin, film):
    typed = ["serve", "--source", film, "--fast", "--stdio", *BOTH, "--layout", OGG]
    reading, writing = os.pipe()  # it ends with the sound, and not with its input
    with begin(*typed, stdin=reading) as process:
        lines = [json.loads(line) for line in process.stdout.read().splitlines()]
    os.close(reading)
    os.close(writing)
    header = next(line["header"] for line in lines if "header" in line)
    assert header["source"]["layout"] == {"positions": OGG.split(), "origin": "user"}
    assert header["models"][1]["channels"] == [1, 3]


def test_a_report_and_a_comparison_say_what_channels_are_for(said, film, tmp_path):
    for name, layout in (("first", OGG), ("second", "5.1")):
        typed = ["--source", film, "--fast", *BOTH, "--layout", layout, "--quiet"]
        assert said("meter", *typed, "--log", name)[0] == 0
    assert said("report", "first")[0] == 0
    page = next(tmp_path.glob("first*.html")).read_text(encoding="utf-8")
    assert "5.1 (L C R Ls Rs LFE), as the user says" in page
    assert "channels 1 and 3" in page
    status, out, err = said("compare", "first", "second")
    assert status == 0, err
    assert "the channels are 5.1 (L C R Ls Rs LFE) in A and 5.1 (L R C LFE Ls Rs) in B" in out
    assert "spl has channels 1, 3 in A and 1, 2 in B" in out
