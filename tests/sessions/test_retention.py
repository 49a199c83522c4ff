"""What a log removes as it grows old or large, what it leaves, and what is known of it later."""

import time

import pytest

from amt_stream.cli.command import run_command
from amt_stream.core.values import NotAllowed, parse_size
from amt_stream.sessions import Session, SessionError, SessionLog, SoundLog, verify
from amt_stream.sessions import log as sessions
from amt_stream.sessions.folder import Folder
from amt_stream.sessions.retention import PartRemover, Retention
from tests.sessions.conftest import FS

HOUR_S = 3600.0


@pytest.fixture
def hours_ago():
    """The Unix time of the full hour that many hours ago."""
    begin = time.time() // HOUR_S * HOUR_S
    return lambda hours: begin - HOUR_S * hours


@pytest.fixture
def five_hours(table, at, hours_ago, until, monkeypatch):
    """A log of six rows-files, the first nine hours old; gives its folder once it has ended."""
    monkeypatch.setattr(sessions, "FLUSH_S", 0.02)

    def write(path, wanted):
        clock = lambda time_s: hours_ago(9 - int(time_s)) + time_s % 1.0  # noqa: E731
        with SessionLog(path, table(), format="jsonl") as log:
            for one in at(clock):
                log(one)
            until(lambda: wanted(path))
            log.ended(5.0)
        assert (log.note, log.dropped) == ("", 0)
        return path

    return write


def parts(folder):
    return sorted(path.name for path in folder.glob("rows-*"))


def test_old_parts_go_and_the_chain_and_the_events_say_so(
    five_hours, table, at, hours_ago, until, tmp_path, capsys
):
    days = (time.time() - hours_ago(8) - 1.5 * HOUR_S - 60) / 86400
    # Another run finds both parts at once. The run that writes them may remove the first before
    # the second is closed, and then the event of that with the second.
    folder = five_hours(tmp_path / "log", lambda path: len(parts(path)) >= 4)
    with SessionLog(folder, table(), format="jsonl", keep=Retention(days, every_s=0.0)) as log:
        for one in at(lambda time_s: hours_ago(4) + time_s):
            log(one)
        until(lambda: (folder / "chain.jsonl").read_text().count('"removed"') == 2)
        log.ended(5.0)
    assert (log.note, log.dropped) == ("", 0)
    session, verdict = Session(folder), verify(folder)
    assert len(parts(folder)) == 5
    assert [row["time_s"] for row in session.rows(1)][:2] == [2.0, 2.1]
    events = [event for event in session.events() if event.kind == "removed"]
    assert sum(int(event.text.split()[4]) for event in events) == 2
    assert events[0].text.startswith("removed from the log: ")
    assert events[-1].text.endswith(f": older than {days:g} days")
    assert (verdict.word, len(verdict.removed), verdict.open) == ("intact", 2, [])
    assert session.descriptions[2]["keep_days"] == days
    assert run_command(["verify", str(folder)]) == 0
    assert "removed by the meter, as it was asked to: 2 older than" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert run_command(["report", str(folder), "--out", str(page)]) == 0
    assert "2 older files removed by the meter, as it was asked to" in page.read_text()
    # What was removed is no more missing than before, and a part that goes missing is.
    (folder / parts(folder)[0]).unlink()
    assert verify(folder).word == "gapped"


def test_an_interrupted_removal_is_finished_and_the_name_is_free_again(
    five_hours, hours_ago, tmp_path
):
    folder = five_hours(tmp_path / "log", lambda path: len(parts(path)) >= 4)
    first, second, *_ = parts(folder)
    data = (folder / first).read_bytes()
    kept = Folder(folder)
    removed = PartRemover(kept, Retention(days=1)).remove(hours_ago(9) + 1.6 * HOUR_S + 86400)
    kept.close()
    assert removed.text.endswith(f"the last one {first}: older than 1 day")
    (folder / first).write_bytes(data)  # as if the power had failed before it was gone
    Folder(folder).close()
    assert second == parts(folder)[0]
    assert verify(folder).word == "intact"
    (folder / first).write_bytes(data.splitlines(keepends=True)[0])
    Folder(folder).close()
    assert first == parts(folder)[0]
    verdict = verify(folder)
    assert (verdict.word, len(verdict.removed)) == ("intact", 1)


def test_sound_goes_first_and_only_as_far_as_it_must(table, noise_chunks, at, tmp_path, hours_ago):
    with SoundLog(tmp_path / "log", table(), fs=FS, channels=2, sound="wav", format="csv") as log:
        for one in noise_chunks:
            log.sound(one)
        for one in at(lambda time_s: hours_ago(400) + time_s):
            log(one)
        log.ended(5.0)
    folder = Folder(tmp_path / "log")
    names = {path.name for path in folder.path.iterdir()}
    whole = sum(path.stat().st_size for path in folder.path.iterdir())
    link = folder.path / "sound-20261122T13Z.wav"
    link.symlink_to(tmp_path)
    keep = Retention(size=whole - 1000)
    remover = PartRemover(folder, keep)
    assert remover.remove(0.0).text.startswith("removed from the log: 2 files (")
    gone = names - {path.name for path in folder.path.iterdir()}
    assert sorted(name.partition(".")[2] for name in gone if name.startswith("sound")) == [
        "jsonl", "wav",
    ]  # fmt: skip
    assert len(gone) == 2
    assert remover.remove(0.0) == ("", False)
    assert link.is_symlink()
    folder.close()
    link.unlink()
    assert verify(folder.path).word == "intact"


def test_a_part_that_was_changed_is_left_and_told_once(five_hours, hours_ago, tmp_path):
    folder = five_hours(tmp_path / "log", lambda path: len(parts(path)) >= 4)
    first = folder / parts(folder)[0]
    with first.open("a") as file:
        file.write("\n")
    opened = Folder(folder)
    remover = PartRemover(opened, Retention(days=1))
    removed = remover.remove(hours_ago(9) + 1.6 * HOUR_S + 86400)
    opened.close()
    assert removed.text == f"not removed, as it has changed since it was closed: {first.name}"
    assert remover.remove(hours_ago(9) + 1.6 * HOUR_S + 86400).text == ""
    assert first.exists()


def test_the_oldest_are_due_by_age_and_sound_before_rows_by_size():
    closed = {
        "session.json": 10,
        "rows-20261122T13Z.csv": 100,
        "sound-20261122T13Z.flac": 1000,
        "sound-20261122T13Z.jsonl": 1,
        "sound-20261122T13Z-2.flac": 1000,
        "sound-20261122T13Z-10.flac": 1000,
        "rows-20261121T13Z.csv": 100,
        "rows-20269999T13Z.csv": 100,
    }
    now = 1795356000.0 + 86400 + 1800  # of 13Z on the 22nd a day and an hour and a half ago
    old = Retention(days=1).due(closed, 0, now)
    assert {*closed} - {*old} == {"session.json", "rows-20269999T13Z.csv"}
    assert Retention(days=1).due(closed, 0, now - 1) == {
        "rows-20261121T13Z.csv": "older than 1 day"
    }
    by_size = {size: [*Retention(size=size).due(closed, 50, now)] for size in (3361, 3360, 2300)}
    flac, lines = "sound-20261122T13Z.flac", "sound-20261122T13Z.jsonl"
    assert by_size == {
        3361: [],
        3360: [flac, lines],
        2300: [flac, lines, "sound-20261122T13Z-2.flac"],
    }
    assert [*Retention(size=260).due(closed, 50, now)][-1] == "rows-20261121T13Z.csv"


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1.5 TB", 1_500_000_000_000), ("0.01GB", 10**7)]
)
def test_a_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["9MB", "20", "GB", "-1GB", "1e3GB", "20GiB", "nanMB"])
def test_no_size(text):
    with pytest.raises(NotAllowed, match="is not a size of 10MB or more"):
        parse_size(text)


def test_a_database_has_no_parts_to_remove(table, tmp_path, capsys):
    with pytest.raises(SessionError, match="choose csv, jsonl or parquet"):
        SessionLog(tmp_path / "log", table(), keep=Retention(days=1))
    assert not (tmp_path / "log").exists()
