import csv
import json
import re
import signal
import time
from math import ceil
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import measure
from amt_stream.cli.messages import Mistake
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.sounds.batch import BatchCalibration
from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.stream import aligned
from amt_stream.engine.sources import SourceError
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.rows import LoudnessReadings
from amt_stream.offline.analysis import CheckedFile, InvalidSample, analyze
from tests.cli.conftest import COLUMNS


def noise(samples, channels=2):
    return 0.01 * np.random.default_rng(samples).standard_normal((samples, channels))


@pytest.mark.parametrize(
    ("fs", "samples"), [(48000, 1), (48000, 47), (48000, 48), (44100, 44100), (32000, 8193)]
)
def test_frames_go_from_zero_to_the_very_end(sound_file, fs, samples):
    x = noise(samples)
    model = Moore2016(fs=fs)
    parts = list(analyze(CheckedFile(sound_file(x, fs)), model, UNCALIBRATED))
    time_s = np.concatenate([frames.time_s for frames in parts])
    stl = np.concatenate([frames.values.stl for frames in parts])
    ltl = np.concatenate([frames.values.ltl for frames in parts])
    np.testing.assert_allclose(time_s, np.arange(samples * 1000 // fs + 1) / 1000, atol=1e-12)
    pascal = torch.from_numpy(x.T.copy())[None].float() * UNCALIBRATED.pascal_per_unit
    with torch.inference_mode():
        whole = aligned(model, torch.nn.functional.pad(pascal, (0, ceil(fs / 1000))))
    for got, expected in ((stl, whole.stl), (ltl, whole.ltl)):
        expected = expected[0, : len(got)].numpy()
        # The slow mean of a file is removed.
        np.testing.assert_allclose(got, expected, atol=1e-4 * max(1e-3, expected.max()))


def test_one_channel_goes_to_both_ears_and_channels_are_chosen(sound_file):
    left, right = noise(4800)[:, 0], noise(4801)[:4800, 0]
    both = sound_file(np.stack([left, left], axis=1), name="both.wav")
    mono = sound_file(left, name="mono.wav")
    four = sound_file(np.stack([right, left, right, left], axis=1), name="four.wav")
    model = Moore2016(fs=48000)

    def maxima(path, channels=None):
        readings = LoudnessReadings()
        for frames in analyze(CheckedFile(path, channels), model, Calibration(110.0)):
            readings.take(frames)
        return readings.summary()

    expected = maxima(both)
    assert maxima(mono) == maxima(four, (4,)) == maxima(four, (2, 4)) == expected
    assert maxima(four, (1, 2)) != expected
    with pytest.raises(SourceError, match="has 4 channels: choose one"):
        CheckedFile(four)


def test_only_the_channels_that_are_heard_have_to_be_numbers(sound_file):
    x = noise(4800)
    x[1234, 1], x[2000, 0] = np.nan, np.inf
    path = sound_file(x)
    with pytest.raises(InvalidSample, match=r"nan at sample 1234 \(0\.025708 s\), channel 2"):
        CheckedFile(path)
    with pytest.raises(InvalidSample, match=r"inf at sample 2000 .* channel 1"):
        CheckedFile(path, (1,))
    recording = CheckedFile(path, replace_invalid=True)
    assert recording.replaced == 2
    assert np.isfinite(np.concatenate(list(recording.blocks()))).all()


@pytest.mark.parametrize("value", [-1.1e6, np.nan])
def test_a_sample_beyond_reason_is_as_invalid_as_no_number(run, sound_file, value):
    x = noise(4800)
    x[1234, 0] = value
    path = sound_file(x)
    refused = run("analyze", path, "--summary", "--full-scale-db", 100)
    assert (refused.status, refused.out, len(refused.lines)) == (1, "", 1)
    assert "at sample 1234 (0.025708 s), channel 1: repair the file" in refused.err
    done = run("analyze", path, "--summary", "--full-scale-db", 100, "--replace-invalid")
    assert done.status == 0
    summary = json.loads(done.out)
    assert summary["replaced_samples"] == 1
    assert summary["max_ltl_phon"] is None, "it settles until the end"


def test_samples_that_are_no_numbers_count_as_little_as_those_of_a_meter(said, sound_file):
    x = 0.01 * noise(3 * 48000)
    x[48000:96000] = np.nan
    path = sound_file(x)
    typed = "--model", "spl", "--full-scale-db", 120, "--limit", "laeq_db>130", "--fail-above"
    given = "analyze", path, "--summary", "--replace-invalid"
    live = "meter", "--source", path, "--fast", "--format", "jsonl", "--step-ms", 10
    status, out, err = said(*given, *typed)
    meter_status, meter_out, _ = said(*live, *typed)
    assert (status, meter_status) == (1, 1)
    assert "it could not be judged" in err
    summary, of_meter = json.loads(out), json.loads(meter_out.splitlines()[-1])["summary"]
    assert summary["limits"][0]["verdict"] == "not known"
    assert summary["laeq_db"] == of_meter["laeq_db"]
    left_out = [one["statistics"]["spl"]["excluded_s"] for one in (summary, of_meter)]
    assert left_out[0] == left_out[1] > 1.0, "with what settles"


def test_the_thread_that_asks_stays_as_it_was(sound_file):
    before = torch.get_num_threads()
    tiny = torch.tensor(1e-40)
    for frames in analyze(CheckedFile(sound_file(noise(480))), Moore2016(fs=48000), UNCALIBRATED):
        assert len(frames.time_s)
    assert torch.get_num_threads() == before
    assert tiny / 2 > 0


def test_rows_on_standard_output(run, sound_file, tone):
    """1 kHz at 40 dB SPL has 1 sone by definition (ISO 532-3: 1.000 +- 0.005)."""
    path = sound_file(tone(40.0, 1.5, fs=44100), 44100, "tone.flac", "PCM_24")
    done = run("analyze", path, "--step-ms", 250, "--out", "-")
    assert done.status == 0
    assert run("analyze", path, "--step-ms", 250).out == done.out
    assert list(done.rows) == COLUMNS
    np.testing.assert_array_equal(done.rows["time_s"], np.arange(0, 1.6, 0.25))
    assert done.rows["ltl_sone"][-2] == pytest.approx(1.0, abs=0.005)
    assert done.rows["ltl_phon"][-2] == pytest.approx(40.0, abs=0.05)
    about = done.about
    assert [(c["full_scale_db_spl"], c["calibrated"]) for c in about["calibration"]] == [
        (100.0, False)
    ] * 2
    (model,) = about["models"]
    assert {*model} == {"name", "constants", "field", "ear_filter", "accuracy"}
    source = {"name": str(path), "fs": 44100, "channels": [1, 2], "duration_s": 1.5}
    assert source.items() <= about["source"].items()
    assert about["start_utc"] is None
    assert set(done.rows["utc"]) == {""}
    assert "uncalibrated" in done.err


def test_summary_of_a_step(run, sound_file, tone):
    """Case step_1kHz_50_to_70dB of an independent implementation: 72.09 and 69.99 phon at 1.2 s."""
    x = np.concatenate([tone(50.0, 0.6), tone(70.0, 0.6)])
    done = run("analyze", sound_file(x), "--summary", "--full-scale-db", "100")
    assert done.status == 0
    summary = json.loads(done.out)
    assert summary["max_stl_phon"] == pytest.approx(72.09, abs=0.1)
    assert summary["max_ltl_phon"] == pytest.approx(69.99, abs=0.1)
    assert summary["t_max_stl_s"] == summary["t_max_ltl_s"] == summary["duration_s"] == 1.2
    assert summary["calibrated"] is True
    assert {one["full_scale_db_spl"] for one in summary["calibration"]} == {100.0}
    assert summary["models"][0]["field"] == "free"
    assert "uncalibrated" not in done.err


def test_what_is_no_sound_is_told_and_the_others_are_done(run, sound_file, tmp_path):
    (tmp_path / "text.wav").write_text("not a sound")
    sound_file(np.zeros((0, 2)), name="empty.wav")
    sound_file(np.zeros((4800, 3)), name="three.wav")
    sound_file(np.zeros((4800, 2)), 44101, "odd.wav")
    sound_file(np.array([0.0, np.nan, 0.0]), name="nan.wav")
    sound_file(np.zeros((480, 2)), name="good.wav")
    (tmp_path / "nothing").mkdir()
    bad = ["none.wav", "text.wav", "empty.wav", "three.wav", "odd.wav", "nan.wav"]
    bad += ["nothing", "*.flac"]
    done = run("analyze", "--summary", "--full-scale-db", 100, *bad[:3], "good.wav", *bad[3:])
    assert done.status == 1
    assert json.loads(done.out)["name"] == "good.wav"
    said = ["no file", "not a sound", "length is zero", "3 channels", "44100 and 44120 Hz"]
    said += ["nan at sample 1 ", "is a folder without sound files", "no file matches"]
    assert len(done.lines) == len(bad)
    for name, words, line in zip(bad, said, done.lines, strict=True):
        assert name in line
        assert words in line


@pytest.mark.parametrize(
    ("name", "words"),
    [("none.wav", "there is no file none.wav"), ("", "'' is no name: give a file")],
)
def test_what_is_not_there_is_all_that_is_said(said, sound_file, name, words):
    sound_file(np.zeros((480, 2)), name="beside.wav")
    status, out, err = said("analyze", name)
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert words in err


def test_files_go_into_a_folder_and_are_not_overwritten(run, sound_file, read_table, tmp_path):
    sound_file(np.array([0.1, np.inf, 0.1] * 480), name="a.wav")
    sound_file(noise(960), name="b.wav")
    arguments = ["analyze", "a.wav", "b.wav", "--out", "rows", "--replace-invalid", "--summary"]
    done = run(*arguments)
    assert done.status == 0, done.err
    assert [json.loads(line)["replaced_samples"] for line in done.out.splitlines()] == [480, 0]
    written = tmp_path / "rows"
    assert sorted(path.name for path in written.iterdir()) == ["_manifest.jsonl", "a.csv", "b.csv"]
    table = read_table(written / "a.csv")
    assert len(table.rows["time_s"]) == 31
    assert table.about["source"]["replaced_samples"] == 480

    again = run(*arguments)
    assert (again.status, again.out) == (1, "")
    assert "a.csv exists: --force overwrites" in again.err
    assert run(*arguments, "--force", "--step-ms", 5).status == 0
    assert len(read_table(written / "a.csv").rows["time_s"]) == 7


def test_summaries_make_a_table(run, sound_file):
    for name, gain in (("a.wav", 1.0), ("b.wav", 0.5), ("mono.wav", 0.25)):
        sound_file(gain * noise(48000, 1 if name == "mono.wav" else 2), name=name)
    call = ["analyze", "*.wav", "--model", "spl", "--full-scale-db", 100, "--summary"]
    told = [json.loads(line) for line in run(*call).out.splitlines()]
    done = run(*call, "--format", "csv", "--columns", "laeq_db, l5*")
    assert done.status == 0, done.err
    header, *rows = csv.reader(done.out.splitlines())
    assert header[:4] == ["name", "channels", "duration_s", "calibrated"]
    assert {"laeq_db", "l5_db", "l5_left_db", "l50_right_db"} <= {*header}
    for row, summary in zip(rows, told, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells["name"] == summary["name"]
        assert cells["calibrated"] == "true"
        assert [cells[n] for n in header[4:]] == [str(summary.get(n, "")) for n in header[4:]]
    assert {row[1] for row in rows} == {"1 2", "1"}

    left_out = {*next(csv.reader(run(*call, "--format", "csv").out.splitlines()))} - {*header}
    assert "laeq_left_db" in left_out
    chosen = run(*call, "--columns", "laeq_db, l5*").out.splitlines()
    for line, summary in zip(chosen, told, strict=True):
        kept = {name: value for name, value in summary.items() if name not in left_out}
        assert json.loads(line) | {"date": ""} == kept | {"date": ""}

    for more in (["--format", "csv"], [], ["--out", "all.json"]):
        refused = run(*call, *more, "--columns", "laf_db")
        assert refused.status == 1
        assert "--columns laf_db: no reading of a whole sound has such a name" in refused.err
    assert not Path("all.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["a.wav", "b.wav"], 2, "name a folder with --out"),
        (["a.wav", "b.wav", "--out", "-"], 2, "name a folder with --out"),
        (["a.wav", "--out", "-", "--summary"], 2, "leave one out"),
        (["a.wav", "--summary", "--format", "csv", "--interval", "1s"], 2, "leave --summary out"),
        (["a.wav", "b.wav", "--out", "a.wav"], 1, "is a file: for several files"),
        (["a.wav", "b.wav", "--out", "a.wav/x"], 1, "a.wav is a file: for several files"),
        (["a.wav", "x/a.wav", "--out", "rows"], 1, "two of the files would be written to"),
        (["a.wav", "--out", "a.wav", "--force"], 1, "is one of the files to analyze"),
    ],
)
def test_an_output_that_cannot_be_meant_is_refused(run, sound_file, arguments, status, said):
    path = sound_file(np.zeros((480, 2)), name="a.wav")
    sound_file(np.zeros((480, 2)), name="x/a.wav")
    before = path.read_bytes()
    done = run("analyze", *arguments)
    assert (done.status, len(done.lines), done.out) == (status, 1, "")
    assert said in done.err
    assert path.read_bytes() == before


def test_nothing_half_written_stays(begin, sound_file, tmp_path):
    """Interrupted in the middle of ten minutes of sound, once rows are written."""
    path = sound_file(np.zeros((600 * 8000, 1)), 8000, subtype="PCM_16")
    folder = tmp_path / "rows"
    with begin("analyze", path, "--out", folder / "rows.csv") as process:
        while process.poll() is None and not any(f.stat().st_size for f in folder.glob(".*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(folder.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(begin, sound_file):
    path = sound_file(np.zeros((20 * 48000, 2)), subtype="PCM_16")
    with begin("analyze", path) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert errors.count("\n") == 1


def test_a_file_whose_rows_are_there_does_not_end_the_batch(run, sound_file, tmp_path):
    for name in ("a.wav", "b.wav", "c.wav"):
        sound_file(noise(960), name=name)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.csv").write_text("there before")
    done = run("analyze", "a.wav", "b.wav", "c.wav", "--out", "rows", "--model", "spl")
    assert done.status == 1
    assert "a.csv exists: --force overwrites it (a.wav was not read)" in done.err
    written = {path.name: path.read_text() for path in (tmp_path / "rows").iterdir()}
    assert set(written) == {"_manifest.jsonl", "a.csv", "b.csv", "c.csv"}
    del written["_manifest.jsonl"]
    assert written.pop("a.csv") == "there before"
    assert all("laeq_db" in text for text in written.values())


def test_a_folder_and_a_pattern_in_several_processes(run, sound_file, read_table, tmp_path):
    """Rows and summaries in order, the same as those of each file by itself."""
    (tmp_path / "day").mkdir()
    sounds = {name: noise(4800 + k) for k, name in enumerate("abc")}
    for name, x in sounds.items():
        sound_file(x, name=f"day/{name}.wav")
    (tmp_path / "day" / "notes.txt").write_text("no sound")
    chosen = ["--model", "spl", "--full-scale-db", 100, "--summary"]
    together = run("analyze", "day", *chosen, "--out", "rows", "--jobs", 2)
    one_by_one = run("analyze", "day/[ab].wav", "day/c.wav", *chosen)
    told = [[json.loads(v) for v in d.out.splitlines()] for d in (together, one_by_one)]
    assert [one["name"] for one in told[0]] == ["day/a.wav", "day/b.wav", "day/c.wav"]
    for of_two in zip(*told, strict=True):
        assert len({json.dumps({**one, "date": ""}) for one in of_two}) == 1
    for name, x in sounds.items():
        expected = measure(x.astype(np.float32), 48000, "spl", calibration=100.0)
        rows = read_table(tmp_path / "rows" / f"{name}.csv").rows
        np.testing.assert_array_equal(rows["laf_db"][1:].astype(float), expected["laf_db"][1:])


def test_each_channel_by_itself(run, sound_file, read_table, tmp_path):
    x = noise(9600, channels=3).astype(np.float32)
    sound_file(x, name="x.wav", subtype="FLOAT")
    done = run("analyze", "x.wav", "-c", "each", "--model", "spl", "--out", "rows", "--summary")
    assert done.status == 0, done.err
    summaries = [json.loads(line) for line in done.out.splitlines()]
    assert [one["channels"] for one in summaries] == [[1], [2], [3]]
    for k in (1, 2, 3):
        alone = measure(x[:, k - 1], 48000, "spl")
        rows = read_table(tmp_path / "rows" / f"x.ch{k}.csv").rows
        np.testing.assert_array_equal(rows["laf_db"][1:].astype(float), alone["laf_db"][1:])


def test_calibrations_in_a_table(run, sound_file, tmp_path):
    sound_file(noise(9600), name="a.wav")
    sound_file(noise(9600, channels=1), name="b.wav")
    table = tmp_path / "levels.csv"
    table.write_text("file,channel,full_scale_db\na.wav,1,100\na.wav,2,110\n,,120.5\n")
    chosen = ["--model", "spl", "--summary", "--calibrations", table]
    told = [json.loads(v) for v in run("analyze", "a.wav", "b.wav", *chosen).out.splitlines()]
    levels = [[one["full_scale_db_spl"] for one in v["calibration"]] for v in told]
    assert levels == [[100.0, 110.0], [120.5]]
    assert all(v["calibrated"] for v in told)
    table.write_text("file,channel,full_scale_db\na.wav,1,100\n")
    done = run("analyze", "a.wav", "b.wav", "-c", 1, *chosen)
    assert done.status == 1
    assert "b.wav: " in done.err
    assert "levels.csv has no calibration for channel 1" in done.err
    assert json.loads(done.out)["name"] == "a.wav"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "file,level\n",
            "has the columns file,level: give file,channel,full_scale_db or file,channel,sens",
        ),
        ("file,channel,full_scale_db\na.wav,x,1\n", "line 2: 'x' is not a number"),
        (
            "file,channel,full_scale_db\na.wav,1\n",
            "line 2 has 2 cells for 3 columns: give an empty",
        ),
        ("file,channel,full_scale_db\na.wav,1,nan\n", "line 2: full_scale_db_spl is nan"),
        ("file,channel,full_scale_db\na.wav,1,1\na.wav,1,2\n", "line 3: a.wav channel 1 is listed"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, words):
    table = tmp_path / "levels.csv"
    table.write_text(text)
    with pytest.raises(Mistake, match=re.escape(words)):
        BatchCalibration(AnalyzeOptions(calibrations=str(table)))


def test_calibration_by_the_recording_of_a_calibrator(run, sound_file, tone):
    """A tone recorded as 114 dB; what was recorded 20 dB lower is 94 dB."""
    t = np.arange(4 * 48000) / 48000
    sound_file(0.5 * np.sin(2 * np.pi * 1000 * t), name="calibrator.wav")
    sound_file(0.05 * np.sin(2 * np.pi * 1000 * t), name="x.wav")
    chosen = ["--model", "spl", "--summary", "--calibrator", "calibrator.wav"]
    summary = json.loads(run("analyze", "x.wav", *chosen, "--level", 114).out)
    assert summary["laeq_db"] == pytest.approx(94, abs=0.01)
    assert summary["calibrated"]
    done = run("analyze", "x.wav", *chosen, "--full-scale-db", 100)
    assert done.status == 2
    assert "--full-scale-db and --calibrator both give the calibration: leave one out" in done.err
    sound_file(noise(4 * 48000), name="calibrator.wav")
    done = run("analyze", "x.wav", *chosen)
    assert done.status == 1
    assert "calibrator.wav, channel 1: this is not a tone" in done.err


def calibrated_by(sound_file, name, hz):
    """What analyzes a tone of 1 kHz, 20 dB below the recording of a calibrator at a frequency."""
    t = np.arange(4 * 48000) / 48000
    sound_file(0.5 * np.sin(2 * np.pi * hz * t), name=name)
    sound_file(0.05 * np.sin(2 * np.pi * 1000 * t), name="x.wav")
    return ["analyze", "x.wav", "--model", "spl", "--summary", "--calibrator", name]


def test_a_pistonphone_is_found_and_its_level_is_asked_for(said, sound_file):
    chosen = calibrated_by(sound_file, "pistonphone.wav", 251.2)
    status, out, err = said(*chosen)
    assert (status, out) == (1, "")
    assert "pistonphone.wav, channel 1: the tone is at 251 Hz, as of a pistonphone" in err
    assert "add --level DB" in err
    for more in ([], ["--frequency", "250"]):
        status, out, err = said(*chosen, "--level", "114", *more)
        assert status == 0, err
        assert json.loads(out)["laeq_db"] == pytest.approx(94, abs=0.01)
    status, _, err = said(*chosen, "--level", "114", "--frequency", "1000")
    assert status == 1
    assert "251.2 Hz instead of 1000 Hz" in err
    assert said("analyze", "x.wav", "--frequency", "250")[0] == 2


def test_another_frequency_is_named_and_may_be_given(said, sound_file):
    chosen = calibrated_by(sound_file, "tone.wav", 500)
    status, _, err = said(*chosen)
    assert status == 1
    assert "500.0 Hz instead of 1000 or 250 Hz" in err
    assert "choose 500 Hz as its frequency" in err
    status, out, err = said(*chosen, "--frequency", "500")
    assert status == 0, err
    assert json.loads(out)["laeq_db"] == pytest.approx(74, abs=0.01)


@pytest.fixture
def one_after_another(sound_file):
    """A calibrator on channel 1, then on channel 2, with noise in the other; none on channel 3."""
    t = np.arange(8 * 48000) / 48000
    rng = np.random.default_rng(2)
    sound = 0.01 * rng.standard_normal((3 * len(t), 3))
    for channel, peak in ((0, 0.5), (1, 0.25)):
        begin = channel * len(t) + 4800
        sound[begin : begin + len(t) - 9600, channel] = peak * np.sin(2 * np.pi * 1000 * t)[9600:]
    sound_file(sound, name="tones.wav")
    tones = np.stack([0.05 * np.sin(2 * np.pi * 1000 * t[:48000])] * 3, axis=1)
    sound_file(tones, name="x.wav")
    return ["analyze", "x.wav", "--model", "spl", "--summary", "--calibrator", "tones.wav"]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("channels", "levels"), [("1", [74.0]), ("2", [80.02]), ("1,2", [80.02])])
def test_only_the_channels_that_are_analyzed_need_the_tone(
    said, one_after_another, channels, levels
):
    status, out, err = said(*one_after_another, "-c", channels)
    assert status == 0, err
    assert [json.loads(out)["laeq_db"]] == pytest.approx(levels, abs=0.02)


def test_a_channel_without_the_tone_is_named(said, one_after_another):
    status, out, err = said(*one_after_another, "-c", "each")
    assert status == 1
    assert [json.loads(line)["channels"] for line in out.splitlines()] == [[1], [2]]
    assert "x.wav: tones.wav, channel 3: this is not a tone" in err
    assert err.count("\n") == 1
