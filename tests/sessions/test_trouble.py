"""A disk that takes nothing, a folder that goes: said, and the measurement goes on."""

import resource
import shutil
import time

import pytest

from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import Preset
from amt_stream.sessions import Session, SessionError, SoundLog, verify
from tests.sessions.conftest import FS, HOUR

FORMATS = ["sqlite", "csv", "jsonl", "parquet"]
TIMES = [n / 10 for n in range(51)]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("amt_stream.sessions.log_writer.FLUSH_S", 0.05)
    monkeypatch.setattr("amt_stream.sessions.log_writer.RETRY_S", 0.1)


@pytest.fixture
def full_disk():
    """Makes every file of this process too large that would grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size is None else size, before[1]))

    yield limit
    limit(None)


def write_first(log, blocks, until):
    """Log the first rows, and wait until they are on the disk."""
    for one in blocks[:50]:
        log(one)
    until(lambda: list(log.path.glob("rows*")) and not log._writer._waiting.count)
    time.sleep(0.2)


def largest(folder):
    return max(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_loses_nothing_that_waits(new_log, at, full_disk, tmp_path, until, format):
    blocks = at(lambda s: HOUR + s)
    with new_log(tmp_path / "night", format) as log:
        write_first(log, blocks, until)
        full_disk(largest(log.path) + 50)
        for one in blocks[50:80]:
            log(one)
        until(lambda: "cannot be written" in log.note)
        assert "the measurement continues" in log.note
        assert verify(log.path).word == "intact"
        for one in blocks[80:]:
            log(one)
        full_disk(None)
        until(lambda: "can be written again" in log.note)
        assert log.dropped == 0
    assert [row["time_s"] for row in Session(log.path).rows()] == TIMES
    assert verify(log.path).word == "intact"


@pytest.mark.parametrize("format", FORMATS)
def test_what_waits_is_bounded_and_counted(
    new_log, at, full_disk, tmp_path, until, monkeypatch, format
):
    monkeypatch.setattr("amt_stream.sessions.log_writer.WAITING_ROWS", 20)
    blocks = at(lambda s: HOUR + s)
    with new_log(tmp_path / "night", format) as log:
        for one in blocks[:20]:
            log(one)
        until(lambda: list(tmp_path.glob("night/rows*")) and not log._writer._waiting.count)
        full_disk(largest(log.path) + 50)
        log(blocks[20])
        for one in blocks[21:50]:
            log(one)
        until(lambda: "cannot be written" in log.note)
        for one in blocks[50:]:
            log(one)
        assert log.dropped > 0
        full_disk(None)
        until(lambda: "rows and events lost" in log.note)
    rows = [row["time_s"] for row in Session(log.path).rows()]
    assert len(rows) + log.dropped == 51
    assert rows == sorted(rows)
    assert rows[-20:] == TIMES[-20:]
    assert verify(log.path).word == "intact"


@pytest.mark.parametrize("format", FORMATS)
def test_a_disk_that_stays_full_is_told_at_the_end(new_log, at, full_disk, tmp_path, format):
    log = new_log(tmp_path / "night", format)
    full_disk(100)
    for one in at(lambda s: HOUR + s):
        log(one)
    log.close()
    assert "rows and events lost: 51" in log.note
    assert log.dropped == 51


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_sound_goes_on_after_a_full_disk(table, full_disk, noise_chunks, tmp_path, until, sound):
    """Of FLAC at most a frame of it is lost, and told as missed."""
    log = SoundLog(tmp_path / "night", table(), fs=FS, channels=2, sound=sound)
    with log:
        for chunk in noise_chunks[:100]:
            log.sound(chunk)
        until(lambda: not log._sound._chunks and not log._writer.disk.writing_since)
        full_disk(largest(log.path) + 5000)
        for chunk in noise_chunks[100:200]:
            log.sound(chunk)
        until(lambda: "cannot be written" in log.note)
        full_disk(None)
        until(lambda: "can be written again" in log.note)
        for chunk in noise_chunks[200:]:
            log.sound(chunk)
    heard = list(Session(log.path).sound())
    missed = sum(chunk.missed for chunk in heard)
    assert sum(map(len, heard)) + missed == 300 * 480
    assert 0 <= missed <= (4096 + 480 if sound == "flac" else 0)
    position = 0
    for chunk in heard:
        assert chunk.sample == position + chunk.missed
        position = chunk.sample + len(chunk)
    assert log.unrecorded == 0
    assert verify(log.path).word == "intact"


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_that_is_deleted_is_made_anew(new_log, at, tmp_path, until, format):
    blocks = at(lambda s: HOUR + s)
    with new_log(tmp_path / "night", format) as log:
        write_first(log, blocks, until)
        shutil.rmtree(log.path)
        for one in blocks[50:]:
            log(one)
        until(lambda: "can be written again" in log.note)
    rows = [row["time_s"] for row in Session(log.path).rows()]
    assert rows == TIMES[-len(rows) :]
    assert len(rows) >= 25
    verdict = verify(log.path)
    assert verdict.word == "gapped"
    assert verdict.edited == []
    with new_log(log.path, format) as log:
        assert log.folder.run == 2


@pytest.mark.parametrize("sound", ["flac", "wav"])
def test_sound_goes_on_in_a_folder_made_anew(table, noise_chunks, tmp_path, until, sound):
    log = SoundLog(tmp_path / "night", table(), fs=FS, channels=2, sound=sound)
    with log:
        for chunk in noise_chunks[:100]:
            log.sound(chunk)
        until(lambda: not log._sound._chunks and not log._writer.disk.writing_since)
        shutil.rmtree(log.path)
        for chunk in noise_chunks[100:]:
            log.sound(chunk)
        until(lambda: "can be written again" in log.note)
    heard = list(Session(log.path).sound())
    assert heard[0].sample <= 200 * 480
    assert heard[-1].sample + len(heard[-1]) == 300 * 480
    verdict = verify(log.path)
    assert (verdict.word, verdict.edited) == ("gapped", [])


def test_a_folder_whose_disk_is_gone_is_not_made_on_another(new_log, at, tmp_path, until):
    blocks = at(lambda s: HOUR + s)
    log = new_log(tmp_path / "night", "csv")
    log.folder._device += 1  # as where nothing is mounted any more
    shutil.rmtree(log.path)
    for one in blocks:
        log(one)
    until(lambda: "its disk is gone" in log.note)
    log.close()
    assert not log.path.exists()


def test_trouble_is_an_event_and_in_health(table, full_disk, tmp_path, until):
    from amt_stream.sessions import SessionLog

    log = SessionLog(tmp_path / "night", table(fs=48000), format="csv")
    source = demo_source(duration=5.0)
    with Engine(source, Preset(("spl",)).models(FS, 2), [log]) as engine:
        full_disk(100)
        until(lambda: "cannot be written" in engine.health.note)
        until(lambda: any(e.kind == "sink" for e in engine.events))
        heard = engine.health.samples
        until(lambda: engine.health.samples > heard + FS // 4)
        full_disk(None)
        until(lambda: "can be written again" in engine.health.note)
    told = [event.text for event in Session(log.path).events() if event.kind == "sink"]
    assert "cannot be written" in told[0]
    assert log.dropped == 0
    assert engine.error is None


def test_what_cannot_be_written_is_refused_at_the_start(new_log, tmp_path, full_disk):
    full_disk(100)
    with pytest.raises(SessionError, match=r"night.* cannot be written: "):
        new_log(tmp_path / "night")
    full_disk(None)
    with new_log(tmp_path / "night") as log:
        assert log.folder.run == 1
