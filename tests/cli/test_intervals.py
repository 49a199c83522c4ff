"""`--interval` of `analyze`, `meter` and their logs, as somebody types it."""

import json
import math

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.sessions import Session


@pytest.fixture
def sound(sound_file):
    rng = np.random.default_rng(5)
    return sound_file(0.01 * rng.standard_normal(round(6.3 * 48000)) * np.linspace(0.1, 1, 302400))


def test_analyze_writes_a_table_of_intervals(said, sound, tmp_path):
    typed = ["analyze", sound, "--model", "spl", "--interval", "2s", "--full-scale-db", "100"]
    status, out, _ = said(*typed, "--out", "table.jsonl")
    assert status == 0
    header, *rows, summary = map(json.loads, (tmp_path / "table.jsonl").read_text().splitlines())
    m = measure(sound, models="spl", calibration=100.0, interval=2)
    assert rows == [*m.intervals]
    assert [row["partial"] for row in rows] == [False, False, False, True]
    assert header["header"]["interval"] == {"seconds": 2, "clock": "elapsed time"}
    assert summary["summary"]["laeq_db"] == m.summary["laeq_db"]
    status, out, _ = said(
        *typed, "--summary", "--began", "2026-03-29T01:59:57+01:00", "--zone", "Europe/Berlin"
    )
    told = json.loads(out)
    assert [row["local"] for row in told["intervals"]] == [
        *("2026-03-29T01:59:57+01:00", "2026-03-29T01:59:58+01:00"),
        *("2026-03-29T03:00:00+02:00", "2026-03-29T03:00:02+02:00"),
    ]


def test_meter_writes_intervals_and_a_log_keeps_them(run, sound, tmp_path):
    typed = ["meter", "--source", sound, "--fast", "--model", "spl", "--interval", "1s"]
    done = run(*typed, "--format", "csv", "--log", "night")
    assert done.status == 0, done.err
    kept = Session(tmp_path / "night").intervals()
    assert done.rows["laeq_db"].tolist() == [row["laeq_db"] for row in kept]
    assert len(kept) == 7
    assert len([*Session(tmp_path / "night").rows()]) == 64


def test_report_and_compare_take_parts_of_a_log(run, sound, tmp_path):
    typed = ["meter", "--source", sound, "--fast", "--model", "spl", "--full-scale-db", "100"]
    assert run(*typed, "--interval", "1s", "--log", "night", "--quiet").status == 0
    done = run("report", "night", "--from", "2", "--to", "5", "--interval", "1s")
    assert done.status == 0, done.err
    page = (tmp_path / "night-report.html").read_text()
    assert "Intervals" in page
    own = [row["laeq_db"] for row in Session(tmp_path / "night").intervals()][2:5]
    mean = 10 * math.log10(sum(10 ** (level / 10) for level in own) / 3)
    assert f"{mean:.1f}" in page
    done = run("compare", "night", "night", "--from", "2", "--to", "5", "--json")
    assert done.status == 0, done.err
    done = run("report", "night", "--from", "1h", "--force")
    assert (done.status, len(done.lines)) == (1, 1)
    done = run("compare", "night", "night", "--interval", "1s")
    assert done.status == 0, done.err


@pytest.mark.parametrize(
    ("typed", "said_of_it"),
    [
        (["meter", "--interval", "15min"], "--interval needs a file to write: add --log PATH"),
        (["meter", "--interval", "7min", "--format", "csv"], "give a divisor of a day"),
        (["meter", "--interval", "soon", "--format", "csv"], "is not a duration"),
        (["analyze", "x.wav", "--interval", "1h", "--zone", "Mars"], "is not a time zone"),
        (["analyze", "x.wav", "--began", "noon"], "is not a time"),
        (["analyze", "x.wav", "--began", "22:00"], "has no date"),
        (["analyze", "x.wav", "--from", "soon"], "nor as 1h30m"),
    ],
)
def test_what_is_no_interval_is_refused(said, typed, said_of_it):
    status, _, err = said(*typed)
    assert status == 2
    assert said_of_it in err


def test_a_row_an_hour_and_a_part_as_a_clock_tells_it(said, sound, tmp_path):
    typed = ["analyze", sound, "--model", "spl", "--out", "rows.jsonl", "--force"]
    assert said(*typed, "--step-ms", 3_600_000)[0] == 0
    assert said(*typed, "--from", "0m1s", "--to", "2s")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()[1:-1]]
    assert (rows[0]["time_s"], rows[-1]["time_s"]) == (1.0, 2.0)


def test_a_table_of_intervals_is_no_file_of_rows(said, sound):
    typed = ["analyze", sound, "--model", "spl", "--interval", "2s", "--out", "table.csv"]
    assert said(*typed)[0] == 0
    status, _, err = said("report", "table.csv")
    assert status == 1
    assert "has a table of intervals and no rows" in err


def test_a_session_with_intervals_is_measured_again(said, sound):
    typed = ["meter", "--source", sound, "--fast", "--model", "spl", "--quiet", "--interval", "1s"]
    assert said(*typed, "--log", "night", "--log-sound", "wav")[0] == 0
    status, out, _ = said("replay", "night")
    assert (status, "identical" in out) == (0, True)


def test_lden_reads_a_folder_of_tables(said, sound, sound_file):
    sound_file(np.zeros(4800), name="b.wav")
    typed = ["analyze", sound, "b.wav", "--model", "spl", "--interval", "1h", "--out", "tables"]
    assert said(*typed, "--began", "2026-07-01T12:00:00", "--zone", "UTC")[0] == 0
    status, out, err = said("lden", "tables", "--format", "json")
    assert status == 0, err
    assert json.loads(out)["whole"]["day_measured_s"] == pytest.approx(6.4)


def test_a_measurement_has_its_zone_on_every_computer(run, sound, tmp_path):
    """23:30 in Berlin is night, though this computer's clock shows another hour."""
    typed = ["--model", "spl", "--zone", "Europe/Berlin"]
    recorded = ["analyze", sound, *typed, "--began", "2026-07-01T23:30:00"]
    for ending in ("csv", "jsonl", "parquet"):
        for form in ([], ["--interval", "1s"]):
            assert run(*recorded, *form, "--out", f"x.{ending}", "--force").status == 0
            done = run("lden", f"x.{ending}", "--format", "json", TZ="America/Los_Angeles")
            told = json.loads(done.out)
            assert told["clock"] == "Europe/Berlin"
            assert told["days"][0]["date"] == "2026-07-01"
            assert told["whole"]["lnight_db"] is not None
        assert run(*recorded, "--out", f"x.{ending}", "--force").status == 0
        assert run("report", f"x.{ending}", "--force", TZ="America/Los_Angeles").status == 0
        page = (tmp_path / f"x.{ending}-report.html").read_text()
        assert "23:30:00 (UTC+02:00; 2026-07-01 21:30:00 UTC)" in page
    live = ["meter", "--source", "demo", "--fast", "--duration", "1", "--quiet", "--log", "night"]
    assert run(*live, *typed, TZ="Asia/Kathmandu").status == 0
    for zone in ("America/Los_Angeles", "Asia/Kathmandu"):
        assert json.loads(run("lden", "night", "--format", "json", TZ=zone).out)["clock"] == (
            "Europe/Berlin"
        )
    told = run("analyze", sound, "--model", "spl", "--out", "no_time.csv")
    assert "# zone" not in (tmp_path / "no_time.csv").read_text()
    assert "--began" in run("lden", "no_time.csv").err
