"""A session measured again from its sound: the same rows, to the last bit."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import numpy as np
import pytest
import soundfile

from amt_stream.cli import main
from amt_stream.core.formats import LOG_FORMATS
from amt_stream.engine import Engine, Event, Fault, PushSource
from amt_stream.engine.sinks import snapshots
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import Session, SessionError, SessionLog, SoundLog, log_writer
from amt_stream.sessions.replay import replay_session

FS = 48000
LOUD = Calibration(100.0, source="test", calibration_uncertainty_db=0.3)
NAMES = ("moore2016", "bs1770", "spl")


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(log_writer, "FLUSH_S", 0.1)
    monkeypatch.setattr(snapshots, "SNAPSHOT_S", 0.1)


def blocks_of(seconds, seed=0):
    """Noise in blocks of awkward sizes; with NaN, and beyond full scale."""
    random = np.random.default_rng(seed)
    x = 0.1 * random.standard_normal((round(seconds * FS), 2)).astype(np.float32)
    x[len(x) // 2 : len(x) // 2 + 50] *= 100
    x[len(x) // 3, 0] = np.nan
    return np.split(x, np.sort(random.integers(1, len(x), round(100 * seconds))))


class Marked(PushSource):
    """Sound that is pushed, with marks of its blocks."""

    def marked(self, block, lost=0, flags=0):
        self._deliver(block, lost, flags)


def kept(folder, blocks, names=NAMES, sound="wav", lost=(), restore=False, live=False, **more):
    """A measurement of these blocks with a log; `lost` samples before some of them.

    limits: from the beginning; others may come later
    before: called before each block, with its number, the engine and the table
    """
    source, limits = Marked(FS, 2, "the hall", live=live), more.pop("limits", ())
    before = more.pop("before", lambda *given: None)
    preset = Preset(names, block_ms=more.pop("block_ms", 10.0), limits=limits)
    preset = replace(preset, uncertainty_db=LOUD.uncertainty_db)
    models = preset.models(FS, 2)
    heard = Sound(source.name, FS, (1, 2), [LOUD], None, source=source)
    settings = {"engine": preset.engine_settings, "source": {"picked": None}}
    table = Table(preset, models, heard, RowSettings(50, columns=more.pop("columns", None)))
    if limits:
        table.rows.remember()
    given = {"settings": settings, "restore": restore, **more}
    if sound is None:
        one = SessionLog(folder, table, **given)
    else:
        one = SoundLog(folder, table, fs=FS, channels=2, sound=sound, **given)
    state = one.engine_state
    engine = Engine(
        source, models, [one], calibration=LOUD, block_ms=preset.block_ms, restore=state
    )
    with one, engine:
        for number, block in enumerate(blocks):
            before(number, engine, table)
            missing = dict(lost).get(number, 0)
            source.marked(block, missing, Fault.STALL if number == 40 else 0)
            if live:
                time.sleep(0.002)
        source.close()
        assert engine.wait(60)
    assert one.note == ""
    return folder


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "format",
    [
        pytest.param(one, marks=[] if one in ("sqlite", "csv") else pytest.mark.soak)
        for one in LOG_FORMATS
    ],
)
def test_the_same_rows_come_again(tmp_path, format):
    """With gaps that are filled and jumped, at the end too, marks, NaN, clipping, a band."""
    lost = [(60, 4800), (90, 3 * FS)]
    folder = kept(tmp_path / "hall", blocks_of(1.5), format=format, lost=lost)
    found = replay_session(folder)
    logged = list(Session(folder).rows())
    assert found.same
    assert (found.rows, found.absent, found.differs, found.notes) == (len(logged), 0, "", ())
    assert found.rows > 25
    assert found.logged == found.again
    assert len({row["fault"] for row in logged}) > 3


def test_rows_given_up_half_read_are_closed_by_any_thread(tmp_path):
    """As the garbage collector does it."""
    rows = Session(kept(tmp_path / "hall", blocks_of(0.5), ("spl",), format="sqlite")).rows()
    next(rows)
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(rows.close).result()
    assert list(rows) == []


def test_flac_holds_what_came_in_24_bits(tmp_path):
    blocks = [np.round(np.nan_to_num(b).clip(-0.9, 0.9) * 2**15) / 2**15 for b in blocks_of(1.0)]
    blocks = [block.astype(np.float32) for block in blocks]
    assert replay_session(kept(tmp_path / "hall", blocks, ("spl",), "flac")).same


def test_a_row_that_was_changed_is_named(tmp_path):
    folder = kept(tmp_path / "hall", blocks_of(1.0), ("spl",), format="jsonl", columns="laeq_db")
    (path,) = folder.glob("rows-*.jsonl")
    lines = path.read_text().splitlines()
    row = json.loads(lines[8])
    lines[8] = json.dumps(row | {"laeq_db": row["laeq_db"] + 0.0001})
    path.write_text("\n".join(lines) + "\n")
    found = replay_session(folder)
    assert not found.same
    assert found.logged != found.again
    where = f"the row at {row['time_s']} s, sample {row['sample']}: "
    assert found.differs.startswith(f"{where}laeq_db was {row['laeq_db'] + 0.0001}")


def test_a_run_that_went_on_after_a_gap(tmp_path):
    """From what was heard before its snapshot, and not what came after it."""
    folder = tmp_path / "hall"
    kept(folder, blocks_of(0.5), ("spl",), live=True)
    kept(folder, blocks_of(0.5, 1), ("spl",), live=True, restore=True)
    for run in (1, 2):
        found = replay_session(folder, run)
        assert (found.differs, found.notes) == ("", ())
        assert found.same


def test_what_cannot_be_measured_again(tmp_path):
    folder = kept(tmp_path / "hall", blocks_of(0.3), ("spl",), None)
    with pytest.raises(SessionError, match="has no sound of run 1"):
        replay_session(folder)
    with pytest.raises(SessionError, match="has no run 4: there are 1"):
        replay_session(folder, 4)
    with pytest.raises(SessionError, match="not a session"):
        replay_session(tmp_path / "nowhere")


def test_it_ends_where_sound_is_missing(tmp_path):
    folder = kept(tmp_path / "hall", blocks_of(1.0), ("spl",))
    (lines,) = folder.glob("sound-*.jsonl")
    first, *others = map(json.loads, lines.read_text().splitlines())
    late = first | {"at": FS // 2, "sample": FS // 2 + 480, "missed": 480}
    told = [first, *(one for one in others if one.get("at", FS) < FS // 2), late]
    lines.write_text("".join(json.dumps(one) + "\n" for one in told))
    found = replay_session(folder)
    assert found.same
    assert found.notes == (f"sound is missing in the recording from sample {FS // 2} on",)
    assert 5 < found.rows < 12


def add_event(folder, event):
    """As if a log of CSV had been told of it."""
    (path,) = folder.glob("rows-*.csv")
    lines = path.with_name(path.name.replace("rows", "events")).with_suffix(".jsonl")
    lines.write_text(json.dumps(asdict(event)) + "\n")


@pytest.mark.quick
def test_it_ends_where_the_models_changed(tmp_path):
    folder = kept(tmp_path / "hall", blocks_of(1.0), ("spl",), format="csv")
    add_event(folder, Event("overload", FS // 2, 0.5, 0.0, 0, "fewer models"))
    found = replay_session(folder)
    assert found.same
    assert "before sample 24000" in found.notes[0]
    assert 5 < found.rows < 12


def test_a_reset_in_the_first_instant_is_why_nothing_is_measured_again(tmp_path):
    folder = kept(tmp_path / "hall", blocks_of(0.2), ("spl",), format="csv")
    add_event(folder, Event("filters_reset", 0, 0.0, 0.0, 0, "all models are back to silence"))
    with pytest.raises(SessionError, match=r"cannot be measured again: .*before sample 0 .*reset"):
        replay_session(folder)


HOSTILE = [{"preset": None}, {"preset": {"model": {"name": "spl", "x": 1}}}, {"rows": []}]
HOSTILE += [{"calibration": [{"level": 1}]}, {"calibration": 3}, {"header": {}}, {"engine": {}}]
HOSTILE += [{"rows": {"step_ms": -1}}, {"source": {"picked": [9]}}, {"restored": {"run": 1}}]
HOSTILE += [{"engine": {"block_ms": "x"}}, {"restored": 3}]


@pytest.mark.parametrize("changed", HOSTILE, ids=str)
def test_a_description_that_is_none_is_refused(tmp_path, changed):
    """In one sentence."""
    folder = kept(tmp_path / "hall", blocks_of(0.2), ("spl",))
    path = folder / "session.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(SessionError) as refusal:
        replay_session(folder)
    assert "\n" not in str(refusal.value)


def test_a_file_with_its_end_comes_again(tmp_path):
    """Frames that it ends in, a last row that is of the whole sound."""
    x = np.zeros((round(1.2037 * FS), 2), np.float32)
    x[-100:] = 0.5
    soundfile.write(tmp_path / "click.wav", x, FS, "FLOAT")
    folder = tmp_path / "log"
    asked = ["--model", "moore2016,bs1770,spl", "--full-scale-db", "100", "--log", str(folder)]
    source = ["meter", "--source", str(tmp_path / "click.wav"), "--fast", "--quiet"]
    assert main([*source, *asked, "--log-sound", "wav"]) == 0
    found = replay_session(folder)
    assert found.same, found.differs
    *_, last = Session(folder).rows()
    assert last["true_peak_dbtp"] > -6.5
    assert found.rows == len(list(Session(folder).rows())) > 10
