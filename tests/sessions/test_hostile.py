"""Folders that somebody else has prepared: a sentence, soon, and nothing is written elsewhere."""

import json
import os
import re
import shutil
import sqlite3
import stat

import pytest

from amt_stream.sessions import Session, SessionError, SoundLog, verify
from tests.sessions.conftest import FS

ENDLESS = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
    "SELECT id, 1 AS run, 0.0 AS time_s, 0 AS sample FROM n"
)


def with_script(folder, script):
    connection = sqlite3.connect(folder / "rows.sqlite")
    connection.executescript(script)
    connection.close()


SCRIPTS = {
    "view": f"DROP TABLE rows; CREATE VIEW rows AS {ENDLESS}",
    "view of another case": f"DROP TABLE events; CREATE VIEW EVENTS AS {ENDLESS}",
    "virtual table": "DROP TABLE rows; CREATE VIRTUAL TABLE rows USING fts5(a)",
}


@pytest.mark.parametrize("command", ["verify", "report", "replay"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_table_that_is_none_ends_in_a_sentence(written, forks, tmp_path, script, command):
    folder = written(tmp_path / "night")
    with_script(folder, SCRIPTS[script])
    done = forks.run(command, folder)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 1
    assert "a log has only tables" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("script", [*SCRIPTS.values(), "CREATE TRIGGER t AFTER INSERT ON rows "
                         "BEGIN INSERT INTO events (text) VALUES ('x'); END"])  # fmt: skip
def test_a_log_goes_on_in_no_such_table(written, new_log, at, tmp_path, script):
    folder = written(tmp_path / "night")
    with_script(folder, script)
    with new_log(folder) as log:
        assert "rows.sqlite.damaged" in log.folder.repaired[0]
        log(at(lambda time_s: time_s)[0])
    assert (folder / "rows.sqlite.damaged").exists()


@pytest.mark.parametrize("run", [2**63, 10**30, -1, True])
@pytest.mark.parametrize("name", ["session.json", "chain.jsonl"])
def test_a_run_that_nobody_counted_is_refused(written, tmp_path, name, run):
    """One larger than the integers of a database ended in a traceback."""
    folder = written(tmp_path / "night")
    text, count = re.subn(r'"run": ?1\b', f'"run": {json.dumps(run)}', (folder / name).read_text())
    assert count
    (folder / name).write_text(text)
    with pytest.raises(SessionError, match=r"not an entry of a chain|not describe a session"):
        [*Session(folder).rows()]


@pytest.mark.parametrize("name", ["session.json", "chain.jsonl", "rows.sqlite",
                                  "rows-20261122T14Z.csv", "sound-20261122T14Z.flac"])  # fmt: skip
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_not_opened(written, new_log, tmp_path, name, kind):
    folder = written(tmp_path / "night")
    (folder / name).unlink(missing_ok=True)
    make = {
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "device": lambda path: path.symlink_to("/dev/zero"),
    }
    make[kind](folder / name)
    for call in (verify, new_log):
        with pytest.raises(SessionError, match=f"{name} |has no {name}"):
            call(folder)


@pytest.mark.parametrize("name", ["chain.jsonl", "rows.sqlite", "rows.sqlite-wal", "session.json"])
def test_nothing_is_written_through_a_link(written, new_log, tmp_path, name):
    folder, victim = written(tmp_path / "night"), tmp_path / "victim"
    if (folder / name).exists():
        shutil.move(folder / name, victim)
    else:
        victim.write_text("mine")
    before = victim.read_bytes()
    (folder / name).symlink_to(victim)
    with pytest.raises(SessionError, match=f"{name} is a link"):
        new_log(folder)
    assert victim.read_bytes() == before


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_sound_is_for_its_owner_alone(table, noise_chunks, tmp_path, sound):
    before = os.umask(0o022)
    try:
        with SoundLog(tmp_path / "night", table(), fs=FS, channels=2, sound=sound) as log:
            for chunk in noise_chunks[:5]:
                log.sound(chunk)
    finally:
        os.umask(before)
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in log.path.iterdir()}
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o700
    assert modes[f".{sound}"] == 0o600
