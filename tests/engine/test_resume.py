"""An engine that goes on where another one was broken off, against one that never was."""

import time
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import amt_stream
from amt_stream import Engine, FileSource, Moore2016, PushSource, SignalSource
from amt_stream.core.saved_state import Unfitting
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import SourceError
from amt_stream.engine.clock import ClockReading
from amt_stream.engine.sinks import snapshots
from amt_stream.engine.sources import StdinSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import load_preset
from amt_stream.meters.rows import JoinedRows, Rows, readings_of
from amt_stream.meters.signals import Noise, Tone, demo_sound
from amt_stream.meters.source_description import DEVICE_CLIPS_AT

FS = 48000
NAMES = ("moore2016", "gm2002", "zwicker", "bs1770", "spl", "third_octave", "spectrum")


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Snapshots come every few blocks."""
    monkeypatch.setattr(snapshots, "SNAPSHOT_S", 0.02)


class Table:
    """A sink that makes rows, and keeps each snapshot with its own state at that place."""

    def __init__(self, names, models, channels=2):
        self.rows = JoinedRows(readings_of(names, channels, False, models), 100, FS)
        self.parts, self.kept, self.events = [], [], []

    def __call__(self, frames):
        self.parts.append(self.rows(frames))

    def event(self, event):
        self.events.append(event)

    def snapshot(self, snapshot):
        self.kept.append((snapshot, self.rows.state_dict()))

    @property
    def all_rows(self):
        return Rows.concatenated(self.parts, self.rows.names)


def ran(source, names, saved=None, **more):
    """The table of a sound that was heard to its end, from where it was saved on."""
    models = load_preset().with_names(names).models(FS, source.channels)
    table = Table(names, models, source.channels)
    state = None
    if saved is not None:
        snapshot, of_table = saved
        state = snapshot.state
        table.rows.load_state_dict(of_table)
    with Engine(source, models, [table], restore=state, **more) as engine:
        assert engine.wait(60)
    return table


def assert_same_end(told, again):
    """The rows of the second are the last ones of the first, bit for bit."""
    told, again = told.all_rows, again.all_rows
    assert 0 < len(again) < len(told)
    for name in told.columns:
        np.testing.assert_array_equal(again[name], told[name][-len(again) :], err_msg=name)


@pytest.mark.cases(1)
@pytest.mark.parametrize("block_ms", [10, 37])
def test_rows_go_on_bit_for_bit(block_ms):
    """All models, from anywhere: within a block of one, after a clipped sample, before its rise."""

    def source():
        loud = Tone(440.0, level_db=131.0, start=1.0, duration=0.05)
        source = SignalSource([*demo_sound(), loud], FS, 2.0, paced=False)
        source.description = replace(source.description, clips_at=DEVICE_CLIPS_AT)
        return source

    told = ran(source(), NAMES, block_ms=block_ms)
    assert (told.all_rows["fault"] != 0).any()
    place = np.random.default_rng(block_ms).integers(1, len(told.kept) - 5)
    again = ran(source(), NAMES, told.kept[place], block_ms=block_ms)
    assert_same_end(told, again)
    assert again.rows.summary() == told.rows.summary()
    # The tone is clipped, and may come after the place.
    assert [event.kind for event in again.events if event.kind != "clip"] == ["restored"]


@pytest.mark.quick
@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_file_goes_on_in_its_middle(tmp_path, run_in):
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, (3 * FS, 1)).astype(np.float32)
    soundfile.write(tmp_path / "noise.wav", sound, FS, subtype="FLOAT")

    def source():
        return FileSource(tmp_path / "noise.wav", paced=False)

    told = ran(source(), ["spl"], run_in=run_in)
    assert told.kept[0][0].sample < FS
    assert_same_end(told, ran(source(), ["spl"], told.kept[0], run_in=run_in))
    # The last one was taken before the models gave what was still in them.
    last = told.kept[-1]
    assert last[0].sample == 3 * FS
    again = source()
    assert ran(again, ["spl"], last).rows.summary() == told.rows.summary()
    assert (again.cut_off, again.note) == ("", "")


def test_a_file_that_is_shorter_than_it_was_is_refused(tmp_path):
    for name, length in (("long", 2 * FS), ("short", FS)):
        soundfile.write(tmp_path / f"{name}.wav", np.zeros((length, 2)), FS)
    told = ran(FileSource(tmp_path / "long.wav", paced=False), ["spl"])
    with pytest.raises(SourceError, match="has 48000 samples"):
        ran(FileSource(tmp_path / "short.wav", paced=False), ["spl"], told.kept[-1])


def test_a_live_sound_goes_on_after_a_gap():
    """The time between is one gap, by the clock, and what was averaged goes on."""
    noise = SignalSource([Noise(level_db=70.0)], FS, 2.0)
    blocks = list(noise.blocks())

    def pushed(saved, part):
        models = load_preset().with_names(["spl"]).models(FS, 2)
        table = Table(["spl"], models)
        source = PushSource(FS, 2, calibration=noise.calibration)
        state = None
        if saved is not None:
            table.rows.load_state_dict(saved[1])
            state = saved[0].state
        with Engine(source, models, [table], restore=state) as engine:
            for block in part:
                source.push(block)
                time.sleep(0.01)
            ended = time.monotonic()
            source.close()
            assert engine.wait(60)
        return table, engine, ended

    first, _, until = pushed(None, blocks[:100])
    time.sleep(1.2)
    saved = first.kept[-1]
    second, engine, _ = pushed(saved, blocks[100:])
    restored, gap = second.events
    assert (restored.kind, restored.sample) == ("restored", saved[0].sample) == ("restored", FS)
    assert (gap.kind, gap.sample, gap.text) == ("gap", FS, "it was interrupted")
    # From the last sample of the first to the first sample of the second.
    assert 1.2 * FS < gap.samples < (time.monotonic() - until) * FS
    assert engine.health.samples == 2 * FS
    assert engine.health.lost_samples == gap.samples
    rows = second.all_rows
    assert rows["time_s"][-1] == pytest.approx(2 + gap.samples / FS, abs=0.2)
    heard = second.rows.readings["spl"].counted_s()
    assert 1.2 < heard["measured_s"] <= 2  # what settles after the gap does not count
    told = ran(SignalSource([Noise(level_db=70.0)], FS, 2.0, paced=False), ["spl"])
    level = told.rows.summary()["laeq_db"]
    assert second.rows.summary()["laeq_db"] == pytest.approx(level, abs=0.1)


def test_a_program_that_asks_for_rows_gets_those_from_there_on():
    told = ran(SignalSource(demo_sound(), FS, 3.0, paced=False), ["spl"])
    saved, _ = told.kept[len(told.kept) // 2]
    models = load_preset().with_names(["spl"]).models(FS, 2)
    source = SignalSource(demo_sound(), FS, 3.0, paced=False)
    engine = Engine(source, models, restore=saved.state)
    assert engine.first_sample == saved.sample
    feed = engine.rows(100)
    with engine, feed:
        rows = list(feed)
    assert rows[0]["sample"][0] >= saved.sample


@pytest.fixture(scope="module")
def saved():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "SNAPSHOT_S", 0.02)
        told = ran(SignalSource(demo_sound(), FS, 1.0, paced=False), ["spl", "zwicker"])
    return told.kept[len(told.kept) // 2]


def going_on(state, source=None, models=None, **more):
    models = models or load_preset().with_names(["spl", "zwicker"]).models(FS, 2)
    return Engine(source or SignalSource(demo_sound(), FS), models, restore=state, **more)


def test_what_is_not_the_same_is_refused(saved):
    """In one sentence that names what was and what is; nothing has begun by then."""
    state = saved[0].state
    assert going_on(state).first_sample == saved[0].sample
    version = amt_stream.__version__
    with pytest.raises(Unfitting, match=f"version was '0.0', and is {version!r}"):
        going_on(state | {"version": "0.0"})
    preset = load_preset().with_names(["spl", "zwicker"])
    with pytest.raises(Unfitting, match="fs was 48000, and is 44100"):
        going_on(state, SignalSource(demo_sound(), 44100), preset.models(44100, 2))
    another = preset.models(FS, 2) | {"spl": SoundLevel(FS, z_high_pass=0.5)}
    with pytest.raises(Unfitting, match=r"model was SoundLevel.*z_high_pass=0.*z_high_pass=0.5"):
        going_on(state, models=another)
    with pytest.raises(Unfitting, match=r"calibration was .*130.*, and is .*94"):
        going_on(state, calibration=Calibration(94.0))
    with pytest.raises(Unfitting, match="blocks"):
        going_on(state, block_ms=50)
    with pytest.raises(Unfitting):
        going_on(state, models={"other": Moore2016(fs=FS)})
    with pytest.raises(SourceError, match="cannot resume"):
        going_on(state, StdinSource(stream=None))


def test_every_value_that_does_not_fit_is_refused(saved):
    state = saved[0].state
    for name, value in state.items():
        bad = value[None] if isinstance(value, np.ndarray) else [value]
        with pytest.raises(Unfitting):
            going_on(state | {name: bad})
        with pytest.raises(Unfitting):
            going_on({key: v for key, v in state.items() if key != name})
    for position in (-1, 2**70, saved[0].sample + 1):
        with pytest.raises(Unfitting):
            going_on(state | {"models/spl/position/sample": position})


def test_the_time_between_two_moments():
    """By the clock of the computer as long as it runs; then by that of the day, if it went on."""
    then, now = ClockReading(10.0), ClockReading()
    assert then.until(now) == pytest.approx(10.0, abs=1.0)
    then.utc += 7200  # the clock of the day was set back
    assert then.until(now) == pytest.approx(10.0, abs=1.0)
    then.boot = "another"
    assert then.until(now) is None
    assert then.samples_until(now, FS) == (72000, "it was interrupted for an unknown time")
    then.utc = now.utc - 3600
    assert then.samples_until(now, FS) == (3600 * FS, "it was interrupted")
