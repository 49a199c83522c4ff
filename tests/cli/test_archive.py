"""Archives: batches that are broken off and go on, and what their sounds are calibrated by."""

import json
import os
import signal
import sys
import time

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.cli.command import build_parser
from amt_stream.cli.messages import Mistake
from amt_stream.cli.sounds import progress
from amt_stream.cli.sounds.batch import BatchCalibration, tasks_of
from amt_stream.offline.jobs import WorkerLost, as_done
from amt_stream.sessions.manifest import NAME, Manifest, ManifestError
from amt_stream.sessions.outputs import ParquetWriter
from tests.cli.killed import killed_once

SPL = ["--model", "spl", "--full-scale-db", "100"]


def noise(samples, seed=0):
    return 0.01 * np.random.default_rng(seed).standard_normal((samples, 1))


@pytest.fixture
def day(sound_file):
    """Write so many short sounds into the folder `day`; gives their names."""

    def make(count, samples=4800):
        names = [f"{k:02d}" for k in range(count)]
        for k, name in enumerate(names):
            sound_file(noise(samples + k, k), name=f"day/{name}.wav")
        return names

    return make


def lines_of(folder):
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def test_what_is_done_is_not_done_again(said, day, tmp_path):
    names = day(3)
    call = ["analyze", "day", *SPL, "--out", "rows", "--summary"]
    (tmp_path / "day" / "01.wav").rename(tmp_path / "later.wav")
    (tmp_path / "day" / "01.wav").write_bytes(b"no sound")
    status, out, err = said(*call, "--resume")
    assert (status, out.count("\n"), err.count("\n")) == (1, 2, 1)
    rows = tmp_path / "rows"
    before = {path.name: path.stat().st_mtime_ns for path in rows.glob("*.csv")}
    assert sorted(before) == ["00.csv", "02.csv"]
    states = [(line["part"], line["state"]) for line in lines_of(rows) if "part" in line]
    assert states[:3] == [(f"{name}.csv", "planned") for name in names]
    assert states[3:] == [("00.csv", "done"), ("01.csv", "failed"), ("02.csv", "done")]

    (tmp_path / "later.wav").replace(tmp_path / "day" / "01.wav")
    status, again, err = said(*call, "--resume")
    assert (status, err) == (0, "")
    assert [json.loads(line)["name"] for line in again.splitlines()] == [
        f"day/{name}.wav" for name in names
    ]
    assert {again.splitlines()[k] for k in (0, 2)} == set(out.splitlines())
    for name, modified_ns in before.items():
        assert (rows / name).stat().st_mtime_ns == modified_ns
    assert "00.csv exists: --force overwrites it, or --resume to go on" in said(*call)[2]


def test_a_sound_that_was_changed_is_measured_again(said, day, sound_file, tmp_path):
    day(2)
    call = ["analyze", "day", *SPL, "--out", "rows", "--resume"]
    assert said(*call)[0] == 0
    first = {path.name: path.read_text() for path in (tmp_path / "rows").glob("*.csv")}
    sound_file(noise(9600, 7), name="day/01.wav")
    assert said(*call)[0] == 0
    then = {path.name: path.read_text() for path in (tmp_path / "rows").glob("*.csv")}
    assert then["00.csv"] == first["00.csv"]
    assert then["01.csv"].count("\n") == first["01.csv"].count("\n") + 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ["--step-ms", "20"],
            "was measured with another step_ms (10, instead of 20): give the same",
        ),
        (["--no-header"], "was measured with another no_header (false, instead of true): give"),
        (["--full-scale-db", "94"], "was measured with another calibration ("),
        (["--model", "bs1770"], "was measured with another model ("),
    ],
)
def test_parts_of_other_settings_are_not_gone_on_with(said, day, change, words):
    day(1)
    assert said("analyze", "day", *SPL, "--out", "rows", "--resume")[0] == 0
    status, _, err = said("analyze", "day", *SPL, *change, "--out", "rows", "--resume")
    assert (status, err.count("\n")) == (1, 1)
    assert f"rows/00.csv {words}" in err


def test_a_part_that_was_edited_is_never_overwritten(said, day, tmp_path):
    day(1)
    call = ["analyze", "day", *SPL, "--out", "rows", "--resume"]
    assert said(*call)[0] == 0
    part = tmp_path / "rows" / "00.csv"
    part.write_text("a note")
    status, _, err = said(*call)
    assert status == 1
    assert "rows/00.csv has changed since it was measured (6 bytes instead of " in err
    assert part.read_text() == "a note"


def test_what_somebody_else_wrote_is_no_part(said, day, tmp_path):
    day(2)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "00.csv").write_text("there before")
    status, _, err = said("analyze", "day", *SPL, "--out", "rows", "--resume")
    assert status == 1
    assert "00.csv exists: --force overwrites it (day/00.wav was not read)" in err
    assert (tmp_path / "rows" / "00.csv").read_text() == "there before"


@pytest.mark.parametrize("arguments", [[], ["--out", "-"], ["--summary", "--out", "x.json"]])
def test_there_is_nothing_to_go_on_with_but_a_folder(said, day, arguments):
    day(1)
    status, _, err = said("analyze", "day", *SPL, "--resume", *arguments)
    assert (status, err.count("\n")) == (2, 1)
    assert "--resume continues an output folder: name it with --out" in err


def test_parts_stand_as_their_sounds_do(said, sound_file, tmp_path):
    for name in ("x/a.wav", "y/a.wav", "y/z/a.wav"):
        (tmp_path / name).parent.mkdir()
        sound_file(noise(480), name=name)
    assert said("analyze", "*/**/a.wav", *SPL, "--out", "rows")[0] == 0
    found = {path.relative_to(tmp_path / "rows").as_posix() for path in tmp_path.rglob("*.csv")}
    assert found == {"x/a.csv", "y/a.csv", "y/z/a.csv"}


def test_a_manifest_that_is_torn_and_one_that_is_none(tmp_path):
    with Manifest(tmp_path) as manifest:
        manifest.begin({"a": 1}, {"a.csv": {"file": "a.wav"}, "b.csv": {}})
        (tmp_path / "a.csv").write_text("123")
        manifest.done("a.csv", {"laeq_db": 60.0})
        with pytest.raises(ManifestError, match="another run writes"):
            Manifest(tmp_path).begin({}, {})
    whole = (tmp_path / NAME).read_bytes()
    with (tmp_path / NAME).open("ab") as stream:
        stream.write(b'{"part": "b.csv", "sta')
    with Manifest(tmp_path) as again:
        known = again.known("a.csv")
        assert (known.state, known.length, known.summary) == ("done", 3, {"laeq_db": 60.0})
        assert again.known("b.csv").state == "planned"
        assert again.known("c.csv") is None
        again.begin({"a": 2}, {})
    assert (tmp_path / NAME).read_bytes().startswith(whole + b'{"run": 2')
    (tmp_path / NAME).write_text('{"part": "a.csv", "state": "done"}\n{}\n')
    with pytest.raises(ManifestError, match="line 1 is not of a manifest: give another folder"):
        Manifest(tmp_path)


def rows_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".csv"}


def test_killed_twice_and_gone_on_with(begin, said, day, sound_file, tmp_path):
    """No part doubled or missing, each as in a run that nobody ended; whatever a kill left goes."""
    day(5)
    sound_file(noise(60 * 48000), name="day/long.wav")
    assert said("analyze", "day", *SPL, "--out", "whole", "--step-ms", "1000")[0] == 0
    arguments = ["analyze", "day", *SPL, "--out", "rows", "--step-ms", "1000", "--resume"]
    rows, before = tmp_path / "rows", 0
    for _ in range(2):
        with begin(*arguments, options=["session"]) as run:
            give_up = time.monotonic() + 100
            while not rows.exists() or len(rows_in(rows)) <= before:
                assert run.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.005)
            os.killpg(run.pid, signal.SIGKILL)
        before = len(rows_in(rows))
    assert 2 <= before < 6
    assert said(*arguments)[0] == 0
    assert rows_in(rows) == rows_in(tmp_path / "whole")
    assert [path.name for path in rows.iterdir() if path.name.startswith(".")] == []
    done = [line["part"] for line in lines_of(rows) if line.get("state") == "done"]
    assert sorted(done) == sorted(rows_in(rows))


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    found = dict(as_done(killed_once, [tmp_path / "a", None], 2))
    lost = found.pop(1)
    assert found == {0: "a"}
    assert isinstance(lost, WorkerLost)
    assert "was lost 3 times" in str(lost)


def levels(*arguments):
    return BatchCalibration(build_parser().parse_args(["analyze", "x", *map(str, arguments)]))


def test_a_table_with_patterns_and_sensitivities(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "levels.csv").write_text(
        "file,channel,sensitivity_dbfs\nb/*.wav,,-26\nb/x.wav,1,-30.5\n,2,-20\n"
    )
    of = levels("--calibrations", "levels.csv").of
    for name, told in (("b/y.wav", [120.0]), ("b/x.wav", [124.5, 120.0])):
        path = tmp_path / name
        assert [
            one.full_scale_db_spl for one in of(path.relative_to(tmp_path)).of(path, (1, 2))
        ] == (told)
    with pytest.raises(Mistake, match=r"levels.csv has no calibration for channel 1"):
        of(tmp_path / "c.wav").of(tmp_path / "c.wav", (1, 2))


def test_a_calibrator_recording_in_each_folder(said, sound_file, tmp_path, monkeypatch):
    """The nearest holds; it is no sound of the archive; a bad one ends only its own folder."""
    monkeypatch.chdir(tmp_path)
    t = np.arange(4 * 48000) / 48000
    for folder, peak in (("a", 0.5), ("b", 0.05), ("c", None)):
        (tmp_path / folder).mkdir()
        tone = noise(4 * 48000) if peak is None else peak * np.sin(2 * np.pi * 1000 * t)
        sound_file(tone, name=f"{folder}/tone.wav", subtype="PCM_16")
        sound_file(0.5 * np.sin(2 * np.pi * 1000 * t[:48000]), name=f"{folder}/x.wav")
    (tmp_path / "b" / "below").mkdir()
    (tmp_path / "b" / "x.wav").rename(tmp_path / "b" / "below" / "x.wav")
    call = ["analyze", "**/*.wav", "--calibrator", "*/tone.wav", "--model", "spl", "--summary"]
    status, out, err = said(*call)
    assert status == 1
    told = {one["name"]: one["laeq_db"] for one in map(json.loads, out.splitlines())}
    assert told.keys() == {"a/x.wav", "b/below/x.wav"}
    assert told["a/x.wav"] == pytest.approx(94, abs=0.02)
    assert told["b/below/x.wav"] == pytest.approx(114, abs=0.02)
    assert err.count("\n") == 1
    assert "c/tone.wav, channel 1: this is not a tone" in err
    sound_file(np.zeros(480), name="a/tone2.wav")
    with pytest.raises(Mistake, match=r"both match \*/t\*.wav: only one calibrator per fol"):
        levels("--calibrator", "*/t*.wav")
    with pytest.raises(Mistake, match="no file matches none/"):
        levels("--calibrator", "none/*.wav")


def test_what_is_left_is_told_now_and_then(said, day, monkeypatch):
    """By the bytes of what is done; where it is no terminal, no more often than BEAT_S."""
    day(3)
    call = ["analyze", "day", *SPL, "--out", "rows", "--resume"]
    monkeypatch.setattr(progress, "BEAT_S", 3600.0)  # where everything has yet to be compiled
    assert said(*call)[2] == ""
    monkeypatch.setattr(progress, "BEAT_S", 0.0)
    told = said(*call, "--out", "others")[2].splitlines()
    assert any(line.startswith("amt-stream: 0 of 3 sounds: 33%, ") for line in told)
    assert told[-1] == "amt-stream: 3 of 3 sounds: 100%, 0 s left"
    assert said(*call)[2] == ""


def test_every_channel_by_two_words(tmp_path, sound_file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sound_file(np.zeros((480, 3)))
    parsed = [build_parser().parse_args(["analyze", "x", "-c", word]) for word in ("all", "each")]
    for args in parsed:
        assert [task.channels for task in tasks_of(["sound.wav"], args.channels)] == [
            (1,),
            (2,),
            (3,),
        ]


def test_parts_of_parquet_are_one_table(said, sound_file, tmp_path):
    """What the rows of `measure` are, with their types, and null where there is no reading."""
    pytest.importorskip("pyarrow")
    import pandas
    from pyarrow.parquet import ParquetFile, read_table

    sounds = {name: noise(9600, k).astype(np.float32) for k, name in enumerate("ab")}
    for name, x in sounds.items():
        sound_file(x, name=f"day/{name}.wav")
    call = ["analyze", "day", *SPL, "--format", "parquet", "--out", "rows", "--summary", "--resume"]
    status, out, err = said(*call)
    assert (status, err) == (0, "")
    frame = pandas.read_parquet(tmp_path / "rows")
    assert list(frame.groupby("file", observed=True)["time_s"].count()) == [21, 21]
    for (name, x), told in zip(sounds.items(), out.splitlines(), strict=True):
        expected = measure(x, 48000, "spl", calibration=100.0)
        table = read_table(tmp_path / "rows" / f"{name}.parquet")
        assert table.column_names == ["file", "channels", *expected.columns]
        for column in ("sample", "laf_db", "laeq_db"):
            got = table[column].to_pandas().to_numpy()
            np.testing.assert_array_equal(got, expected[column])
        assert table["laf_db"].null_count == np.isnan(expected["laf_db"]).sum() > 0
        assert table["utc"].null_count == 21
        assert table["fault"].to_pylist() == [row["fault"] for row in expected.rows]
        about = ParquetFile(tmp_path / "rows" / f"{name}.parquet").metadata.metadata
        assert json.loads(about[b"header"])["source"]["name"] == f"day/{name}.wav"
        assert json.loads(about[b"summary"]) == json.loads(told)
    assert said(*call) == (0, out, "")


def test_groups_of_rows_follow_one_another(tmp_path):
    """Rows come in small blocks and are written in large ones."""
    pytest.importorskip("pyarrow")
    from pyarrow.parquet import ParquetFile

    measured = measure(np.zeros(48000), 48000, "spl", step_ms=1)
    with (tmp_path / "x.parquet").open("w") as stream:
        writer = ParquetWriter(stream, measured.header)
        for _ in range(100):
            writer.write(measured.rows)
        writer.finish({})
    file = ParquetFile(tmp_path / "x.parquet")
    assert [file.metadata.row_group(k).num_rows for k in range(2)] == [66 * 1001, 34 * 1001]
    assert file.read(["sample"])["sample"].to_pylist() == measured["sample"].tolist() * 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "parquet needs a file or a folder: name it with --out"),
        (["--out", "x.csv"], "x.csv ends in .csv and --format is parquet: leave one out"),
    ],
)
def test_parquet_that_cannot_be_written(said, day, arguments, words):
    day(1)
    status, _, err = said("analyze", "day", *SPL, "--format", "parquet", *arguments)
    assert (status, err) == (2, f"amt-stream: {words}\n")


@pytest.mark.parametrize(
    ("arguments", "module", "words"),
    [(["--format", "parquet"], "pyarrow", 'not installed: pip install "amt_stream[data]", or')],
)
def test_what_is_not_installed_is_told(said, day, monkeypatch, arguments, module, words):
    day(1)
    monkeypatch.setitem(sys.modules, module, None)
    status, _, err = said("analyze", "day", *SPL, "--out", "rows", *arguments)
    assert status in (1, 2)
    assert err.count("\n") == 1
    assert words in err
