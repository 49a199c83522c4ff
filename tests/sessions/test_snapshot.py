"""Snapshots of a session: whole or not at all on the disk, and never believed."""

import hashlib
import json
import os
import tracemalloc

import numpy as np
import pytest

from amt_stream.sessions.files import SessionError
from amt_stream.sessions.snapshot import (
    DRAFT,
    FIRST_LINE,
    LARGEST,
    SNAPSHOT,
    Saved,
    read_snapshot,
    write_snapshot,
)

STATE = {
    "version": "0.5",
    "position": 2**40,
    "level_db": -np.inf,
    "nothing": None,
    "paused": True,
    "models/spl/memory/filter": np.arange(12, dtype=np.float32).reshape(3, 4),
    "models//held": np.zeros((0, 2)),
    "counts": np.array([1, 2], np.int64),
    "places": np.array([3], np.int32),
    "marks": np.array([[7]], np.uint8),
    "known": np.array([True, False]),
    "number": np.array(3.5),
}


SETTINGS = {"rows": {"step_ms": 100, "columns": None}, "calibration": [{"level": 94.0}]}


def write(folder, **changed):
    write_snapshot(folder, Saved(3, 480, SETTINGS, STATE, STATE | changed))


def assert_same(saved, **changed):
    assert (saved.run, saved.sample, saved.settings) == (3, 480, SETTINGS)
    assert_equal(saved.engine, STATE)
    assert_equal(saved.rows, STATE | changed)


def assert_equal(found, state):
    assert list(map(str, sorted(found))) == sorted(state)
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
            found[name][...] = 0  # it is the reader's own
        else:
            assert found[name] == value
            assert type(found[name]) is type(value)


def test_what_is_written_is_read(tmp_path):
    assert read_snapshot(tmp_path) is None
    write(tmp_path)
    assert_same(read_snapshot(tmp_path))
    write(tmp_path, position=3)
    assert_same(read_snapshot(tmp_path), position=3)
    assert [path.name for path in tmp_path.iterdir()] == [SNAPSHOT]


def test_the_last_whole_one_stays(tmp_path, monkeypatch):
    """Where the disk is full, and where the writer was killed before it had its name."""
    write(tmp_path)
    (tmp_path / DRAFT).write_bytes(b"torn")
    assert_same(read_snapshot(tmp_path))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(tmp_path, position=4)
    assert_same(read_snapshot(tmp_path))
    write(tmp_path, position=4)
    assert_same(read_snapshot(tmp_path), position=4)


def test_a_planted_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / DRAFT).symlink_to(target)
    (tmp_path / SNAPSHOT).symlink_to(target)
    write(tmp_path)
    assert target.read_text() == "mine"
    assert_same(read_snapshot(tmp_path))


def test_other_settings_are_refused():
    saved = Saved(1, 0, SETTINGS, {}, {})
    saved.refuse_other({"rows": {"columns": None, "step_ms": 100}, "calibration": [{"level": 94}]})
    with pytest.raises(SessionError, match=r"rows\.step_ms was 100 and is 200"):
        saved.refuse_other(SETTINGS | {"rows": {"step_ms": 200, "columns": None}})
    with pytest.raises(SessionError, match=r"calibration\.1\.level was 94\.0 and is 93\.0"):
        saved.refuse_other(SETTINGS | {"calibration": [{"level": 93.0}]})
    with pytest.raises(SessionError, match="preset was None and is 'another'"):
        saved.refuse_other(SETTINGS | {"preset": "another"})


def refused(folder, why="."):
    with pytest.raises(SessionError, match=why) as refusal:
        read_snapshot(folder)
    assert "\n" not in str(refusal.value)


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / SNAPSHOT).mkdir()
    refused(tmp_path, "is not a snapshot")
    (tmp_path / SNAPSHOT).rmdir()
    os.mkfifo(tmp_path / SNAPSHOT)
    refused(tmp_path, "is not a snapshot")
    for target in ("/dev/zero", "nowhere", SNAPSHOT):
        (tmp_path / SNAPSHOT).unlink()
        (tmp_path / SNAPSHOT).symlink_to(target)
        refused(tmp_path)
    (tmp_path / SNAPSHOT).unlink()
    with (tmp_path / SNAPSHOT).open("wb") as file:
        file.truncate(LARGEST + 1)
    refused(tmp_path, "is not a snapshot")


def signed(head, content=b""):
    body = head if isinstance(head, bytes) else json.dumps(head).encode()
    body = body + b"\n" + content
    return FIRST_LINE + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


HOSTILE = {
    "empty": b"",
    "another file": b"RIFF....WAVE",
    "no digest": FIRST_LINE,
    "deep": signed(b"[" * 100_000),
    "a list": signed([1]),
    "no arrays": signed({"numbers": {}}),
    "numbers in a list": signed({"numbers": [], "arrays": []}),
    "a list as a number": signed({"numbers": {"a": [1]}, "arrays": []}),
    "4300 digits": signed(b'{"numbers":{"a":' + b"9" * 5000 + b'},"arrays":[]}'),
    "objects": signed({"numbers": {}, "arrays": [["a", "|O", [1]]]}, b"\0" * 8),
    "text": signed({"numbers": {}, "arrays": [["a", "<U4", [1]]]}, b"\0" * 16),
    "below nothing": signed({"numbers": {}, "arrays": [["a", "<f8", [-1]]]}),
    "a huge array": signed({"numbers": {}, "arrays": [["a", "<f8", [2**26, 2**26]]]}),
    "many axes": signed({"numbers": {}, "arrays": [["a", "<f8", [1] * 99]]}, b"\0" * 8),
    "a shape of words": signed({"numbers": {}, "arrays": [["a", "<f8", ["1"]]]}, b"\0" * 8),
    "no shape": signed({"numbers": {}, "arrays": [["a", "<f8"]]}),
    "too long": signed({"numbers": {}, "arrays": []}, b"\0"),
    "a kind that is none": signed({"numbers": {}, "arrays": [["a", [], [1]]]}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(tmp_path, case):
    """Those too whose digest is right."""
    (tmp_path / SNAPSHOT).write_bytes(HOSTILE[case])
    tracemalloc.start()
    refused(tmp_path, "damaged")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def mutated(data, random):
    """Bytes changed, cut out, doubled, or the end torn off."""
    found = bytearray(data)
    at, size = random.integers(0, len(found)), random.integers(1, 40)
    match random.integers(4):
        case 0:
            found[at : at + size] = random.bytes(size)
        case 1:
            del found[at : at + size]
        case 2:
            found[at:at] = found[at : at + size]
        case 3:
            del found[at:]
    return bytes(found)


def read_or_refused(folder):
    try:
        saved = read_snapshot(folder)
    except SessionError as refusal:
        return {}, str(refusal)
    return saved.engine | saved.rows, ""


def fuzz(folder, count, seed):
    """Damaged snapshots, half of them with a digest that is right; gives how many were refused."""
    random = np.random.default_rng(seed)
    write(folder)
    whole = (folder / SNAPSHOT).read_bytes()
    body = whole.split(b"\n", 2)[2]
    refusals = 0
    for number in range(count):
        if number % 2:
            data = mutated(whole, random)
        else:
            head, _, content = mutated(body, random).partition(b"\n")
            data = signed(head, content)
        (folder / SNAPSHOT).write_bytes(data)
        found, refusal = read_or_refused(folder)
        refusals += refusal != ""
        assert "\n" not in refusal
        # What is understood is numbers and arrays, whatever their values.
        assert all(isinstance(v, np.ndarray | str | float | int | None) for v in found.values())
        assert refusal or number % 2 == 0 or data == whole
    return refusals


def test_damaged_snapshots(tmp_path):
    assert fuzz(tmp_path, 300, seed=0) > 200
