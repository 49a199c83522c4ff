"""What `verify` sees: every byte that was changed, every part and row that is gone."""

import contextlib
import json
import sqlite3

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from amt_stream.cli.command import run_command
from amt_stream.cli.commands.verify import lines
from amt_stream.meters.frames import Event
from amt_stream.sessions import Session, SessionError, Verdict, verify
from tests.sessions.conftest import HOUR

GAP = Event("gap", 48000, 1.0, HOUR - 1.0, 4800, "the device lost it")


@pytest.mark.parametrize("name", ["rows-20261122T13Z.csv", "session.json", "summary.json"])
def test_an_edited_part_is_named(written, tmp_path, name):
    folder = written(tmp_path / "night", "csv")
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    verdict = verify(folder)
    assert verdict.word == "edited"
    assert verdict.edited[0] == f"{name} was edited"


def test_a_missing_part_is_named(written, tmp_path):
    folder = written(tmp_path / "night", "jsonl", events=[GAP])
    (folder / "rows-20261122T13Z.jsonl").unlink()
    verdict = verify(folder)
    assert (verdict.word, verdict.missing) == ("gapped", ["rows-20261122T13Z.jsonl is missing"])


def test_an_added_part_is_named(written, tmp_path):
    folder = written(tmp_path / "night", "csv")
    for name in ("rows-20261122T15Z.csv", "rows-20261122T16Z.csv"):
        (folder / name).write_bytes((folder / "rows-20261122T14Z.csv").read_bytes())
    verdict = verify(folder)
    assert verdict.open == ["rows-20261122T16Z.csv"]
    assert verdict.edited == ["rows-20261122T15Z.csv was added: it is not in the chain"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("UPDATE rows SET laeq_db = laeq_db + 1 WHERE id = 30", "edited"),
        ("UPDATE events SET samples = 0", "edited"),
        ("DELETE FROM rows WHERE id = 7", "gapped"),
        ("INSERT INTO rows (time_s) VALUES (9.0)", "intact"),
        ("ALTER TABLE rows DROP COLUMN laeq_db", "edited"),
        ("DROP TABLE rows", "edited"),
        ("UPDATE headers SET header = replace(header, 'dB', 'phon')", "edited"),
        ("INSERT INTO headers SELECT run, first + 3, header FROM headers", "edited"),
        ("DELETE FROM headers", "edited"),
    ],
)
def test_a_changed_row_of_the_database_is_seen(written, tmp_path, change, word):
    folder = written(tmp_path / "night", events=[GAP])
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        connection.execute(change)
    connection.close()
    verdict = verify(folder)
    assert verdict.word == word
    if word == "intact":
        assert verdict.open == ["1 row of rows.sqlite"]
    elif "id = 30" in change:
        assert verdict.edited == ["rows 22 to 51 of rows.sqlite (20261122T14Z) were edited"]


@pytest.mark.parametrize(
    ("change", "edited"),
    [
        ("UPDATE headers SET header = '{}'", "the header of rows 1 to "),
        ("UPDATE rows SET laeq_db = 40 WHERE id = 2", "rows 1 to "),
    ],
)
def test_an_edit_during_the_hour_is_seen(new_log, at, until, tmp_path, change, edited):
    """The hash is of what the log wrote, not of what the database holds when the hour ends."""
    path = tmp_path / "night" / "rows.sqlite"
    with new_log(tmp_path / "night") as log:
        for one in at(lambda time_s: HOUR + time_s):
            log(one)

        def is_changed():
            connection = sqlite3.connect(path, isolation_level=None)
            with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(connection):
                return connection.execute(change).rowcount > 0
            return False

        until(is_changed)
    assert log.note == ""
    (sentence,) = verify(tmp_path / "night").edited
    assert sentence.startswith(edited)


def test_a_run_that_ended_before_its_first_row_is_no_edit(written, tmp_path):
    """Its header is in the database, for the row with which the next run begins."""
    folder = written(tmp_path / "night")
    connection = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
    with contextlib.closing(connection):
        connection.execute(
            "INSERT INTO headers SELECT run, (SELECT max(id) + 1 FROM rows), header FROM headers"
        )
    assert verify(written(folder)).whole


def test_the_chain_itself_is_checked(written, tmp_path):
    folder = written(tmp_path / "night", "csv")
    chain = folder / "chain.jsonl"
    lines = chain.read_text().splitlines()
    assert verify(folder).head == json.loads(lines[-1])["hash"]

    chain.write_text("\n".join([lines[0], *lines[2:], ""]))
    verdict = verify(folder)
    assert verdict.word == "gapped"
    assert verdict.missing == ["the chain: 1 entry missing before line 2"]

    forged = json.loads(lines[1]) | {"sha256": "0" * 64}
    chain.write_text("\n".join([lines[0], json.dumps(forged), *lines[2:], ""]))
    verdict = verify(folder)
    assert "the chain: line 2 was edited" in verdict.edited

    chain.write_text("\n".join([lines[0], "nonsense", *lines[2:], ""]))
    with pytest.raises(SessionError, match="line 2 is not an entry of a chain"):
        verify(folder)


def without_end(folder):
    """The same session as if it had ended one part earlier; gives the hash that was its last."""
    chain = folder / "chain.jsonl"
    *lines, last = chain.read_text().splitlines()
    chain.write_text("\n".join([*lines, ""]))
    entry = json.loads(last)
    (folder / entry["part"]).unlink(missing_ok=True)
    return entry["hash"]


def test_an_end_that_was_taken_away_is_known_by_a_hash_that_was_noted(written, tmp_path):
    folder = written(tmp_path / "night", "csv")
    first = json.loads((folder / "chain.jsonl").read_text().splitlines()[0])["hash"]
    noted = verify(folder).head
    assert verify(folder, head=noted).proved == "everything is present up to the hash noted earlier"
    assert without_end(folder) == noted
    assert (verify(folder).word, verify(folder).proved) == ("intact", "")
    assert verify(folder, head=noted).word == "gapped"
    assert verify(folder, head=first).proved.endswith("closed parts came later")


UNSUPPORTED = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqBHM9VAYItBG0wawIBAQQgp1N0BeZ1F6gjV8AR
M2aGMmDnMMH1kN2bXMFtFaxZ01ehRANCAARUvCl0/MDCX+Sq2gz5oHk5JyNkVhPt
HMScJBP88C48gXLwrFboPnTz7sdBTuFmNtg1a40haVOCOSP44MnCUA6B
-----END PRIVATE KEY-----
"""
"""A key on the curve SM2, which the library does not read, made for this test with OpenSSL."""


@pytest.fixture
def keys(tmp_path):
    """Files of a private and a public key."""

    def make(name, private):
        paths = tmp_path / f"{name}.pem", tmp_path / f"{name}.public.pem"
        pem, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        paths[0].write_bytes(private.private_bytes(pem, *plain))
        paths[1].write_bytes(private.public_key().public_bytes(pem, form))
        return [str(path) for path in paths]

    return make


def test_a_signature_tells_it_too(written, keys, tmp_path, capsys):
    folder = written(tmp_path / "night", "csv")
    private, public = keys("mine", ed25519.Ed25519PrivateKey.generate())
    _, other = keys("another", ed25519.Ed25519PrivateKey.generate())
    curve, _ = keys("curve", ec.generate_private_key(ec.SECP256R1()))
    check = ["verify", str(folder), "--public-key"]

    def said(*line):
        status = run_command([*line])
        return status, "".join(capsys.readouterr())

    assert "the session was not signed" in said(*check, public)[1]
    status, out = said("verify", str(folder), "--sign", private)
    assert (status, "not known: whether later parts were removed" in out) == (0, True)
    assert "signed at 20" in out
    status, out = said(*check, public)
    assert (status, "everything is present up to the hash signed at 20" in out) == (0, True)
    assert "is not a signature by the key in" in said(*check, other)[1]
    assert "has no public key in PEM" in said(*check, private)[1]
    assert "another kind: make one of Ed25519" in said("verify", str(folder), "--sign", curve)[1]
    unsupported = tmp_path / "unsupported.pem"
    unsupported.write_text(UNSUPPORTED)
    said_of_it = said("verify", str(folder), "--sign", str(unsupported))[1]
    assert "another kind: make one of Ed25519" in said_of_it
    without_end(folder)
    assert said(*check, public)[0] == 1
    signature = folder / "signature.json"
    signature.write_text(signature.read_text().replace('"utc": "20', '"utc": "30'))
    assert "is not a signature by the key in" in said(*check, public)[1]


def test_what_is_no_session_is_said(tmp_path):
    with pytest.raises(SessionError, match="no such folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(SessionError, match="is not a session"):
        verify(tmp_path)
    (tmp_path / "chain.jsonl").write_text("[" * 100000 + "\n\n")
    with pytest.raises(SessionError, match="line 1 is not an entry"):
        verify(tmp_path)


@pytest.mark.parametrize("format", ["sqlite", "csv"])
def test_gaps_of_sound_are_told_and_are_no_fault_of_the_log(written, tmp_path, format):
    verdict = verify(written(tmp_path / "night", format, events=[GAP]))
    assert verdict.gaps == [(1, 48000.0, GAP)]
    assert verdict.word == "intact"
    assert Session(tmp_path / "night").events(1) == [GAP]


@pytest.mark.parametrize("name", ["samples", "time_s"])
def test_a_number_that_no_meter_counts_to_is_no_event(written, tmp_path, name):
    path = written(tmp_path / "night", "jsonl", events=[GAP])
    file = next(path.glob("events-*.jsonl"))
    told = json.loads(file.read_text())
    file.write_text(json.dumps(told | {name: 10**400}) + "\n")
    assert "has an invalid event" in "\n".join(verify(path).edited)


@pytest.mark.parametrize("utc", [1e18, -1e18, 1e300, float("nan")])
def test_a_gap_at_no_time_is_told_all_the_same(utc):
    gap = Event("gap", 0, 0.0, utc, 480)
    told = lines(Verdict(gaps=[(1, 48000.0, gap)]))
    assert f"UTC {utc}" in told[-1]
