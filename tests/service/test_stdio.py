"""`serve --stdio`, as another program would start it: real lines through real pipes."""

import asyncio
import gc
import io
import json
import threading
import warnings

import jsonschema
import numpy as np
import pytest
import soundfile

from amt_stream.meters.rows.block import BEFORE
from amt_stream.service.transports.stdio import Stdio
from amt_stream.sessions import Session
from tests.service.served import ROOT, Served, is_row

SCHEMA = json.loads((ROOT / "amt_stream" / "dsp" / "data" / "rows.schema.json").read_text())


def kind(name):
    return lambda message: message.get("event", {}).get("kind") == name


def columns_of(message):
    return {name: value for name, value in message.items() if name != "valid"}


def test_a_measurement_is_commanded_from_its_beginning_to_its_end(tmp_path):
    tone = tmp_path / "tone.wav"
    soundfile.write(tone, 0.1 * np.sin(2 * np.pi * np.arange(48000 * 60) / 48), 48000)
    asked = ["--model", "spl", "--source", str(tone), "--columns", "laf_db,lafmax_db"]
    with Served(*asked, "--log", str(tmp_path / "log"), "--log-format", "jsonl") as served:
        header = served.until(lambda message: "header" in message)["header"]
        first = served.until(is_row)
        for message in ({"header": header}, columns_of(first)):
            jsonschema.validate(message, SCHEMA)
        assert [one["name"] for one in header["columns"]] == ["laf_db", "lafmax_db"]
        assert "kept_sound_s" not in header

        assert served.ask("mark", text="door") == {
            "command": "mark", "id": "x", "done": True, "error": "", "state": "measuring",
        }  # fmt: skip
        assert served.until(kind("mark"))["event"]["text"] == "door"

        assert served.ask("pause")["state"] == "paused"
        held_from = served.until(kind("paused"))["event"]["sample"]
        rows = [served.until(is_row) for _ in range(8)]
        held = {one["lafmax_db"] for one in rows if one["sample"] > held_from}
        assert len(held) == 1
        assert served.ask("reset_readings")["done"]
        served.until(kind("readings_reset"))
        assert served.until(lambda m: is_row(m) and m["time_s"] > 0)["lafmax_db"] is None
        assert served.ask("unpause")["state"] == "measuring"

        level = served.until(is_row)["laf_db"]
        before = header["calibration"][0]["full_scale_db_spl"]
        assert served.ask("calibrate", full_scale_db=before + 6)["done"]
        anew = served.until(lambda message: "header" in message)["header"]
        assert anew["calibration"][0]["full_scale_db_spl"] == before + 6
        served.until(lambda m: is_row(m) and m["laf_db"] == pytest.approx(level + 6, abs=0.1))

        assert served.ask("stop")["state"] == "stopped"
        # What was counted, and when not, is the same wherever rows are written.
        parts = Session(tmp_path / "log").files(1, "rows")
        logged = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
        heads = [one["header"]["calibration"][0] for one in logged if "header" in one]
        assert [one["full_scale_db_spl"] for one in heads] == [before, before + 6]
        sent = [columns_of(message) for message in served.past if is_row(message)]
        assert sent == [one for one in logged if is_row(one)]
        summaries = [message for message in served.past if "summary" in message]
        jsonschema.validate(summaries[0], SCHEMA)
        assert (
            served.ask("mark", text="late")["error"]
            == "no measurement is running: send start first"
        )
        assert served.ask("start")["state"] == "measuring"
        assert served.until(is_row)["time_s"] == 0
        status = served.ask("status")
        assert status["health"]["samples"] > 0
        status, last = served.end()
        assert status == 0
        assert any("summary" in message for message in last)


def test_what_is_wrong_is_answered_in_a_sentence_and_all_goes_on():
    with Served("--model", "spl", "--source", "am-tone") as served:
        served.until(is_row)
        for wrong in ("nonsense", "[1, 2]", '{"command": "fly"}', '{"a":' * 5000, "\x00\xff"):
            served.tell(wrong)
            reply = served.until(lambda message: "reply" in message)["reply"]
            assert not reply["done"]
            assert "is not a command: " in reply["error"]
        assert "2 is not a setting" in served.ask("swap", settings={"2": "3"})["error"]
        assert (
            "no microphone is called 'door'"
            in served.ask("reset_readings", microphone="door")["error"]
        )
        assert served.ask("start")["error"] == "a measurement is running: send stop first"
        assert served.ask("status")["kept_sound"] is None
        assert (
            "no sound is held in memory: start with --event-folder" in served.ask("replay")["error"]
        )
        served.until(is_row)


def test_rows_of_a_file_are_those_that_meter_writes(forks, tmp_path):
    path = tmp_path / "noise.wav"
    noise = np.random.default_rng(3).normal(0, 0.05, (48000 * 4, 2))
    soundfile.write(path, noise, 48000, subtype="FLOAT")
    asked = ["--source", str(path), "--fast", "--model", "spl,zwicker", "--step-ms", "10"]
    done = forks.run("meter", *asked, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in done.stdout.splitlines()]
    with Served(*asked) as served:
        served.until(lambda message: "summary" in message)
        ended = served.until(lambda message: "state" in message)
    assert ended["state"]["state"] == "ended"
    sent = [columns_of(message) for message in served.past if is_row(message)]
    clock = BEFORE[1]
    for one in (*sent, *written):
        one.pop(clock, None)
    assert sent == [one for one in written if is_row(one)]
    assert len(sent) > 390


def test_a_limit_is_told_in_rows_and_when_it_turns(tmp_path):
    tone = tmp_path / "tone.wav"
    level = np.repeat([0.001, 0.1], 48000 * 2) * np.sin(2 * np.pi * np.arange(48000 * 4) / 48)
    soundfile.write(tone, level, 48000)
    asked = ["--source", str(tone), "--columns", "laf_db", "--full-scale-db", "100"]
    with Served(*asked, "--fast", "--limit", "laf_db>70,name=loud") as served:
        served.until(lambda message: "summary" in message)
    header, *_ = (one["header"] for one in served.past if "header" in one)
    (turned,) = (one["event"] for one in served.past if kind("limit")(one))
    rows = [one for one in served.past if is_row(one)]
    summary = served.past[-1]
    jsonschema.validate(summary, SCHEMA)
    assert header["limits"][0]["name"] == "loud"
    assert header["columns"][-1]["name"] == "limit_loud"
    assert turned["text"].startswith("loud is red: LAF ")
    assert [*dict.fromkeys(one["limit_loud"] for one in rows)] == ["unknown", "green", "red"]
    red = next(one for one in rows if one["limit_loud"] == "red")
    assert (red["sample"], red["utc"]) == (turned["sample"], turned["utc"])
    assert summary["summary"]["limits"][0]["exceeded"]


def test_limits_that_were_typed_hold_for_another_preset_too(tmp_path):
    tone = tmp_path / "tone.wav"
    soundfile.write(tone, 0.1 * np.sin(2 * np.pi * np.arange(48000 * 60) / 48), 48000)
    asked = ["--source", str(tone), "--full-scale-db", "100", "--limit", "laf_db>70"]
    asked += ["--event", "laf_db>75"]

    def has_header(message):
        return "header" in message

    with Served(*asked) as served:
        first = served.until(has_header)["header"]
        assert served.ask("stop")["done"]
        refused = served.ask("start", preset="broadcast")
        assert "no column is called 'laf_db'" in refused["error"]
        assert served.ask("start", preset="noise-control")["done"]
        second = served.until(has_header)["header"]
    assert [one["name"] for one in second["models"]] == ["spl", "zwicker"]
    assert second["limits"] == first["limits"]
    assert second["events"] == first["events"]


def test_a_command_that_comes_after_the_end_leaves_no_warning(monkeypatch):
    """It is read in a thread, whose loop may have ended; the program's user would see it."""
    monkeypatch.setattr(threading.Event, "wait", lambda self: True)
    loop = asyncio.new_event_loop()
    Stdio(io.BytesIO(), io.StringIO())._ask(None, loop, b"{}")
    with warnings.catch_warnings(record=True) as told:
        loop.close()
        gc.collect()
    assert not told
