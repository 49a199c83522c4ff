"""Sessions of which any byte may be anything: one sentence, or a verdict, and never more."""

import contextlib
import json
import random
import re
import shutil
import sqlite3

import pytest

from amt_stream.core.formats import LOG_FORMATS
from amt_stream.meters.frames import Event
from amt_stream.sessions import Session, SessionError, SoundLog, verify
from tests.sessions.conftest import FS, HOUR

COUNT = 40
"""Of each format; `make soak` has thousands."""


@pytest.fixture
def whole(table, at, noise_chunks, tmp_path):
    """Makes a session with everything in it."""

    def make(format, sound="wav"):
        folder = tmp_path / format
        with SoundLog(folder, table(), fs=FS, channels=2, sound=sound, format=format) as log:
            for one in at(lambda s: HOUR - 2.0 + s)[::2]:
                log(one)
            log.event(Event("gap", 48000, 1.0, HOUR, 480, "lost"))
            for chunk in noise_chunks[:20]:
                log.sound(chunk)
        return folder

    return make


def damaged(data, rng):
    """The same with bytes changed, left out, doubled or put in."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice([1, 7, 500])]
        elif kind == 2:
            data[at:at] = rng.choice(WEIRD)
        elif kind == 3:
            data[at:at] = data[at : at + rng.randrange(200)]
        elif kind == 4:
            data[at : at + 4] = rng.choice(WEIRD)
        else:
            data[at : at + 16] = bytes(min(16, len(data) - at))
    return bytes(data)


WEIRD = [b"\xff\xff", b"\n", b"{", b"[" * 5000, b"9" * 5000, b"null", b"-1", b"1e999", b'"']
WEIRD += [b"NaN", b"true", b"\\ud800", b"\x1b]0;x\x07", b"../../etc/passwd", b",,,,", b'"at": -5, ']


def read_all(folder):
    """Ask a session everything that it can be asked; gives the sentences that came instead."""
    sentences = []
    questions = [lambda: verify(folder), lambda: [*Session(folder).rows()]]
    questions += [lambda: Session(folder).events(), lambda: [*Session(folder).sound()]]
    for question in questions:
        try:
            question()
        except SessionError as error:
            sentences.append(str(error))
    assert all("\n" not in one and len(one) < 1000 for one in sentences), sentences
    return sentences


def attack(whole, new_log, count, seed, format):
    """Damage one file, ask everything, go on with it; as often as asked."""
    rng = random.Random(seed)
    pristine = whole(format, "flac" if format == "csv" else "wav")
    folder = pristine.with_name("damaged")
    rows = [*Session(pristine).rows()]
    seen = 0
    for _ in range(count):
        shutil.copytree(pristine, folder)
        path = rng.choice(sorted(folder.iterdir()))
        data = path.read_bytes()
        path.write_bytes(damaged(data, rng))
        if path.read_bytes() != data:
            seen += 1
            if not read_all(folder) and path.name != "chain.jsonl":
                verdict = verify(folder)
                # A database has room that holds nothing.
                same = path.name.startswith("rows.sqlite") and [*Session(folder).rows()] == rows
                assert verdict.word != "intact" or verdict.open or same, path
            with contextlib.suppress(SessionError), new_log(folder, format):
                pass
            read_all(folder)
        shutil.rmtree(folder)
    return seen


@pytest.mark.parametrize("edit", [("rows", "r ws"), (r'"last":\d+', '"last":' + 40 * "9")])
def test_a_chain_that_was_edited_is_gone_on_with_and_told(whole, new_log, tmp_path, edit):
    folder = tmp_path / "night"
    shutil.copytree(whole("sqlite"), folder)
    path = folder / "chain.jsonl"
    edited = re.sub(*edit, path.read_text())
    assert edited != path.read_text()
    path.write_text(edited)
    with new_log(folder):
        pass
    assert verify(folder).word == "edited"


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "format",
    [
        pytest.param(one, marks=[] if one in ("sqlite", "csv") else pytest.mark.soak)
        for one in LOG_FORMATS
    ],
)
def test_a_damaged_session_is_told_in_sentences(whole, new_log, format):
    assert attack(whole, new_log, COUNT, 1, format) > 0.9 * COUNT


@pytest.mark.parametrize("sample", [float("inf"), 10**400, "many"])
def test_sound_at_no_place_is_refused(whole, sample):
    folder = whole("jsonl")
    path = next(folder.glob("sound-*.jsonl"))
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | {"sample": sample}), *others, ""]))
    with pytest.raises(SessionError, match="cannot be read"):
        list(Session(folder).sound())


def test_what_sqlite_says_of_a_name_is_on_one_line(whole):
    folder = whole("sqlite")
    path = folder / "rows.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        of_rows = "sql = 'CREATE', name = 'ro' || char(10) || 'ws' WHERE name = 'rows'"
        connection.execute(f"UPDATE sqlite_master SET {of_rows}")
    (sentence,) = {*read_all(folder)}
    assert r"malformed database schema (ro\nws)" in sentence
    assert r"malformed database schema (ro\nws)" in " ".join(verify(folder).edited)


def test_tables_whose_names_cannot_be_read_are_told_and_put_aside(whole, new_log):
    folder = whole("sqlite")
    path = folder / "rows.sqlite"
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE events")
    path.write_bytes(data[:at] + b"CREATE \xb8ABLE" + data[at + 12 :])
    assert "damaged" in " ".join(verify(folder).edited)
    with pytest.raises(SessionError, match="damaged"):
        list(Session(folder).rows())
    with new_log(folder) as log:
        assert "damaged" in " ".join(log.folder.repaired)
