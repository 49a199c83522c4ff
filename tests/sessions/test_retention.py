"""What a log removes as it grows old or large, what it leaves, and what is known of it later."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amt_stream.cli.command import run_command
from amt_stream.core.values import NotAllowed, parse_size
from amt_stream.engine.clock import ClockReading
from amt_stream.sessions import (
    Session,
    SessionError,
    SessionLog,
    SoundLog,
    retention,
    verify,
)
from amt_stream.sessions import log_writer as sessions
from amt_stream.sessions.chain import read_chain
from amt_stream.sessions.files import new_name, sha256_of
from amt_stream.sessions.folder import Folder
from amt_stream.sessions.retention import Age, ClosedPart, PartRemover, Retention
from tests.sessions.conftest import FS, HOUR

DOCS = Path(__file__).parents[2] / "docs"
HOUR_S, DAY_S, YEAR_S = 3600.0, 86400.0, 365 * 86400.0


class Computer:
    """The clocks of a computer that stands still, sleeps, is off and is set as a test wants it."""

    def __init__(self):
        self.utc, self.boot, self.boot_s = HOUR, "first", 1000.0

    def runs(self, seconds):
        self.boot_s += seconds
        self.utc += seconds

    def is_set(self, seconds):
        self.utc += seconds

    def is_off(self, seconds, set_by=0.0):
        """Off for a time, with a date at the next start that is wrong by `set_by`."""
        self.boot, self.boot_s = f"{self.boot} again", 20.0
        self.utc += seconds + set_by

    @property
    def reads(self):
        def read(reading, ago_s=0.0, utc=None):
            reading.utc, reading.boot, reading.boot_s = self.utc, self.boot, self.boot_s

        return read


@pytest.fixture
def computer(monkeypatch):
    found = Computer()
    monkeypatch.setattr(ClockReading, "__init__", found.reads)
    return found


class Log:
    """A log whose parts are closed one by one, of 10 kB each."""

    def __init__(self, path, computer, **keep):
        self.path, self.computer, self.keep = path, computer, Retention(**keep)
        self.starts()

    def starts(self):
        """The meter starts, for the first time or anew."""
        self.folder = Folder(self.path)
        self.folder.describe({"header": {"source": {"fs": FS}}})
        self.remover = PartRemover(self.folder, self.keep)

    def ends(self):
        self.folder.close()

    def closes(self, what="rows", size=10_000):
        """Close a part with the present hour in its name."""
        hour = datetime.fromtimestamp(self.computer.utc, UTC)
        path = new_name(self.path, f"{what}-{hour:%Y%m%dT%HZ}", ".csv")
        path.write_bytes(b"x" * size)
        self.folder.chain.add(self.folder.run, path.name, sha256_of(path), bytes=size)
        return path.name

    def measures(self, hours):
        """Close a part after each hour, and look as often as the meter does; gives their names."""
        names = []
        for _ in range(hours):
            names.append(self.closes())
            for _ in range(6):
                self.computer.runs(self.keep.every_s)
                self.looks()
        return names

    def looks(self):
        return self.remover.remove()

    @property
    def there(self):
        return [name for name in parts(self.path) if name.startswith("rows")]


@pytest.fixture
def log_of(tmp_path, computer):
    made = []

    def make(**keep):
        made.append(Log(tmp_path / "log", computer, **keep))
        return made[0]

    yield make
    for one in made:
        one.ends()


def parts(folder):
    return sorted(path.name for path in folder.glob("rows-*"))


def test_what_is_older_goes_and_the_rest_stays(log_of):
    log = log_of(days=1)
    names = log.measures(30)
    assert log.there == names[7:]
    assert verify(log.path).word == "intact"


@pytest.mark.parametrize("set_by", [YEAR_S, 5 * DAY_S, 1024 * 7 * DAY_S, -56 * YEAR_S])
def test_a_clock_that_is_set_removes_nothing_and_the_log_says_so(log_of, computer, set_by):
    log = log_of(days=1)
    names = log.measures(10)
    computer.is_set(set_by)
    removed = log.looks()
    assert (removed.text, log.there) == ("", names)
    if set_by > 0:
        ahead = f"this computer's date is {set_by / DAY_S:.0f} days ahead of the time that is known"
        assert ahead in removed.doubt
    later = log.measures(10)
    assert {*log.there} == {*names, *later}
    computer.is_set(-set_by)
    assert log.looks().doubt == ""
    log.measures(10)  # 30 h after the first: as if the clock had never been set
    assert [name for name in names if name in log.there] == names[7:]


@pytest.mark.parametrize("set_by", [YEAR_S, -56 * YEAR_S, 1024 * 7 * DAY_S])
def test_a_power_cut_and_a_clock_that_is_wrong_after_it_remove_nothing(log_of, computer, set_by):
    log = log_of(days=1)
    names = log.measures(10)
    log.ends()
    computer.is_off(HOUR_S, set_by)
    log.starts()
    removed = log.looks()
    assert (removed.text, bool(removed.doubt)) == ("", set_by > 0)
    log.measures(10)
    assert {*log.there} >= {*names}
    assert log.looks().doubt == removed.doubt


def test_a_wrong_clock_at_each_start_removes_nothing(log_of, computer):
    log = log_of(days=2)
    names = log.measures(2)
    for _ in range(20):
        log.ends()
        computer.is_off(HOUR_S, YEAR_S)
        log.starts()
        names += log.measures(1)
    assert {*log.there} == {*names}


def test_nights_and_a_holiday_without_power(log_of, computer):
    """The date counts for some days off, and then removes an hour of the log at each look."""
    log = log_of(days=1)
    names = log.measures(10)
    log.ends()
    computer.is_off(3 * DAY_S)
    log.starts()
    assert [len(log.there) for _ in range(11) if log.looks()] == [*range(9, -1, -1), 0]
    names = log.measures(10)
    log.ends()
    computer.is_off(21 * DAY_S)
    log.starts()
    removed = log.looks()
    assert "date is 21 days ahead of the time that is known" in removed.doubt
    assert log.there == names
    log.measures(26)
    assert not {*names} & {*log.there}
    assert log.looks().doubt == ""


def test_what_was_written_under_a_wrong_date_is_as_old_as_it_is(log_of, computer):
    """The first hours of a computer without a battery for its clock are of 1970."""
    computer.utc = 0.0
    log = log_of(days=1)
    early = log.measures(3)
    assert early[0] == "rows-19700101T00Z.csv"
    computer.is_set(HOUR)
    assert log.looks() == ("", False, "")
    later = log.measures(20)
    assert log.there == [*early, *later]
    log.measures(5)
    assert not {*early} & {*log.there}


def test_the_size_takes_what_came_first_whatever_its_name_says(log_of, computer):
    log = log_of(size=80_000)
    computer.utc = HOUR + YEAR_S
    first = log.measures(3)
    computer.utc = 0.0
    log.measures(2)
    computer.utc = HOUR
    last = log.measures(5)
    log.ends()
    kept = log.folder.path
    assert verify(kept).word == "intact"
    assert not {*first} & {*log.there}
    assert {*last} <= {*log.there}


def test_a_file_that_somebody_made_large_removes_no_other(log_of):
    log = log_of(size=100_000)
    names = log.measures(5)
    with (log.path / names[2]).open("ab") as file:
        file.truncate(10**9)
    assert log.looks().text == ""
    assert log.there == names


def test_a_long_chain_is_read_only_when_something_may_be_due(log_of, computer, monkeypatch):
    log = log_of(days=1)
    log.measures(3)
    read = []
    monkeypatch.setattr(retention, "read_chain", lambda path: read.append(path) or read_chain(path))
    for _ in range(120):
        computer.runs(600)
        log.looks()
    assert read == []
    computer.runs(7 * HOUR_S)
    assert log.looks().text
    assert len(read) == 1


@pytest.fixture
def hourly(table, at, until, monkeypatch):
    """A log of six files of rows, each closed an hour after the one before."""
    monkeypatch.setattr(sessions, "FLUSH_S", 0.02)

    def write(path, computer, **more):
        began = computer.utc
        with SessionLog(path, table(), format="jsonl", **more) as log:
            for one in at(lambda time_s: began + HOUR_S * int(time_s) + time_s % 1.0):
                hour = (one.utc[-1] - began) // HOUR_S
                if hour > (computer.utc - began) // HOUR_S:
                    computer.runs(HOUR_S)
                log(one)
                until(lambda: len(parts(path)) == hour + 1)  # noqa: B023
            log.ended(5.0)
        assert (log.note, log.dropped) == ("", 0)
        return path

    return write


def test_old_parts_go_and_the_chain_and_the_events_say_so(
    hourly, computer, table, at, until, tmp_path, capsys
):
    folder = hourly(tmp_path / "log", computer)
    assert len(parts(folder)) == 6
    days = 1.0  # those of the first two hours are 25.5 and 24.5 hours old below
    computer.runs(21.5 * HOUR_S)
    with SessionLog(folder, table(), format="jsonl", keep=Retention(days, every_s=0.0)) as log:
        for one in at(lambda time_s: computer.utc + time_s):
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
    assert events[-1].text.endswith(
        ": older than 1 day" if days == 1 else f": older than {days:g} days"
    )
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


def test_an_interrupted_removal_is_finished_and_the_name_is_free_again(log_of, computer):
    log = log_of(days=1)
    first, second, *_ = log.measures(4)
    data = (log.path / first).read_bytes()
    computer.runs(20.5 * HOUR_S)
    assert log.looks().text.endswith(f"the last one {first}: older than 1 day")
    log.ends()
    (log.path / first).write_bytes(data)  # as if the power had failed before it was gone
    log.starts()
    log.ends()
    assert second == parts(log.path)[0]
    assert verify(log.path).word == "intact"
    (log.path / first).write_bytes(b"x\n")
    log.starts()
    assert first == parts(log.path)[0]
    verdict = verify(log.path)
    assert (verdict.word, len(verdict.removed)) == ("intact", 1)
    assert log.looks().text == ""  # it is new


def test_sound_goes_first_and_only_as_far_as_it_must(table, noise_chunks, at, tmp_path):
    with SoundLog(tmp_path / "log", table(), fs=FS, channels=2, sound="wav", format="csv") as log:
        for one in noise_chunks:
            log.sound(one)
        for one in at(lambda time_s: HOUR + time_s):
            log(one)
        log.ended(5.0)
    folder = Folder(tmp_path / "log")
    names = {path.name for path in folder.path.iterdir()}
    whole = sum(path.stat().st_size for path in folder.path.iterdir())
    link = folder.path / "sound-20261122T13Z.wav"
    link.symlink_to(tmp_path)
    keep = Retention(size=whole - 1000)
    remover = PartRemover(folder, keep)
    assert remover.remove().text.startswith("removed from the log: 2 files (")
    gone = names - {path.name for path in folder.path.iterdir()}
    assert sorted(name.partition(".")[2] for name in gone if name.startswith("sound")) == [
        "jsonl", "wav",
    ]  # fmt: skip
    assert len(gone) == 2
    assert remover.remove() == ("", False, "")
    assert link.is_symlink()
    folder.close()
    link.unlink()
    assert verify(folder.path).word == "intact"


def test_a_part_that_was_changed_is_left_and_told_once(log_of, computer):
    log = log_of(days=1)
    first = log.closes()
    with (log.path / first).open("a") as file:
        file.write("\n")
    computer.runs(1.1 * DAY_S)
    removed = log.looks()
    assert removed.text == f"not removed, as it has changed since it was closed: {first}"
    assert log.looks().text == ""
    assert log.there == [first]


def test_the_oldest_are_due_by_age_and_sound_before_rows_by_size():
    sizes = {
        "session.json": 10,
        "rows-20261121T13Z.csv": 100,
        "rows-20269999T13Z.csv": 100,
        "rows-20261122T13Z.csv": 100,
        "sound-20261122T13Z.flac": 1000,
        "sound-20261122T13Z.jsonl": 1,
        "sound-20261122T13Z-2.flac": 1000,
        "sound-20261122T13Z-10.flac": 1000,
    }
    old_s = {"session.json": 9 * DAY_S, "rows-20261121T13Z.csv": DAY_S}
    closed = [
        ClosedPart(name, size, Age(old_s.get(name, DAY_S - 1), 0.0)) for name, size in sizes.items()
    ]
    assert Retention(days=1).due(closed, 0) == {"rows-20261121T13Z.csv": "older than 1 day"}
    by_size = {size: [*Retention(size=size).due(closed, 50)] for size in (3361, 3360, 2300)}
    flac, lines = "sound-20261122T13Z.flac", "sound-20261122T13Z.jsonl"
    assert by_size == {
        3361: [],
        3360: [flac, lines],
        2300: [flac, lines, "sound-20261122T13Z-2.flac"],
    }
    assert [*Retention(size=260).due(closed, 50)][-1] == "rows-20261121T13Z.csv"


def test_the_documents_have_these_times():
    pages = {"sessions.md": "Old files", "unattended.md": "A clock that is wrong"}
    old_files, wrong_clock = (
        (DOCS / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for page, title in pages.items()
    )
    minutes = Retention().every_s / 60
    assert f"looks every {minutes:.0f} minutes, and for the first time {minutes:.0f}" in old_files
    assert wrong_clock.count(f" {retention.OFF_S / DAY_S:.0f} days") == 2
    assert retention.DOUBT_S == DAY_S
    assert "more than a day ahead" in wrong_clock
    assert {60 / minutes: "six"}[6] + " hours of the log per hour" in wrong_clock


PROGRAM = """
import sys
from pathlib import Path
from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.presets import Preset
from amt_stream.meters.signals import Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from amt_stream.sessions import log_writer as sessions
from amt_stream.sessions.retention import Retention

sessions.FLUSH_S = 0.02
preset, source = Preset(("spl",)), SignalSource([Tone(1000.0, level_db=70.0)])
models = preset.models(48000, 2)
sound = Sound("a sound", 48000, (1, 2), [Calibration(100.0, source="test")], None)
table = Table(preset, models, sound, RowSettings(50, columns="laf_db"))
keep = Retention(days=float(sys.argv[2]), every_s=0.0)
log = SessionLog(sys.argv[1], table, format="jsonl", keep=keep)
with log, Engine(source, models, [log]) as engine:
    for line in sys.stdin:
        print(engine.health.note, flush=True)
"""


class Running:
    """A program that logs by the computer's clock, which the test sets."""

    def __init__(self, shim, folder, days):
        self.path, self.clock = folder / "log", folder / "clock"
        self.set(0)
        environment = {**os.environ, "LD_PRELOAD": str(shim), "SET_CLOCK": str(self.clock)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.path), str(days)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def set(self, seconds):
        draft = self.clock.with_suffix(".new")
        draft.write_text(f"{seconds:.0f}")
        draft.replace(self.clock)

    @property
    def note(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture
def running(clock_shim, tmp_path):
    started = []

    def start(days):
        started.append(Running(clock_shim, tmp_path, days))
        return started[0]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.mark.soak
def test_a_meter_whose_clock_is_set_a_year_ahead_keeps_its_log(running, until):
    meter = running(days=1)
    until(lambda: len(parts(meter.path)) == 1)
    meter.set(HOUR_S)
    until(lambda: len(parts(meter.path)) == 2)
    meter.set(YEAR_S)
    until(lambda: "365 days ahead of the time that is known to have passed" in meter.note)
    until(lambda: len(parts(meter.path)) == 3)
    meter.set(HOUR_S)
    until(lambda: "of the time that is known to have passed" not in meter.note)
    meter.end()
    assert len(parts(meter.path)) >= 3
    events = [event.text for event in Session(meter.path).events() if event.kind == "sink"]
    assert "365 days ahead" in " ".join(events)
    assert verify(meter.path).removed == []


def test_a_meter_whose_clock_is_set_back_still_removes_what_grows_old(running, until):
    meter = running(days=3 / DAY_S)
    until(lambda: len(parts(meter.path)) == 1)
    (first,) = parts(meter.path)
    meter.set(HOUR_S)
    until(lambda: len(parts(meter.path)) == 2)
    meter.set(-56 * YEAR_S)
    until(lambda: first not in parts(meter.path))
    meter.end()
    assert verify(meter.path).word == "intact"


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
