"""Rows as a program reads them: the same of both commands, and what their schema says."""

import csv
import io
import json
import re
from datetime import datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import jsonschema
import numpy as np
import pytest

from amt_stream.cli.command import build_parser, run_chosen
from amt_stream.cli.messages import Mistake
from amt_stream.meters import catalog
from amt_stream.sessions.results import read_results

FS = 48000
ELSEWHERE = ("ecma", "tonal", "impulses", "rating", "stipa")
METERS = tuple(name for name in catalog.models_side_by_side() if not name.startswith(ELSEWHERE))
"""Those of ECMA-418-2, of which each costs more than all others, are in `tests/meters`, and so are
tones, impulses and STIPA, which have no reading at first."""
MODULATION_MODELS = catalog.names(lambda entry: entry.alone)
ALL = ",".join(METERS)
SCHEMA = json.loads(resources.files("amt_stream.dsp.data").joinpath("rows.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LOUD = ("--full-scale-db", 100)


@pytest.fixture
def refused(capsys):
    """What a command says that ends without having measured anything."""

    def run(*arguments):
        args = build_parser().parse_args([*map(str, arguments)])
        try:
            assert run_chosen(args) == 1
            said = capsys.readouterr()
        except Mistake as error:
            said = capsys.readouterr()
            return str(error)
        assert said.out == ""
        return said.err

    return run


@pytest.fixture
def changing(sound_file):
    """1.3 s of noise with a step, different in both ears, at a rate of no whole kilohertz."""
    x = 0.02 * np.random.default_rng(0).standard_normal((57330, 2))
    x[:20000] *= 0.1
    return sound_file(x.astype(np.float32), 44100)


def read_csv(text):
    import pandas

    return pandas.read_csv(io.StringIO(text), comment="#")


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("models", "step_ms"),
    [
        (ALL, 1),
        pytest.param(ALL, 10, marks=pytest.mark.soak),
        pytest.param(ALL, 100, marks=pytest.mark.soak),
        ("ecma_tonality,ecma_roughness", 100),
        ("moore2016", 1),
        *((n, 100) for n in MODULATION_MODELS),
    ],
)
def test_the_meter_and_analyze_give_the_same_cells(printed, changing, models, step_ms):
    """Text by text, though one hears blocks of 100 ms and the other of 333 samples."""
    wanted = ["--model", models, "--step-ms", step_ms, "--format", "csv", *LOUD]
    analyzed = printed("analyze", changing, *wanted)
    metered = printed("meter", "--source", changing, "--fast", "-b", 333, *wanted)
    head, *expected = [line.split(",") for line in analyzed.splitlines() if line[0] != "#"]
    same, *got = [line.split(",") for line in metered.splitlines() if line[0] != "#"]
    assert same == head
    assert head[:3] == ["time_s", "utc", "sample"]
    assert len(got) == len(expected)
    assert {row[1] for row in expected} == {""}
    if models in MODULATION_MODELS:
        # Their filters round in single precision, by the length of a block.
        at = head.index("rms")
        values = np.array([[float(row.pop(at)) for row in rows] for rows in (got, expected)])
        np.testing.assert_allclose(*values, rtol=2e-6, atol=1e-7 * values.max())
    assert [row[:1] + row[2:] for row in got] == [row[:1] + row[2:] for row in expected]
    if models == ALL:
        assert len(expected) == 1300 // step_ms + 1
        table = read_csv(analyzed)
        assert (
            not table.drop(columns=["utc", "fault", "clipped_columns", "short_term_lufs", "lra_lu"])
            .iloc[-1]
            .isna()
            .any()
        )


@pytest.mark.cases(2)
@pytest.mark.parametrize("models", ["moore2016", ALL, *MODULATION_MODELS])
@pytest.mark.parametrize("command", ["meter", "analyze"])
def test_what_is_written_is_what_the_schema_says(printed, sound_file, tone, command, models):
    path = sound_file(tone(60.0, 0.3))
    source = ["meter", "--source", path, "--fast"] if command == "meter" else ["analyze", path]
    wanted = [*source, "--model", models, "--step-ms", 100, *LOUD, "--calibration-uncertainty", 1]
    text = printed(*wanted, "--format", "jsonl")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        VALIDATOR.validate(line)
    header, *rows, summary = lines
    columns = {column["name"] for column in header["header"]["columns"]}
    for row in rows:
        assert columns == set(row) - {
            *("time_s", "utc", "sample", "fault", "settling", "settling_columns"),
            *("clipped_columns", "calibrated"),
        }
    names = [model["name"] for model in header["header"]["models"]]
    assert names == models.split(",")
    assert all(column["model"] in (*names, "") for column in header["header"]["columns"])
    assert (header["header"]["start_utc"] is None) == (command == "analyze")
    assert set(summary["summary"]["statistics"]) == set(names) & set(METERS)

    comments = [line[2:] for line in printed(*wanted, "--format", "csv").splitlines()]
    told = dict(line.split(": ", 1) for line in comments if ": " in line)
    about = {key: json.loads(value) for key, value in told.items()}
    VALIDATOR.validate({"header": about})
    for changing in ("start_utc", "host"):
        about.pop(changing, None)
        header["header"].pop(changing, None)
    assert about == header["header"]


def test_the_schema_refuses_what_is_not_a_row():
    row = {"time_s": 0.0, "utc": None, "sample": 0, "x": 1.0, "fault": "gap non_finite"}
    row |= {"settling": True, "settling_columns": "all", "clipped_columns": "", "calibrated": False}
    VALIDATOR.validate(row)
    for wrong in ({"fault": "noise"}, {"fault": "gap "}, {"sample": 0.5}, {"utc": "today"}):
        assert not VALIDATOR.is_valid(row | wrong)
    assert not VALIDATOR.is_valid({k: v for k, v in row.items() if k != "calibrated"})
    assert not VALIDATOR.is_valid({"header": {"schema": 2}})


def test_pandas_reads_both(printed, changing):
    import pandas

    wanted = ["analyze", changing, "--model", ALL, "--step-ms", 100, *LOUD]
    table = read_csv(printed(*wanted))
    text = printed(*wanted, "--format", "jsonl")
    lines = pandas.read_json(io.StringIO(text), lines=True, precise_float=True)
    assert lines["header"].notna().sum() == lines["summary"].notna().sum() == 1
    rows = lines[lines["time_s"].notna()].drop(columns=["header", "summary"])
    assert list(rows.columns) == list(table.columns)
    assert len(rows) == len(table) == 14
    for name in table.columns.difference(["utc", "fault", "settling_columns", "clipped_columns"]):
        np.testing.assert_array_equal(rows[name].to_numpy(float), table[name].to_numpy(float))


def test_percentiles_and_minima_leave_out_the_rise_from_silence(printed, sound_file):
    """2 s of steady noise: the lowest level is below that exceeded 90 % of the time."""
    x = 0.02 * np.random.default_rng(1).standard_normal((2 * FS, 2))
    wanted = ["analyze", sound_file(x), "--summary", "--model", ALL, *LOUD]
    told = json.loads(printed(*wanted))
    levels = [told[f"{name}_db"] for name in ("lafmin", "l99", "l90", "l10", "l1", "lafmax")]
    # Percentiles are the middle of their class.
    assert (np.diff(levels) > -0.025).all()
    assert told["l99_db"] > told["laeq_db"] - 1
    for prefix in ("", "gm2002_"):
        assert told[f"{prefix}ltl_n99_phon"] > told[f"{prefix}max_ltl_phon"] - 0.5
    assert told["zwicker_n99_sone"] > 0.9 * told["zwicker_nmax_sone"]
    statistics = told["statistics"]
    assert statistics["moore2016"]["rise_s"] == {"loudness": 0.5}
    assert statistics["moore2016"]["measured_s"] == pytest.approx(2.0, abs=0.002)
    assert statistics["moore2016"]["excluded_s"] == 0
    assert statistics["spl"]["rise_s"] == {"F": 0.625, "S": 5.0}
    assert "rise_s" not in statistics["bs1770"]
    # From 0 on is what is usual, and says nothing more.
    again = json.loads(printed(*wanted, "--from", 0))
    assert {**again, "date": None} == {**told, "date": None}


def test_a_part_of_the_sound_is_chosen(printed, sound_file):
    """Levels of an interval are those of its samples; rows are those in it."""
    import pandas

    rng = np.random.default_rng(2)
    x = np.concatenate([level * rng.standard_normal(FS) for level in (0.001, 0.1, 0.01, 0.1)])
    path = sound_file(x)
    wanted = ["analyze", path, "--model", "spl,zwicker,moore2016", *LOUD, "--from", 1, "--to", 3]
    told = json.loads(printed(*wanted, "--summary"))
    expected = 100 + 10 * np.log10(2 * np.mean(x[FS : 3 * FS] ** 2))
    assert told["lzeq_db"] == pytest.approx(expected, abs=0.01)
    assert told["lae_db"] - told["laeq_db"] == pytest.approx(10 * np.log10(2), abs=0.001)
    for name in ("spl", "zwicker", "moore2016"):
        statistics = told["statistics"][name]
        assert (statistics["from_s"], statistics["to_s"]) == (1.0, 3.0)
        assert statistics["measured_s"] == pytest.approx(2.0, abs=0.002)
    rows = read_csv(printed(*wanted, "--step-ms", 10))
    np.testing.assert_allclose(rows["time_s"], np.arange(100, 301) / 100)
    assert rows["laeq_db"].iloc[-1] == told["laeq_db"]
    # Live rows cover the same part.
    live = ["meter", "--source", path, "--fast", *wanted[2:], "--format", "csv", "--step-ms", 10]
    again = read_csv(printed(*live))
    pandas.testing.assert_frame_equal(again.drop(columns="utc"), rows.drop(columns="utc"))


def test_columns_are_chosen_by_name_and_pattern(printed, sound_file, tone):
    path = sound_file(tone(60.0, 3.0))
    wanted = "laeq_2s_db,ltl_n5_1s_phon,l?eq_db,zwicker_n5_2s_sone,integrated_lufs,laeq_1s_left_db"
    rows = read_csv(
        printed("analyze", path, "--model", ALL, *LOUD, "--columns", wanted, "--step-ms", 500)
    )
    assert list(rows)[3:-5] == [
        "ltl_n5_1s_phon",
        "zwicker_n5_2s_sone",
        "integrated_lufs",
        *("laeq_2s_db", "laeq_db", "lceq_db", "lzeq_db", "laeq_1s_left_db"),
    ]
    last = rows.iloc[-2]
    for name in ("laeq_2s_db", "laeq_1s_left_db", "ltl_n5_1s_phon"):
        assert last[name] == pytest.approx(60.0, abs=0.1)
    assert last["integrated_lufs"] == pytest.approx(-40.0, abs=0.05)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("laeq", "no column is called 'laeq': did you mean laeq_db?"),
        ("lafmax_db,nothing*", "no column is called 'nothing*'"),
        ("laeq_100h_db", "give 1s to 24h"),
        ("integrated_lufs", "no column is called 'integrated_lufs'"),
    ],
)
def test_a_column_that_is_not_there_is_refused(refused, sound_file, tone, columns, said):
    path = sound_file(tone(60.0, 0.1))
    assert said in refused("analyze", path, "--model", "spl", "--columns", columns)


def test_mono_counts_as_two_and_a_target_is_zero(printed, refused, sound_file, tone):
    path = sound_file(tone(77.0, 1.0)[:, :1])
    wanted = ["analyze", path, "--model", "bs1770", "--summary"]
    plain = json.loads(printed(*wanted))
    told = json.loads(printed(*wanted, "--dual-mono", "--target", -23))
    assert told["integrated_lufs"] - plain["integrated_lufs"] == pytest.approx(3.0103, abs=1e-4)
    assert told["integrated_lu"] == pytest.approx(told["integrated_lufs"] + 23, abs=1e-4)
    assert told["true_peak_dbtp"] == plain["true_peak_dbtp"]
    assert told["models"] == [{"name": "bs1770", "target_lufs": -23.0, "dual_mono": True}]
    rows = read_csv(printed(*wanted[:-1], "--target", -23, "--step-ms", 500))
    assert rows["momentary_lu"].iloc[-1] == pytest.approx(
        rows["momentary_lufs"].iloc[-1] + 23, abs=1e-4
    )
    two = sound_file(tone(77.0, 0.1), name="two.wav")
    for arguments, said in (
        (["--model", "bs1770", "--dual-mono"], "dual mono is for one channel"),
        (["--model", "spl", "--target", -23], "--target is for bs1770, and the model is spl"),
        (["--model", "spl", "--dual-mono"], "--dual-mono is for bs1770, and the model is spl"),
    ):
        assert said in refused("analyze", two, *arguments)


def test_a_summary_goes_where_it_is_told(printed, refused, sound_file, tone, tmp_path):
    files = [sound_file(tone(60.0, 0.3), name=name) for name in ("a.wav", "b.wav")]
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    wanted = ["--summary", "--model", "bs1770", "--out"]
    assert printed("analyze", files[0], *wanted, one) == ""
    told = json.loads(one.read_text())
    VALIDATOR.validate({"summary": told})
    assert (told["name"], told["fs"]) == (str(files[0]), FS)
    assert "exists: --force overwrites" in refused("analyze", files[0], *wanted, one)
    assert printed("analyze", *files, *wanted, two) == ""
    assert [told["name"] for told in json.loads(two.read_text())] == list(map(str, files))


@pytest.mark.parametrize("command", ["analyze", "meter"])
def test_without_a_row_there_is_a_header_and_a_summary(printed, sound_file, tone, command):
    path = sound_file(tone(60.0, 0.1))
    sound = (path,) if command == "analyze" else ("--source", path, "--fast")
    wanted = [command, *sound, "--model", "spl", "--from", 0.05, "--step-ms", 1000]
    rows = read_csv(printed(*wanted, "--format", "csv"))
    assert (len(rows), *rows.columns[:2], rows.columns[-1]) == (0, "time_s", "utc", "calibrated")
    lines = printed(*wanted, "--format", "jsonl").splitlines()
    header, summary = map(json.loads, lines)
    for line in (header, summary):
        VALIDATOR.validate(line)
    assert header["header"]["statistics"]["spl"]["from_s"] == 0.05
    assert summary["summary"]["statistics"]["spl"]["measured_s"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "rows.json"], "ends in .json, which is for a summary"),
        (["--out", "rows.csv", "--format", "jsonl"], "ends in .csv and --format is jsonl"),
    ],
)
def test_an_ending_that_lies_is_refused(refused, sound_file, tone, arguments, said):
    assert said in refused("analyze", sound_file(tone(60.0, 0.1)), *arguments)


@pytest.mark.quick
def test_rows_have_the_format_of_their_ending(printed, sound_file, tone, tmp_path):
    target = tmp_path / "rows.jsonl"
    printed("analyze", sound_file(tone(60.0, 0.1)), "--model", "spl", "--out", target)
    lines = target.read_text().splitlines()
    assert "header" in json.loads(lines[0])
    assert "summary" in json.loads(lines[-1])


def test_the_level_of_the_last_seconds_is_the_plain_one(printed, sound_file):
    """The short form of 15 min: LAeq of each row against its own samples, Z-weighted."""
    rng = np.random.default_rng(3)
    lines = np.fft.rfft(rng.standard_normal((8, 8000)))
    lines[:, :10] = 0.0  # below 10 Hz, as in what a microphone gives
    x = (np.fft.irfft(lines) * 10 ** rng.uniform(-4, -1, (8, 1))).ravel().astype(np.float32)
    rows = read_csv(
        printed(
            *("analyze", sound_file(x, 8000), "--model", "spl", *LOUD),
            *("--columns", "lzeq_3s_db,lzeq_db", "--step-ms", 100),
        )
    )
    power = np.concatenate([[0.0], np.cumsum(np.float64(x) ** 2)])
    for row in rows.iloc[1:].itertuples():
        stop = round(row.time_s * 8000)
        for name, start in (("lzeq_3s_db", max(0, stop - 24000)), ("lzeq_db", 0)):
            expected = 100 + 10 * np.log10(2 * (power[stop] - power[start]) / (stop - start))
            assert getattr(row, name) == pytest.approx(expected, abs=0.01)


def as_a_spreadsheet(text):
    """Cells by column, of text whose first line is the names and whose rows are all as long."""
    names, *rows = csv.reader(io.StringIO(text))
    assert names[:2] == ["time_s", "utc"]
    assert {len(row) for row in rows} == {len(names)}
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def read_header(text):
    """The header of one line of JSON."""
    (line,) = text.splitlines()
    told = json.loads(line)
    VALIDATOR.validate(told)
    return told["header"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu"])
def test_a_spreadsheet_opens_rows_with_their_header_beside(printed, sound_file, tmp_path, zone):
    """The hour that the clock shows twice, in a spreadsheet and beside it in UTC."""
    sounds = tmp_path / "sounds"
    rng = np.random.default_rng(4)
    for name in ("sounds/a.wav", "sounds/b, again.wav"):
        sound_file(0.01 * rng.standard_normal(3 * 8000), 8000, name)
    began = "2026-10-25T00:59:58.750Z"
    wanted = ["analyze", sounds, "--model", "spl", *LOUD, "--step-ms", 125, "--began", began]
    folder, plain = tmp_path / "rows", tmp_path / "plain"
    printed(*wanted, "--zone", zone, "--out", plain)
    again = [*wanted, "--zone", zone, "--no-header", "--local-time", "--out", folder]
    printed(*again)
    assert len([*folder.glob("*.csv")]) == 2
    for path in folder.glob("*.csv"):
        cells = as_a_spreadsheet(path.read_text())
        assert [*cells][1:3] == ["utc", "local_time"]
        utc = [datetime.fromisoformat(text) for text in cells["utc"]]
        local = [datetime.fromisoformat(text) for text in cells["local_time"]]
        assert local == [one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in utc]
        assert all(re.fullmatch(r"[\d-]{10} [\d:]{8}\.\d{3}", one) for one in cells["local_time"])
        # Nothing is lost: the header beside it, and cell by cell the rest.
        expected = (plain / path.name).read_text()
        about = dict(line[2:].split(": ", 1) for line in expected.splitlines() if line[0] == "#")
        header = read_header(path.with_name(f"{path.name}.header.json").read_text())
        assert header == {key: json.loads(value) for key, value in about.items()}
        bare = "".join(line for line in expected.splitlines(True) if line[0] != "#")
        assert {**as_a_spreadsheet(bare), "local_time": cells["local_time"]} == cells
        results = read_results(path)
        assert (len(results.rows), results.header) == (25, header)
    # A header that is lost is made again, with its rows.
    lost = folder / "a.csv.header.json"
    lost.unlink()
    printed(*again, "--resume")
    assert read_header(lost.read_text())["source"]["name"] == str(sounds / "a.wav")


def test_a_spreadsheet_opens_intervals(printed, sound_file):
    path = sound_file(0.01 * np.random.default_rng(5).standard_normal(4 * 8000), 8000)
    wanted = ["analyze", path, "--model", "spl", *LOUD, "--interval", "2s", "--no-header"]
    clock = ["--began", "2026-11-22T13:00:00Z", "--zone", "Europe/Berlin", "--local-time"]
    cells = as_a_spreadsheet(printed(*wanted, *clock))
    assert cells["local_time"] == ("2026-11-22 14:00:00.000", "2026-11-22 14:00:02.000")


def test_live_rows_tell_their_header_on_standard_error(run, sound_file, tone):
    path = sound_file(tone(60.0, 0.5))
    wanted = ["meter", "--source", path, "--fast", "--model", "spl", *LOUD, "--format", "csv"]
    done = run(*wanted, "--no-header", "--local-time", TZ="Asia/Kathmandu")
    assert done.status == 0
    cells = as_a_spreadsheet(done.out)
    header = read_header(next(line for line in done.lines if line.startswith("{")))
    assert header["source"]["name"] == path.name
    for utc, local in zip(cells["utc"], cells["local_time"], strict=True):
        ahead = datetime.fromisoformat(local) - datetime.fromisoformat(utc).replace(tzinfo=None)
        assert ahead == timedelta(hours=5, minutes=45)


@pytest.mark.parametrize("option", ["--no-header", "--local-time"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze", "FILE", "--format", "jsonl"], "the format is jsonl"),
        (["analyze", "FILE", "--out", "rows.parquet"], "the format is parquet"),
        (["analyze", "FILE", "--summary"], "no rows are written"),
        (["analyze", "FILE", "--summary", "--out", "told.json"], "no rows are written"),
        (["meter", "--source", "FILE", "--format", "jsonl"], "the format is jsonl"),
        (["meter", "--source", "FILE", "--terminal"], "no rows are written"),
    ],
)
def test_what_is_of_csv_is_refused_elsewhere(refused, sound_file, tone, arguments, said, option):
    path = sound_file(tone(60.0, 0.1))
    given = [path if one == "FILE" else one for one in arguments]
    assert refused(*given, option) == f"{option} is for CSV, and {said}: leave it out"


def test_local_time_of_a_file_needs_its_beginning(refused, sound_file, tone):
    assert "add --began" in refused("analyze", sound_file(tone(60.0, 0.1)), "--local-time")


def test_a_header_of_somebody_else_is_not_overwritten(printed, refused, sound_file, tone, tmp_path):
    path, out = sound_file(tone(60.0, 0.1)), tmp_path / "rows.csv"
    other = tmp_path / "rows.csv.header.json"
    other.write_text("mine")
    wanted = ["analyze", path, "--model", "spl", "--no-header", "--out", out]
    assert f"{other} exists: --force overwrites" in refused(*wanted)
    assert (other.read_text(), out.exists()) == ("mine", False)
    printed(*wanted, "--force")
    assert read_header(other.read_text())["source"]["name"] == str(path)
