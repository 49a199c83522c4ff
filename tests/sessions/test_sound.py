"""The sound of a session: bit by bit, with its losses, by the hour, as it is."""

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from amt_stream.engine.inputs.sound_file import calibrations_in
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Chunk, Event
from amt_stream.sessions import Session, SessionError, SoundLog, log_writer, verify
from tests.sessions.conftest import FS, HOUR


@pytest.fixture
def new_log(table):
    def make(path, sound="flac", channels=2, fs=FS, **more):
        return SoundLog(path, table(), fs=fs, channels=channels, sound=sound, **more)

    return make


@pytest.fixture
def chunks():
    """2 s in blocks of 10 ms, of 16 bits and beyond the end of an hour; with losses and marks."""
    rng = np.random.default_rng(1)
    x = (rng.integers(-32768, 32768, (2 * FS, 2)) / 32768).astype(np.float32)
    found, position = [], 0
    for number, at in enumerate(range(0, len(x), 480)):
        lost = {50: 96, 120: 48000}.get(number, 0)
        position += lost
        utc = HOUR - 0.505 + position / FS
        flags = 16 if number == 70 else 0
        found.append(Chunk(x[at : at + 480], position, utc, lost, flags))
        position += 480
    return [*found, Chunk(x[:0], position + 24, HOUR + 2.0, lost=24)]


def joined(chunks):
    """Samples, and what is told of places in them."""
    samples = np.concatenate([chunk.samples for chunk in chunks])
    told, at = [], 0
    for chunk in chunks:
        if chunk.lost or chunk.flags or chunk.missed:
            told.append((at, chunk.sample, chunk.lost, chunk.flags, chunk.missed))
        at += len(chunk)
    return samples, told


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_what_is_recorded_is_what_was_heard(new_log, chunks, tmp_path, sound):
    with new_log(tmp_path / "night", sound) as log:
        for chunk in chunks:
            log.sound(chunk)
    assert (log.note, log.unrecorded) == ("", 0)
    names = [f"sound-20261122T{hour}Z.{sound}" for hour in (13, 14)]
    assert [path.name for path in sorted(log.path.glob(f"*.{sound}"))] == names
    samples, told = joined(list(Session(log.path).sound()))
    expected, losses = joined(chunks)
    np.testing.assert_array_equal(samples, expected)
    assert told == losses
    assert verify(log.path).word == "intact"
    for name in names:
        with soundfile.SoundFile(log.path / name) as file:
            about = json.loads(file.comment)
            assert (file.samplerate, file.channels) == (FS, 2)
            assert file.subtype == ("PCM_24" if sound == "flac" else "FLOAT")
        assert about["calibration"][0]["full_scale_db_spl"] == 100.0
        assert about["sample"] == (0 if name == names[0] else 24576)
        assert about["utc"].startswith("2026-11-22T13:59:59.495" if name == names[0] else "2026-11")
        last = (log.path / name).with_suffix(".jsonl").read_text().splitlines()[-1]
        assert json.loads(last)["exact"] is True

    data = bytearray((log.path / names[1]).read_bytes())
    data[len(data) // 2] ^= 1
    (log.path / names[1]).write_bytes(data)
    assert verify(log.path).edited == [f"{names[1]} was edited"]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_sound_after_a_calibration_says_so(
    new_log, chunks, tmp_path, sound, written, until, monkeypatch
):
    """In a part that begins there, or behind what was written already; and in the next hour."""
    monkeypatch.setattr(log_writer, "FLUSH_S", 0.05 if written else 60.0)
    changed = Event("calibrated", 9700, 9700 / FS, HOUR, 0, "read from here on with another")
    with new_log(tmp_path / "night", sound) as kept:
        for chunk in chunks[:21]:
            kept.sound(chunk)
        until(lambda: not (written and (kept._sound._chunks or kept._writer.disk.writing_since)))
        kept.table.calibrate(Calibration(94.0, "a test"))
        kept.event(changed)
        for chunk in chunks[21:]:
            kept.sound(chunk)
    session = Session(kept.path)
    found = []
    for path in session.files(1, "sound"):
        if path.suffix != ".jsonl":
            with soundfile.SoundFile(path) as file:
                sample = json.loads(file.comment)["sample"]
            found.append((sample, calibrations_in(path)[1].full_scale_db_spl))
    assert found == [(0, 100.0), (10080 if written else 9700, 94.0), (24576, 94.0)]
    samples, told = joined(list(session.sound()))
    expected, losses = joined(chunks)
    np.testing.assert_array_equal(samples, expected)
    assert told == losses
    assert verify(kept.path).word == "intact"


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_a_recording_that_came_to_a_sudden_end_can_be_read(new_log, chunks, tmp_path, sound, until):
    """A copy of what is there while it is written is what a kill or a loss of power leaves."""
    import shutil

    with new_log(tmp_path / "night", sound) as log:
        for chunk in chunks[:40]:
            log.sound(chunk)
        until(lambda: not log._sound._chunks and not log._writer.disk.writing_since)
        for chunk in chunks[40:48]:
            log.sound(chunk)
        until(lambda: not log._sound._chunks and not log._writer.disk.writing_since)
        shutil.copytree(log.path, tmp_path / "copy")
    expected, _ = joined(chunks[:48])
    samples, _ = joined(list(Session(tmp_path / "copy").sound()))
    assert len(expected) - len(samples) <= (4097 if sound == "flac" else 0)
    assert len(samples) > 16000
    np.testing.assert_array_equal(samples, expected[: len(samples)])
    with new_log(tmp_path / "copy", sound):
        pass
    assert verify(tmp_path / "copy").word == "intact"
    samples, _ = joined(list(Session(tmp_path / "copy").sound(1)))
    np.testing.assert_array_equal(samples, expected[: len(samples)])


@pytest.mark.parametrize("made", [(".wav",), (".wav", ".jsonl")])
def test_a_part_without_its_first_sound_is_nothing(new_log, tmp_path, made):
    """Its files were made, and then the meter was killed."""
    with new_log(tmp_path / "night", "wav"):
        pass
    for ending in made:
        (tmp_path / "night" / f"sound-20261122T14Z{ending}").write_bytes(b"")
    assert list(Session(tmp_path / "night").sound()) == []
    assert verify(tmp_path / "night").word == "intact"
    with new_log(tmp_path / "night", "wav"):
        pass
    verdict = verify(tmp_path / "night")
    assert (verdict.word, verdict.open) == ("intact", [])


def test_what_flac_cannot_hold_is_said_and_wav_holds_it(new_log, chunks, tmp_path):
    x = np.array([[1.5, np.nan], [-1.0, 1.0], [1e-9, -np.inf]], np.float32)
    strange = replace(chunks[0], samples=x)
    for sound in ("flac", "wav"):
        with new_log(tmp_path / sound, sound) as log:
            log.sound(strange)
        samples, _ = joined(list(Session(log.path).sound()))
        (lines,) = log.path.glob("sound-*.jsonl")
        last = json.loads(lines.read_text().splitlines()[-1])
        if sound == "flac":
            assert "exceeds full scale" in log.note
            assert last == {"end": 3, "exact": False, "cut": 2, "invalid": 2}
            full = 1 - 2.0**-23
            np.testing.assert_array_equal(samples, [[full, 0], [-1, full], [0, 0]])
        else:
            assert log.note == ""
            assert last["exact"] is True
            np.testing.assert_array_equal(samples, x)


def test_sound_that_a_sink_missed_is_told(new_log, chunks, tmp_path):
    with new_log(tmp_path / "night", "wav") as log:
        for chunk in (*chunks[:10], *chunks[15:20]):
            log.sound(chunk)
    _, told = joined(list(Session(log.path).sound()))
    assert told == [(4800, 7200, 0, 0, 2400)]


def test_wav_grows_beyond_4_gib(tmp_path, monkeypatch):
    """With a limit that is reached soon; the sizes stand where RF64 has them."""
    from amt_stream.sessions import wav

    monkeypatch.setattr(wav, "LARGEST_RIFF", 40000)
    file = wav.WavFile(tmp_path / "long.wav", FS, 2, {"comment": "odd"})
    x = np.random.default_rng(0).standard_normal((6000, 2)).astype(np.float32)
    for at in (0, 3000):
        file.write([Chunk(x[at : at + 3000], at, 0.0)])
    file.finish()
    data = (tmp_path / "long.wav").read_bytes()
    assert data[:4] == b"RF64"
    assert data[12:16] == b"ds64"
    assert int.from_bytes(data[20:28], "little") == len(data) - 8
    monkeypatch.undo()
    patched = bytearray(data)
    for place in (4, data.index(b"data") + 4):
        patched[place : place + 4] = b"\xff" * 4
    (tmp_path / "real.wav").write_bytes(patched)
    samples, fs = soundfile.read(tmp_path / "real.wav", dtype="float32")
    assert soundfile.info(tmp_path / "real.wav").format == "RF64"
    np.testing.assert_array_equal(samples, x)
    assert fs == FS


def test_what_flac_cannot_be_made_of_is_refused(new_log, tmp_path):
    with pytest.raises(SessionError, match="choose wav"):
        new_log(tmp_path / "night", channels=9)
    with pytest.raises(SessionError, match="give one of flac, wav"):
        new_log(tmp_path / "night", "mp3")
    assert not (tmp_path / "night").exists()
