"""A measurement that was broken off and goes on in its session, against one that never was."""

import json
import shutil
import signal
import sys
import time

import numpy as np
import pytest
import soundfile

from amt_stream.engine import Engine, FileSource, PushSource, Snapshot
from amt_stream.engine.sinks import snapshots
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import Session, SessionError, SessionLog, log, log_writer, verify
from amt_stream.sessions.snapshot import SNAPSHOT, read_snapshot

FS = 48000
LOUD = Calibration(100.0, source="test")
NAMES = ("zwicker", "spl")
DURATION_S = 20.0
"""So long that no computer has measured it before the first snapshots."""


def hurry():
    log_writer.FLUSH_S = snapshots.SNAPSHOT_S = 0.1


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(log_writer, "FLUSH_S", 0.1)
    monkeypatch.setattr(snapshots, "SNAPSHOT_S", 0.1)


def table_of(source, names, step_ms=100):
    preset = Preset(names)
    models = preset.models(FS, source.channels)
    channels = tuple(range(1, source.channels + 1))
    sound = Sound(source.name, FS, channels, [LOUD], source.duration_s)
    return models, Table(preset, models, sound, RowSettings(step_ms))


def measured(sound, folder, restore=False, format="sqlite"):
    """A file measured from where it was broken off to its end; gives its table."""
    source = FileSource(sound, paced=False)
    models, table = table_of(source, NAMES)
    kept = SessionLog(folder, table, format=format, restore=restore)
    with (
        kept,
        Engine(source, models, [kept], calibration=LOUD, restore=kept.engine_state) as engine,
    ):
        assert engine.wait(60)
    assert kept.note == ""
    return table


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Noise that swells and ebbs, in 16 bits."""
    path = tmp_path_factory.mktemp("sound") / "noise.wav"
    count = round(DURATION_S * FS)
    level = 10 ** (np.sin(np.arange(count) / FS * 2.1)[:, None] - 2)
    noise = np.random.default_rng(0).uniform(-1, 1, (count, 2))
    soundfile.write(path, (level * noise).astype(np.float32), FS)
    return path


@pytest.fixture(scope="module")
def whole(sound, tmp_path_factory):
    """Rows, summary and session of a run that nobody broke off."""
    folder = tmp_path_factory.mktemp("whole") / "session"
    table = measured(sound, folder)
    return list(Session(folder).rows()), table.rows.summary(), folder


@pytest.fixture
def folder(whole, tmp_path):
    """A session that has ended, to go on with."""
    return shutil.copytree(whole[2], tmp_path / "session")


def without_utc(rows):
    return [{name: value for name, value in row.items() if name != "utc"} for row in rows]


def assert_whole(folder, whole):
    """All rows once, in their order, and the same to the last digit."""
    session = Session(folder)
    rows = [row for run in session.runs for row in session.rows(run)]
    assert without_utc(rows) == without_utc(whole[0])
    assert verify(folder).word == "intact"


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("seed", "format"),
    [(0, "sqlite"), pytest.param(1, "csv", marks=pytest.mark.soak), (2, "jsonl")],
)
def test_kill_and_go_on(forks, sound, whole, tmp_path, seed, format):
    """kill -9 at a random moment: the log is readable, and goes on to the same end."""
    folder = tmp_path / "session"
    with forks.begin(__file__, sound, folder, format, options=["program"]) as process:
        while not (folder / SNAPSHOT).exists():
            assert process.poll() is None
            time.sleep(0.005)
        time.sleep(np.random.default_rng(seed).uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
    Session(folder)
    at = read_snapshot(folder).engine["models/spl/position/sample"]
    table = measured(sound, folder, restore=True, format=format)
    assert_whole(folder, whole)
    assert table.rows.summary() == whole[1]
    if at < DURATION_S * FS:
        assert [event.kind for event in Session(folder).events(2)] == ["restored"]


def test_one_broken_off_before_its_first_row_keeps_those_before_it(
    sound, whole, tmp_path, monkeypatch
):
    """The run before came further than its snapshot; this one took a snapshot and wrote no row."""
    folder, taken = tmp_path / "session", []
    write = log.write_snapshot
    monkeypatch.setattr(log, "write_snapshot", lambda *given: taken.append(given) or write(*given))
    measured(sound, folder)
    write(*taken[0])
    table = table_of(FileSource(sound), NAMES)[1]
    with SessionLog(folder, table, restore=True) as kept:
        assert kept.engine_state["models/spl/position/sample"] < DURATION_S * FS
        kept.snapshot(Snapshot(taken[0][1].sample, 0.0, kept.engine_state))
    measured(sound, folder, restore=True)
    assert_whole(folder, whole)


def test_one_that_has_ended_is_gone_on_with_to_the_same_end(sound, whole, folder):
    table = measured(sound, folder, restore=True)
    assert_whole(folder, whole)
    assert table.rows.summary() == whole[1]
    summaries = [
        json.loads((folder / name).read_text())["summary"]
        for name in ("summary.json", "summary-2.json")
    ]
    assert summaries[0]["laeq_db"] == summaries[1]["laeq_db"]


@pytest.mark.quick
def test_a_run_that_begins_anew_forgets_the_one_before(sound, folder):
    assert (folder / SNAPSHOT).exists()
    table = table_of(FileSource(sound), NAMES)[1]
    with SessionLog(folder, table) as kept:
        assert kept.engine_state is None
        assert not (folder / SNAPSHOT).exists()
    with SessionLog(folder, table_of(FileSource(sound), NAMES)[1], restore=True) as one:
        assert one.engine_state is None  # there is nothing to go on from


def test_other_settings_are_refused_and_nothing_is_lost(sound, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for names, step_ms, why in ((NAMES, 200, "step_ms"), (("spl",), 100, "preset")):
        table = table_of(FileSource(sound), names, step_ms)[1]
        with pytest.raises(SessionError, match=f"{why}.* was .* and is "):
            SessionLog(folder, table, restore=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / SNAPSHOT).write_bytes(before[SNAPSHOT][:-9])
    with pytest.raises(SessionError, match="damaged"):
        SessionLog(folder, table_of(FileSource(sound), NAMES)[1], restore=True)


def test_a_live_measurement_goes_on_after_a_gap(tmp_path):
    """What was averaged goes on; the time between is a gap, which `verify` tells."""
    noise = 0.1 * np.random.default_rng(0).standard_normal((300, 480, 2)).astype(np.float32)

    def heard(blocks, restore):
        source = PushSource(FS, 2)
        models, table = table_of(source, ("spl",))
        kept = SessionLog(tmp_path / "session", table, restore=restore)
        state = kept.engine_state
        with kept, Engine(source, models, [kept], calibration=LOUD, restore=state) as engine:
            for block in blocks:
                source.push(block)
                time.sleep(0.002)
            source.close()
            assert engine.wait(60)
        return table.rows

    first = heard(noise[:150], False)
    time.sleep(1.1)
    second = heard(noise[150:], True)
    exact = 100 + 20 * np.log10(np.sqrt(2) * 0.1)
    assert first.summary()["lzeq_db"] == pytest.approx(exact, abs=0.5)
    assert second.summary()["lzeq_db"] == pytest.approx(exact, abs=0.5)
    counted = [rows.readings["spl"].counted_s()["measured_s"] for rows in (first, second)]
    assert counted[1] > counted[0] + 0.5
    restored, gap = Session(tmp_path / "session").events(2)
    assert (restored.kind, gap.kind, gap.sample) == ("restored", "gap", 72000)
    assert gap.samples > 1.1 * FS
    rows = [row for run in (1, 2) for row in Session(tmp_path / "session").rows(run)]
    samples = [row["sample"] for row in rows]
    assert samples == sorted(set(samples))
    end = gap.sample + gap.samples
    assert "gap" in next(row for row in rows if row["sample"] >= end)["fault"]
    assert [event.samples for _, _, event in verify(tmp_path / "session").gaps] == [gap.samples]


if __name__ == "__main__":  # a session of a file, whose snapshots come often; to be killed
    hurry()
    measured(*sys.argv[1:3], format=sys.argv[3])
