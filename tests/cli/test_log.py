"""`meter --log` beside whatever else it shows, and `verify`."""

import json
import signal
import time

import pytest

from amt_stream.sessions import Session, SessionError, verify
from amt_stream.sessions.marks import mark

WANTED = ["meter", "--source", "demo", "--fast", "--duration", "1", "--model", "spl"]


@pytest.mark.parametrize("shown", [["--format", "csv"], ["--terminal"], ["--quiet"]])
def test_a_log_is_kept_beside_what_is_shown(run, tmp_path, shown):
    done = run(*WANTED, "--log", "night", *shown)
    assert done.status == 0, done.err
    rows = list(Session(tmp_path / "night").rows())
    assert [row["time_s"] for row in rows] == [n / 10 for n in range(11)]
    if "csv" in shown:
        shown_db = [float(text) if text else None for text in done.rows["laeq_db"]]
        assert shown_db == [row["laeq_db"] for row in rows]
    if "--quiet" in shown:
        assert done.out == ""
    verdict = run("verify", "night")
    assert verdict.status == 0
    assert verdict.out.startswith("intact: 3 closed parts, the last hash is ")


def test_a_session_says_how_it_was_measured(run, sound_file, tone, tmp_path):
    path = sound_file(tone(60.0, 0.5), fs=44100)
    done = run(
        *("meter", "--source", path, "--fast", "--log", "night", "--log-format", "jsonl"),
        *("--log-sound", "wav", "--quiet", "--step-ms", 10, "--field", "diffuse", "-b", 441),
        *("--full-scale-db", 100, "--columns", "ltl_phon"),
    )
    assert done.status == 0, done.err
    session = json.loads((tmp_path / "night" / "session.json").read_text())
    assert session["preset"]["model"] == {
        "name": "moore2016",
        "field": "diffuse",
        "ear_filter": "mixed",
        "accuracy": "exact",
        "constants": "iso",
    }
    assert session["engine"]["block_ms"] == 10.0
    assert session["rows"]["step_ms"] == 10
    assert session["rows"]["columns"] == "ltl_phon"
    assert session["calibration"][0]["full_scale_db_spl"] == 100.0
    assert session["source"]["path"] == str(path)
    assert session["source"]["fs"] == session["header"]["source"]["fs"] == 44100
    assert session["sound"] == "wav"
    assert session["header"]["host"]
    heard = sum(map(len, Session(tmp_path / "night").sound()))
    assert heard == 24000


def test_verify_says_what_is_wrong_by_its_status_too(run, tmp_path):
    assert run(*WANTED, "--quiet", "--log", "night", "--log-format", "csv").status == 0
    (part,) = (tmp_path / "night").glob("rows-*.csv")
    text = part.read_text()
    part.write_text(text.replace("0.5,", "0.6,"))
    done = run("verify", "night")
    assert done.status == 1
    assert done.out.splitlines()[1] == f"edited: {part.name} was edited"
    part.unlink()
    done = run("verify", "night")
    assert (done.status, done.out.partition(":")[0]) == (1, "gapped")
    done = run("verify", ".")
    assert done.status == 1
    assert done.lines == ["amt-stream: . is not a session: it has no chain.jsonl"]


@pytest.mark.parametrize(
    ("typed", "said", "status"),
    [
        (["--quiet"], "--quiet needs a log: add --log PATH", 2),
        (["--log-sound"], "--log-sound needs a log", 2),
        (["--log", "x", "--quiet", "--format", "csv"], "--format does: leave one out", 2),
        (["--log", ".", "--quiet"], "is not a session (it has", 1),
        (["--log", "file", "--quiet"], "is not a folder", 1),
    ],
)
def test_what_cannot_be_logged_is_refused(run, tmp_path, typed, said, status):
    (tmp_path / "file").write_text("")
    done = run("meter", "--source", "demo", "--fast", "--duration", "1", *typed)
    assert done.status == status
    assert said in done.lines[-1]
    assert len(done.lines) == 1


def test_a_log_that_lost_rows_ends_with_an_error(begin, tmp_path):
    resource = pytest.importorskip("resource", reason="no system of this kind limits files")
    asked = "--source", "demo", "--model", "spl", "--quiet", "--log", tmp_path / "log"
    with begin("meter", *asked, "--step-ms", 10, "--duration", 3) as meter:
        # Where the disk is full, a file cannot grow either.
        resource.prlimit(meter.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
        _, errors = meter.communicate()
    assert "rows and events lost" in errors
    assert meter.returncode == 1


def test_no_demo_sound_is_logged_unasked(run, nothing_to_hear):
    done = run("meter", "--quiet", "--log", "night", "--no-wait", **nothing_to_hear)
    assert done.status != 0
    assert "demo" in done.lines[-1]


def test_a_mark_goes_into_a_log_that_is_written(begin, run, tmp_path):
    night = tmp_path / "night"
    refused = run("mark", "night", "too early")
    assert (refused.status, refused.lines) == (
        1,
        ["amt-stream: no meter writes night: marks need a running log"],
    )
    call = ["meter", "--source", "demo", "--model", "spl", "--log", "night", "--quiet"]
    with begin(*call) as meter:
        give_up = time.monotonic() + 60
        while not (night / "rows.sqlite").exists():
            assert time.monotonic() < give_up
            time.sleep(0.05)
        done = run("mark", "night", "door slams")
        assert (done.status, done.lines) == (0, ["amt-stream: marked: door slams"])
        mark(night, "Ger\udce4t")  # an argument in Latin-1
        with pytest.raises(SessionError, match="70000 characters: give at most 5000"):
            mark(night, "x" * 70000)
        meter.send_signal(signal.SIGINT)
    assert [e.text for e in Session(night).events() if e.kind == "mark"] == [
        "door slams",
        r"Ger\udce4t",
    ]
    assert verify(night).word == "intact"
    assert not list(night.glob(".*"))
