"""Events of sound as they are asked for, on the command line and over the wire."""

import json

import jsonschema
import pytest
import soundfile

from amt_stream.cli.command import run_command
from amt_stream.meters.calibration import calibrations_of_comment
from tests.service.served import ROOT, Served, is_row
from tests.sessions.events.conftest import BURSTS, FS, FULL_SCALE_DB, bursts

SCHEMA = json.loads((ROOT / "amt_stream" / "dsp" / "data" / "rows.schema.json").read_text())


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "bursts.flac"
    soundfile.write(path, bursts(), FS, subtype="PCM_24")
    return path


def events(messages, *kinds):
    found = [message["event"] for message in messages if "event" in message]
    return [event for event in found if event["kind"] in kinds]


def test_they_are_told_to_everybody_and_kept_with_what_is_known(sound, tmp_path):
    folder, log = tmp_path / "sounds", tmp_path / "log"
    asked = ["--source", str(sound), "--full-scale-db", str(FULL_SCALE_DB), "--fast"]
    asked += ["--event", "laf_db>85,name=loud", "--event-folder", str(folder)]
    asked += ["--limit", "laf_db>90,name=hall", "--event", "limits"]
    asked += ["--columns", "laf_db", "--log", str(log), "--log-format", "jsonl"]
    with Served(*asked, "--keep-sound", "20") as served:
        status, last = served.end(close=False)
    assert status == 0
    header = next(one["header"] for one in last if "header" in one)
    jsonschema.validate({"header": header}, SCHEMA)
    assert header["kept_sound_s"] == 20
    assert header["models"] == [{"name": "spl"}]
    told = events(last, "sound_begin", "sound_end")
    alarms = [one for one in told if one["text"].startswith("limits")]
    assert [one["text"].partition(": ")[2] for one in alarms] == ["hall is red", "hall was red"] * 3
    assert len(list(folder.glob("*-limits.flac"))) == len(BURSTS)
    kept = [one["text"].rpartition(" ")[2] for one in events(last, "sound_kept")]
    assert sorted(kept) == sorted(map(str, folder.iterdir()))
    every, told = told, [one for one in told if one not in alarms]
    assert [one["kind"] for one in told] == ["sound_begin", "sound_end"] * len(BURSTS)
    for (begin, end), first, second in zip(BURSTS, told[::2], told[1::2], strict=True):
        assert begin < first["time_s"] < begin + 0.2
        assert end < second["time_s"] < end + 0.5
        assert second["samples"] == second["sample"] - first["sample"]
    (part,) = log.glob("events-*.jsonl")
    logged = [json.loads(line) for line in part.read_text().splitlines()]
    same = ("kind", "sample", "samples", "text")
    assert [[one[key] for key in same] for one in every] == [
        [one[key] for key in same] for one in logged if one["kind"] in ("sound_begin", "sound_end")
    ]
    assert len(list(folder.glob("*-loud.flac"))) == len(BURSTS)
    sent = {one["sample"]: one for one in last if is_row(one)}
    path = min(folder.iterdir())
    about = json.loads(soundfile.SoundFile(path).comment)
    columns = about["trace"]["columns"]
    for row in about["trace"]["rows"]:
        one = dict(zip(columns, row, strict=True))
        same = {key: sent[one["sample"]][key] for key in one}
        assert one | {"utc": ""} == same | {"utc": ""}


def test_a_replay_is_written_and_its_path_told(tmp_path):
    folder = tmp_path / "sounds"
    asked = ["--model", "spl", "--source", "am-tone"]
    with Served(*asked, "--event-folder", str(folder)) as served:
        served.until(lambda message: is_row(message) and message["time_s"] >= 1.5)
        state = served.ask("status")
        assert state["kept_sound"] == {
            "seconds": 60, "folder": str(folder), "files": 0, "note": "",
        }  # fmt: skip
        reply = served.ask("replay", seconds=1)
        assert reply["done"]
        assert soundfile.info(reply["path"]).frames == FS
        # The event may have come before the reply.
        while not (kept := events(served.past, "sound_kept")):
            served.until(lambda message: "event" in message)
        (told,) = kept
        assert told["text"].endswith(reply["path"])
        assert told["samples"] == FS
        # What is known of the sound by then is in the next file.
        assert served.ask("calibrate", full_scale_db=121.5)["done"]
        comment = json.loads(soundfile.SoundFile(served.ask("replay")["path"]).comment)
        assert comment["header"]["calibration"][0]["full_scale_db_spl"] == 121.5
        assert comment["samples"] >= 1.5 * FS


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--keep-sound", "10"], "--keep-sound needs sound files: add --event-folder PATH"),
        (["--event", "laf_db"], "'laf_db' is not a trigger: write it as laf_db>85"),
        (["--event", "laf_dc>85"], "laf_dc > 85: no column is called 'laf_dc': did you mean laf"),
        (["--event", "limits"], "an event of limits needs limits: there are none"),
        (["--event", "laf_db>1", "--event", "laf_db>1"], "two events are called laf_1"),
        (["--event-folder", ""], "--event-folder: '' is not a path: give a file or folder"),
        (["--event-folder", "/dev/null/x"], "/dev/null/x cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_done_is_said(capsys, typed, words):
    try:
        status = run_command(["meter", "--source", "demo", "--format", "csv", *typed])
    except SystemExit as ended:
        status = ended.code
    assert status != 0
    assert words in capsys.readouterr().err


def test_a_file_of_an_event_is_measured_with_its_own_calibration(sound, tmp_path, capsys):
    """Its rows are those of its trace, once what came before it is forgotten."""
    folder = tmp_path / "sounds"
    asked = ["--source", str(sound), "--full-scale-db", "97.5", "--calibration-uncertainty", "0.3"]
    asked += ["--fast", "--columns", "laf_db", "--event", "laf_db>80", "--event-folder", folder]
    assert run_command(["meter", "--format", "csv", *map(str, asked)]) == 0
    capsys.readouterr()
    path = min(folder.iterdir())
    about = json.loads(soundfile.SoundFile(path).comment)
    columns = about["trace"]["columns"]
    trace = [dict(zip(columns, row, strict=True)) for row in about["trace"]["rows"]]
    typed = ["--model", "spl", "--columns", "laf_db", "--format", "jsonl"]
    for command in (["analyze", str(path)], ["meter", "--fast", "--source", str(path)]):
        assert run_command([*command, *typed]) == 0
        done = capsys.readouterr()
        assert f"{path} is calibrated by its comment" in done.err
        header, *rows, _ = map(json.loads, done.out.splitlines())
        for one in header["header"]["calibration"]:
            assert (one["full_scale_db_spl"], one["calibrated"]) == (97.5, True)
            assert one["calibration_uncertainty_db"] == 0.3
            assert one["origin"] == f"as {path.name} says: given by the user"
        begin_s = about["sample"] / FS
        late = {round(r["time_s"] + begin_s, 6): r["laf_db"] for r in rows if r["time_s"] > 1.5}
        same = [(late[row["time_s"]], row["laf_db"]) for row in trace if row["time_s"] in late]
        assert len(same) > 60
        for own, told in same:
            assert own == pytest.approx(told, abs=0.01)
    # What is typed counts, and what another program has written says nothing.
    assert run_command(["analyze", str(path), *typed, "--full-scale-db", "100"]) == 0
    assert '"full_scale_db_spl": 100.0' in capsys.readouterr().out
    assert run_command(["analyze", str(sound), *typed]) == 0
    assert "uncalibrated" in capsys.readouterr().err


@pytest.mark.parametrize(
    "comment",
    ["", "{", "[]", "3", '{"calibration": 3}', '{"calibration": [{"channel": 1}]}',
     '{"calibration": [{"channel": 1, "full_scale_db_spl": NaN, "calibrated": true}]}',
     '{"whole": "in the chunk amts"}', "[" * 9999],
)  # fmt: skip
def test_a_comment_of_ours_that_cannot_be_read_is_an_error(comment):
    with pytest.raises(ValueError, match="its comment no longer has the calibration"):
        calibrations_of_comment(comment, "amt_stream (libsndfile)", "a file")
    assert calibrations_of_comment(comment, "another", "a file") == {}
