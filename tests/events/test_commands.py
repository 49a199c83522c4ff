"""Events of sound as they are asked for, on the command line and over the wire."""

import json

import jsonschema
import pytest
import soundfile

from tests.events.conftest import BURSTS, FS, FULL_SCALE_DB, bursts
from tests.service.served import ROOT, Served, is_row

SCHEMA = json.loads((ROOT / "amt_stream" / "data" / "rows.schema.json").read_text())


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
    asked += ["--columns", "laf_db", "--log", str(log), "--log-format", "jsonl"]
    with Served(*asked, "--keep-sound", "20") as served:
        status, last = served.end(close=False)
    assert status == 0
    header = next(one["header"] for one in last if "header" in one)
    jsonschema.validate({"header": header}, SCHEMA)
    assert header["kept_sound_s"] == 20
    assert header["models"] == [{"name": "spl"}]
    told = events(last, "sound_begin", "sound_end")
    assert [one["kind"] for one in told] == ["sound_begin", "sound_end"] * len(BURSTS)
    for (begin, end), first, second in zip(BURSTS, told[::2], told[1::2], strict=True):
        assert begin < first["time_s"] < begin + 0.2
        assert end < second["time_s"] < end + 0.5
        assert second["samples"] == second["sample"] - first["sample"]
    (part,) = log.glob("events-*.jsonl")
    logged = [json.loads(line) for line in part.read_text().splitlines()]
    same = ("kind", "sample", "samples", "text")
    assert [[one[key] for key in same] for one in told] == [
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
        told = served.until(lambda message: events([message], "sound_kept"))["event"]
        assert told["text"].endswith(reply["path"])
        assert told["samples"] == FS
    with Served(*asked) as served:
        header = served.until(lambda message: "header" in message)["header"]
        assert "kept_sound_s" not in header
        refused = served.ask("replay")
        assert refused["error"] == "no sound is kept: begin with --event-folder PATH"
        assert served.ask("status")["kept_sound"] is None


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--keep-sound", "10"], "--keep-sound is of files of sound: add --event-folder PATH"),
        (["--event", "laf_db"], "'laf_db' begins no event: write it as laf_db>85"),
        (["--event", "laf_dc>85"], "laf_dc > 85: no column is called 'laf_dc': did you mean laf"),
        (["--event", "laf_db>1", "--event", "laf_db>1"], "two events are called laf_1"),
        (["--event-folder", "/dev/null/x"], "/dev/null/x cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_done_is_said(capsys, typed, words):
    from amt_stream.cli.command import run_command

    try:
        status = run_command(["meter", "--source", "demo", "--format", "csv", *typed])
    except SystemExit as ended:
        status = ended.code
    assert status != 0
    assert words in capsys.readouterr().err
