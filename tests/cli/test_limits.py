"""Limits on the command line: what rows, summaries, logs and exit statuses tell of them."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

from amt_stream.cli.command import build_parser
from amt_stream.cli.limits import report_limits
from amt_stream.cli.preset import chosen_preset, with_limits_and_events
from amt_stream.cli.window import _with_limits
from amt_stream.meters.needed_models import asked_by_limits, models_with
from amt_stream.meters.norms import limits_of
from amt_stream.meters.presets import Preset, load_preset
from amt_stream.offline.measure import measure
from amt_stream.sessions.reading import Session

SCHEMA = json.loads(resources.files("amt_stream.dsp.data").joinpath("rows.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LIMIT = "laeq_1s_db>79.8,amber=70,hysteresis=1,hold=0.5,name=short"
WHAT = ("--limit", LIMIT, "--limits", "who-venues", "--columns", "laf_db")


@pytest.fixture
def stepping(sound_file, tone):
    """2 s at 60 dB, 2 s at 80 dB, 2 s at 60 dB, of 1 kHz, where A weighs nothing."""
    parts = [tone(level, 2.0) for level in (60.0, 80.0, 60.0)]
    return sound_file(np.concatenate(parts).astype(np.float32))


def lines(text):
    header, *rows, summary = map(json.loads, text.splitlines())
    for one in (header, *rows, summary):
        VALIDATOR.validate(one)
    return header["header"], rows, summary["summary"]


def test_rows_of_both_commands_have_the_same_states(printed, stepping):
    asked = (*WHAT, "--format", "jsonl", "--step-ms", 100, "--full-scale-db", 100)
    header, rows, summary = lines(printed("analyze", stepping, *asked))
    metered = lines(printed("meter", "--source", stepping, "--fast", *asked))
    for row in (*rows, *metered[1]):
        del row["utc"]
    assert metered[1] == rows
    assert metered[0]["limits"] == header["limits"]
    assert metered[2]["limits"] == summary["limits"]
    assert [one["name"] for one in header["models"]] == ["spl"]
    short, venue = header["limits"]
    told = {"name": "short", "column": "laeq_1s_db", "above": 79.8, "amber": 70}
    assert short == told | {"hysteresis": 1, "hold_s": 0.5}
    assert venue["source"].startswith("WHO")
    assert [c["name"] for c in header["columns"]][:2] == ["laf_db", "laeq_1s_db"]
    states = [row["limit_short"] for row in rows]
    assert [*dict.fromkeys(states)] == ["unknown", "green", "amber", "red"]
    assert states[-1] == "green"
    assert {row["limit_who_laeq_15min"] for row in rows} == {"unknown"}, "its window is not full"
    assert rows[-1]["laeq_15min_allowed_100_db"] == pytest.approx(100, abs=0.05)
    short, _ = summary["limits"]
    assert (short["state"], short["exceeded"], short["times"]) == ("green", True, 1)
    assert short["worst"] == pytest.approx(80, abs=0.05)


def test_a_venue_is_measured_in_the_audience(printed, said, stepping):
    asked = ("--audience", "4.2,6", "--format", "jsonl", "--full-scale-db", 100)
    header, rows, summary = lines(printed("analyze", stepping, "--preset", "venue", *asked))
    assert header["audience"] == {"a_db": 4.2, "c_db": 6.0, "origin": "given by the user"}
    assert summary["audience"] == header["audience"]
    (limit,) = header["limits"]
    assert (limit["name"], limit["column"]) == ("who_laeq_15min", "laeq_15min_audience_db")
    last = rows[-1]
    assert last["laeq_audience_db"] == pytest.approx(last["laeq_db"] + 4.2, abs=1e-4)
    assert last["lcpeak_audience_db"] == pytest.approx(last["lcpeak_db"] + 6, abs=1e-4)
    assert last["lceq_minus_laeq_db"] == pytest.approx(last["lceq_db"] - last["laeq_db"], abs=1e-4)
    assert last["laeq_15min_audience_allowed_100_db"] == pytest.approx(100, abs=0.1)
    status, _, err = said("analyze", stepping, "--model", "zwicker", "--audience", "4")
    assert status != 0
    assert "audience is a correction of spl, and the model is zwicker: add it" in err


def test_a_station_keeps_its_limits_in_the_audience_with_every_preset():
    words = ["serve", "--stdio", "--limit", "who-venues", "--audience", "4"]
    args = build_parser().parse_args(words)
    preset = chosen_preset(args)
    assert with_limits_and_events(preset, args) == preset
    other = with_limits_and_events(load_preset("noise-control"), args)
    assert other.audience == preset.audience
    assert [one.column for one in other.limits] == ["laeq_15min_audience_db"]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("limit", "status", "words"),
    [
        ("laf_db>81", 0, ""),
        ("laf_db>79", 4, "laf_79: red for 1.9 s, laf_db above 79: 80.0 at worst, at "),
        ("laeq_db>79,name=whole", 0, ""),
        ("laeq_1min_db>70", 1, "laeq_1min_db is 75.3 so far, in 6 s of a window of 60 s; projec"),
        ("laeq_1min_db>90", 1, "laeq_1min_db is 75.3 so far, in 6 s of a window of 60 s; projec"),
    ],
)
def test_what_was_exceeded_is_said_and_is_the_exit_status(said, stepping, limit, status, words):
    asked = ("--limit", limit, "--full-scale-db", 100, "--step-ms", 100, "--model", "spl")
    commands = (
        ["analyze", stepping, "--summary"],
        ["meter", "--source", stepping, "--fast", "--format", "csv"],
        ["meter", "--source", stepping, "--fast", "--quiet", "--log", "log"],
        ["meter", "--source", stepping, "--fast", "--terminal"],
    )
    for command in commands if status else commands[::3]:
        ended, _, told = said(*command, *asked, "--fail-above")
        assert ended == status, command
        assert words in told
        assert (status == 4) == (" above " in told)
    assert said(*commands[0], *asked)[0] == 0


def test_limits_have_their_events_in_a_log(said, stepping):
    asked = ("--limit", LIMIT, "--full-scale-db", 100, "--step-ms", 100)
    for format in ("sqlite", "jsonl"):
        log = f"log-{format}"
        command = ["meter", "--source", stepping, "--fast", "--quiet", "--log", log]
        assert said(*command, "--log-format", format, *asked)[0] == 0
        session = Session(log)
        states = [row["limit_short"] for row in session.rows()]
        events = [event for event in session.events() if event.kind == "limit"]
        turned = [event.text.split()[2].rstrip(":") for event in events]
        assert turned == ["amber", "red", "amber", "green"]
        for event in events:
            at = next(k for k, row in enumerate(session.rows()) if row["sample"] == event.sample)
            assert states[at] in event.text
            assert states[at - 1] not in event.text


def test_states_are_measured_again_and_gone_on_with(said, stepping):
    asked = ("--limit", LIMIT, "--full-scale-db", 100, "--step-ms", 100)
    command = ["meter", "--source", stepping, "--fast", "--quiet", *asked]
    assert said(*command, "--log", "whole", "--log-sound", "wav")[0] == 0
    ended, out, told = said("replay", "whole")
    assert ended == 0, out + told
    whole = [row["limit_short"] for row in Session("whole").rows()]
    assert said(*command, "--log", "parts", "--duration", 3.5)[0] == 0
    assert said(*command, "--log", "parts", "--restore")[0] == 0
    parts = [row for run in (1, 2) for row in Session("parts").rows(run)]
    assert [row["limit_short"] for row in parts] == whole
    other = said(
        "meter", "--source", stepping, "--quiet", "--log", "parts", "--restore", *asked[2:]
    )
    assert other[0] == 1


def test_each_microphone_has_its_own_state(printed, sound_file, tone):
    both = np.stack([tone(60.0, 1.0)[:, 0], tone(80.0, 1.0)[:, 0]], axis=1).astype(np.float32)
    asked = ("--limit", "laf_db>70", "--full-scale-db", 100, "--format", "jsonl")
    command = ["meter", "--source", sound_file(both), "--fast", "-c", "a=1", "-c", "b=2"]
    _, rows, summary = lines(printed(*command, *asked))
    last = {row["row"]: row["limit_laf_70"] for row in rows}
    assert last == {"a": "green", "b": "red"}
    exceeded = {row: one["limits"][0]["exceeded"] for row, one in summary["microphones"].items()}
    assert exceeded == {"a": False, "b": True}


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--limit", "laf_db"], 1, "there is no norm 'laf_db': give din-15905-5, "),
        (["--limit", ""], 1, "there is no norm '': give din-15905-5, "),
        (["--limit", "laf_db>loud"], 1, "'laf_db>loud' is not a limit: write it as"),
        (["--limit", "laff_db>80"], 1, "laff_db > 80: no column is called 'laff_db': did you"),
        (["--limit", "laf_db>80", "--limit", "laf_db>80"], 1, "two limits are called laf_80"),
        (["--model", "zwicker", "--limit", "laf_db>80"], 1, "no column is called 'laf_db'"),
        (["--fail-above"], 2, "--fail-above needs limits: add --limit NORM"),
        (["--fail-above", "--limit", "laf_db>80"], 1, "is not calibrated, so --fail-above"),
    ],
)
def test_what_cannot_be_judged_is_refused(said, sound_file, tone, arguments, status, words):
    path = sound_file(tone(60.0, 0.2).astype(np.float32))
    for command in (["analyze", path], ["meter", "--source", path, "--fast", "--format", "csv"]):
        ended, out, told = said(*command, *arguments)
        assert (ended, out) == (status, "")
        assert words in told
        assert len([line for line in told.splitlines() if "--full-scale-db" not in line]) <= 1


def test_a_limit_that_was_never_known_is_no_pass(said, sound_file):
    path = sound_file(np.zeros((48000, 2), np.float32))
    asked = ("--limit", "integrated_lufs>-23", "--summary")
    ended, out, told = said("analyze", path, *asked, "--fail-above")
    assert ended == 1
    assert "integrated_m23: integrated_lufs was never known" in told
    assert json.loads(out)["limits"][0]["state"] == "unknown"
    assert said("analyze", path, *asked)[0] == 0


def test_each_channel_is_told_by_itself(said, sound_file, tone):
    both = np.stack([tone(60.0, 1.0)[:, 0], tone(80.0, 1.0)[:, 0]], axis=1).astype(np.float32)
    asked = ("--limit", "laf_db>70", "--full-scale-db", 100, "--summary", "-c", "each")
    ended, _, told = said("analyze", sound_file(both), *asked, "--fail-above")
    assert ended == 4
    model, line = told.splitlines()
    assert model == "amt-stream: the model is spl (for --limit): --model LIST chooses others"
    assert "sound.wav, channel 2: laf_70: red for " in line


def test_an_error_is_worse_than_a_limit():
    args = build_parser().parse_args(["analyze", "x.wav", "--fail-above"])
    limit = {"name": "a", "column": "b", "above": 1, "worst": 2, "worst_s": 0, "red_s": 1}
    limit |= {"whole": True, "amber_s": 0, "verdict": "kept"}
    assert report_limits(0, [("", limit | {"exceeded": True})], args, False) == 4
    assert report_limits(1, [("", limit | {"exceeded": True})], args, False) == 1
    assert report_limits(0, [("", limit | {"exceeded": False})], args, False) == 0


def test_models_are_those_that_the_columns_need():
    def names(*typed):
        return chosen_preset(build_parser().parse_args(["meter", *typed])).names

    assert names("--limit", "workplace-85") == ("spl",)
    assert names("--limit", "ebu-r128", "--limit", "laf_db>80") == ("bs1770", "spl")
    assert names("--limit", "ltl_phon>80") == ("moore2016",)
    assert names("--limit", "laf_db>80", "--model", "spl,zwicker") == ("spl", "zwicker")


def test_a_preset_has_limits_of_its_own(printed, stepping, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[model]\nname = "spl"\n[[limits]]\ncolumn = "laf_db"\nabove = 79\n')
    asked = ("--preset", mine, "--full-scale-db", 100, "--summary")
    (limit,) = json.loads(printed("analyze", stepping, *asked))["limits"]
    assert (limit["name"], limit["exceeded"]) == ("laf_79", True)


def test_states_are_text_in_tables(printed, stepping, tmp_path):
    import pandas

    asked = ("--limit", "laf_db>79", "--columns", "laf_db", "--full-scale-db", 100)
    printed("analyze", stepping, "--out", tmp_path / "rows.parquet", *asked)
    table = pandas.read_parquet(tmp_path / "rows.parquet")
    m = measure(str(stepping), None, "spl", calibration=100, columns=["laf_db"], limits="laf_db>79")
    assert list(table["limit_laf_79"]) == m["limit_laf_79"].tolist()
    assert list(m.to_pandas()["limit_laf_79"]) == list(table["limit_laf_79"])
    assert m.to_xarray()["limit_laf_79"].values.tolist() == list(table["limit_laf_79"])
    assert set(table["limit_laf_79"]) == {"unknown", "green", "red"}


def test_a_limit_brings_all_models_that_its_column_needs():
    limits = limits_of(["annoyance_more>30"])
    alone = tuple(dict(models_with(asked_by_limits(limits))))
    assert alone == ("zwicker", "ecma_roughness", "ecma_fluctuation", "ecma_tonality")
    assert _with_limits(Preset(("ecma",)), limits).names == ("ecma", "zwicker")


@pytest.mark.parametrize(
    ("limit", "verdict", "words", "judged"),
    [
        ("laf_db>90", "not known", "is not known: sound is missing at the end", 1),
        ("laf_db>70", "exceeded", "red for ", 4),
    ],
)
def test_no_limit_is_kept_by_a_file_that_is_cut_off(
    said, printed, stepping, limit, verdict, words, judged
):
    whole = stepping.read_bytes()
    stepping.write_bytes(whole[: 2 * len(whole) // 3])
    asked = ("--limit", limit, "--full-scale-db", 100)
    status, out, err = said("analyze", stepping, *asked, "--model", "spl", "--summary")
    assert status == 1
    assert words in err
    (one,) = json.loads(out)["limits"]
    assert (one["verdict"], one["cut_off"]) == (verdict, True)
    asked = (*asked, "--model", "spl", "--format", "csv", "--fail-above")
    for command in (("meter", "--source", stepping, "--fast"), ("analyze", stepping)):
        status, _, err = said(*command, *asked)
        assert status == judged
        assert words in err
