"""The engine with its threads: real files, pipes and scripted sources."""

import contextlib
import gc
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile

import amt_stream
import amt_stream.engine.health as health_module
import amt_stream.engine.sinks.event_bus as telling_module
from amt_stream.engine import (
    DeviceLost,
    Engine,
    EngineEnded,
    Event,
    Fault,
    FileSource,
    Noise,
    SignalSource,
    Source,
    SourceError,
    StdinSource,
    Tone,
)
from amt_stream.engine.health import Arrivals
from amt_stream.engine.options import EngineKeywords, EngineOptions
from amt_stream.meters.calibration import UNCALIBRATED, Calibration

BLOCK = 480


def run(source, model, collector, **options) -> Engine:
    with Engine(source, model, [collector], **options) as engine:
        assert engine.wait(60), engine.error
    return engine


def powers(x: np.ndarray, block: int = 48) -> np.ndarray:
    """What the power meter gives for `x` (time, channel): the last row hears the silence after."""
    pascal = x.astype(np.float64) * UNCALIBRATED.pascal_per_unit
    return np.append((pascal**2).sum(1).reshape(-1, block).mean(1), 0.0)


@pytest.fixture
def speech(tmp_path):
    """A second of changing sound as a file, 48 kHz stereo float."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((48000 + 123, 2)) * np.sin(np.arange(48123) / 5000)[:, None] * 0.05
    path = tmp_path / "speech.wav"
    soundfile.write(path, x.astype(np.float32), 48000, subtype="FLOAT")
    return path


def test_paced_and_unpaced_both_threads_and_a_pipe_give_the_same_numbers(
    speech, power_meter, collector
):
    numbers = []
    data = soundfile.read(speech, dtype="float32")[0].astype("<f4").tobytes()
    raw = speech.with_suffix(".raw")
    raw.write_bytes(data)
    with subprocess.Popen(["cat", str(raw)], stdout=subprocess.PIPE) as cat:
        sources = [
            (FileSource(speech, paced=False), "engine"),
            (FileSource(speech, paced=False), "callback"),
            (FileSource(speech), "engine"),
            (FileSource(speech), "callback"),
            (StdinSource("f32le", 48000, 2, cat.stdout), "engine"),
        ]
        for source, run_in in sources:
            collector.all.clear()
            engine = run(source, power_meter(delay=1584), collector, run_in=run_in)
            assert engine.error is None
            assert engine.health.lost_samples == 0
            numbers.append(
                [collector.column(n) for n in ("time_s", "sample", "stl", "ltl", "level_db")]
            )
    assert len(numbers[0][0]) == 1003
    for other in numbers[1:]:
        for a, b in zip(numbers[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("fs", [44100, 48000, 96000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_odd_bursts_at_any_rate_give_what_one_piece_gives(
    scripted, power_meter, collector, noise, fs, channels, run_in
):
    x = noise(fs // 2, channels)

    def script(deliver):
        sizes = iter(np.random.default_rng(2).integers(1, 1500, 10000).tolist())
        at = 0
        while at < len(x):
            size = next(sizes)
            deliver(x[at : at + size])
            at += size

    run(scripted(script, fs, channels, live=False), power_meter(fs), collector, run_in=run_in)
    pieces = collector.column("stl")
    collector.all.clear()
    run(scripted(lambda deliver: deliver(x), fs, channels, live=False), power_meter(fs), collector)
    np.testing.assert_array_equal(collector.column("stl"), pieces)
    power = powers(x, power_meter(fs).block_size) * (2 / channels)
    np.testing.assert_allclose(pieces, power, rtol=1e-5)
    assert not collector.all[0].calibrated


def test_a_stalled_sink_loses_its_own_rows_only(scripted, power_meter, collector, noise, until):
    """The sink hangs; measurement and history go on; what it missed is counted and marked."""
    resume, hanging = threading.Event(), threading.Event()
    x = noise(48000 * 2)

    def stalled(frames) -> None:
        hanging.set()
        resume.wait(20)
        collector(frames)

    def script(deliver):
        for at in range(0, len(x), BLOCK):
            if at == 48000:
                assert hanging.wait(20)
                until(lambda: engine.history.count == 1000)
                resume.set()
                until(lambda: len(collector.all) >= 20)
            if at == len(x) - BLOCK:  # so that the last rows tell what was missed before them
                until(lambda: engine.history.count == 1990)
                until(lambda: sum(map(len, collector.all)) + engine.health.sink_missed == 1990)
            deliver(x[at : at + BLOCK])
            time.sleep(0.0005)

    engine = Engine(scripted(script), power_meter(), [stalled], sink_slack_s=0.2, ring_s=3.0)
    with engine:
        assert engine.wait(60), engine.error
    assert engine.health.lost_samples == 0
    everything = engine.history.read()
    np.testing.assert_array_equal(everything.sample, np.arange(2001) * 48)
    sample, fault = collector.column("sample"), collector.column("fault")
    missed = sum(f.missed for f in collector.all)
    assert missed == engine.health.sink_missed == 2001 - len(sample) > 0
    jumps = np.flatnonzero(np.diff(sample) != 48) + 1
    assert len(jumps)
    assert (fault[jumps] & Fault.OVERLOAD).all()
    np.testing.assert_array_equal(everything.stl[sample // 48], collector.column("stl"))
    assert not (everything.fault & Fault.GAP).any()


def test_a_late_callback_is_counted_and_marked_and_shifts_nothing(
    scripted, power_meter, collector, noise
):
    x = noise(48000)

    def script(deliver):
        for at in range(0, len(x), BLOCK):
            if at == 24000:
                time.sleep(0.9)
            deliver(x[at : at + BLOCK])

    engine = run(scripted(script), power_meter(), collector, ring_s=2.0)
    health = engine.health
    assert health.late_callbacks > 0
    assert health.lost_samples == health.overruns == 0
    assert health.behind_s <= 0.9
    np.testing.assert_array_equal(collector.column("sample"), np.arange(1001) * 48)
    fault = collector.column("fault")
    assert fault[500] == Fault.OVERLOAD
    assert not (fault & ~Fault.OVERLOAD).any()
    power = powers(x)
    np.testing.assert_allclose(collector.column("stl"), power, rtol=1e-5)
    assert not collector.column("settling")[100:].any()


def test_samples_lost_to_a_stalled_engine_are_counted_marked_and_shift_nothing(
    scripted, power_meter, collector, noise, until
):
    """The model itself hangs, the ring overflows; every later row still stands at its place."""
    x = noise(48000)
    hang, hanging = threading.Event(), threading.Event()

    class Hanging(type(power_meter())):
        def step(self, x, state):
            if armed.is_set():
                hanging.set()
                hang.wait(20)
            return super().step(x, state)

    armed = threading.Event()

    def script(deliver):
        until(lambda: engine._runner._deliver is not None)  # what comes before that is all kept
        for at in range(0, len(x), BLOCK):
            if at == 9600:
                armed.set()
            deliver(x[at : at + BLOCK])
            if at == 9600:
                assert hanging.wait(20)
            if at == 28800:
                armed.clear()
                hang.set()
                until(lambda: engine.health.queue_s == 0)
            if at < 9600 or at > 28800:
                until(lambda: engine.health.queue_s < 0.05)

    engine = Engine(scripted(script), Hanging(48), [collector], ring_s=0.2)
    with engine:
        assert engine.wait(60), engine.error
    health = engine.health
    assert health.overruns > 0
    assert health.lost_samples > 0
    row, fault = collector.column("sample") // 48, collector.column("fault")
    gaps = [gap for frames in collector.all for gap in frames.gaps]
    assert sum(stop - start for start, stop in gaps) == health.lost_samples
    missing = np.concatenate([np.arange(start // 48, stop // 48) for start, stop in gaps])
    np.testing.assert_array_equal(row, np.setdiff1d(np.arange(1001), missing))
    lost = fault & Fault.GAP > 0
    np.testing.assert_allclose(collector.column("stl")[~lost], powers(x)[row[~lost]], rtol=1e-5)
    assert (fault[lost] & Fault.OVERLOAD).all()
    assert lost.sum() == len(gaps)
    end = np.flatnonzero(lost)[-1]
    assert collector.column("settling")[end : end + 49].all()
    assert not collector.column("settling")[end + 52 :].any()


@pytest.mark.parametrize("piece", [480, 24000, 240_000])
@pytest.mark.parametrize("delay", [0, 1584])
def test_loss_at_the_end_of_a_live_source_is_told(
    scripted, power_meter, collector, noise, piece, delay, until
):
    x = noise(240_000)

    def script(deliver):
        # Of what comes before the model is warm nothing is lost.
        deliver(x[:4800])
        until(lambda: collector.all)
        time.sleep(0.1)
        for at in range(4800, len(x), piece):
            deliver(x[at : at + piece])

    engine = run(scripted(script), power_meter(delay=delay), collector)
    health = engine.health
    assert health.lost_samples > 0
    assert health.samples + health.lost_samples == 240_000
    event = engine.events[-1]
    assert (event.kind, event.sample + event.samples) == ("gap", 240_000)
    assert collector.column("sample")[-1] == (event.sample - 1) // 48 * 48


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_samples_that_a_source_lost_before_its_end_are_told(
    scripted, power_meter, collector, noise, run_in
):
    def script(deliver):
        deliver(noise(4800))
        deliver(noise(0), lost=480)
        deliver(None, lost=480)

    engine = run(scripted(script), power_meter(), collector, run_in=run_in)
    assert (engine.health.samples, engine.health.lost_samples) == (4800, 960)
    assert {event.kind for event in engine.events} == {"gap"}
    assert engine.events[0].sample == 4800
    assert sum(event.samples for event in engine.events) == 960
    assert collector.column("sample")[-1] == 4752


def test_bursts_are_not_late_and_what_comes_in_its_time_after_one_neither(monkeypatch):
    now = 0.0
    monkeypatch.setattr(health_module, "since_boot_s", lambda: now)
    arrivals, late = Arrivals(48000), []
    for burst_s in (5.0, 0.4, 0.4, *[0.01] * 300):
        for _ in range(round(burst_s * 100)):
            late.append(arrivals.note(480))
        now = len(late) / 100  # the next one comes when all this has sounded
    assert not any(late)
    now += 0.11
    assert [arrivals.note(480) for _ in range(3)] == [True, False, False]
    assert arrivals.late == 1


@pytest.mark.parametrize("held_s", [5, 60])
def test_sound_that_was_held_up_and_is_made_good_was_heard_in_its_time(monkeypatch, held_s):
    now = 0.0
    monkeypatch.setattr(health_module, "since_boot_s", lambda: now)
    arrivals, heard = Arrivals(48000), []
    for block in range(2000 + 100 * held_s):
        now = max((block + 1) / 100, now + 0.001)
        if block == 450:
            now += held_s
        arrivals.note(480)
        heard.append(arrivals.arrived_at(0.0))
    assert now == pytest.approx(arrivals.samples / 48000)  # all was made good
    assert np.ptp(heard) < 0.02


def test_a_callback_that_overruns_its_block_is_counted_and_marked(
    scripted, power_meter, collector, noise
):
    class Slow(type(power_meter())):
        def step(self, x, state):
            if x.abs().max() > 1.0:
                time.sleep(0.05)
            return super().step(x, state)

    x = noise(48000, rms=0.001)
    x[9700] = 0.9
    source = scripted(
        lambda deliver: [deliver(x[at : at + BLOCK]) for at in range(0, len(x), BLOCK)]
    )
    engine = run(source, Slow(48), collector, run_in="callback")
    health = engine.health
    assert health.overruns >= 1
    assert health.block_share_max > 5.0
    assert 0 < health.block_share_median <= health.block_share_p99 <= health.block_share_max
    assert collector.column("fault")[210] & Fault.OVERLOAD
    np.testing.assert_array_equal(collector.column("sample"), np.arange(1001) * 48)


def test_a_gap_is_an_event_for_sinks_that_hear_them(power_meter, collector, scripted):
    def script(deliver) -> None:
        block = np.full((480, 2), 0.1, np.float32)
        for _ in range(5):
            deliver(block)
        deliver(block, 96)
        deliver(None, 48)

    class Hearing:
        def __init__(self) -> None:
            self.events: list[Event] = []

        def __call__(self, frames) -> None:
            pass

        def event(self, event: Event) -> None:
            self.events.append(event)

    hearing = Hearing()
    engine = Engine(scripted(script), power_meter(), [hearing, collector])
    with engine:
        assert engine.wait(60)
    told = [(e.kind, e.sample, e.time_s, e.samples, e.text) for e in hearing.events]
    assert told == [
        ("gap", 2400, 0.05, 96, "script lost it"),
        ("gap", 2976, 0.062, 48, "script lost it"),
    ]
    assert list(engine.events) == hearing.events
    assert abs(hearing.events[0].utc - time.time()) < 60


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_sound_is_heard_as_it_was_let_in(power_meter, scripted, noise, run_in, until):
    """Every sample with its place, losses and marks; then the end, in the same thread."""
    x = noise(4800)
    x[700] = np.nan

    class Recording:
        note = ""

        def __init__(self) -> None:
            self.chunks, self.ends, self.threads = [], [], set()

        def __call__(self, frames) -> None:
            self.threads.add(threading.get_ident())

        def sound(self, chunk) -> None:
            self.threads.add(threading.get_ident())
            self.chunks.append(chunk)
            self.note = "the disk is full"

        def ended(self, end_s) -> None:
            self.threads.add(threading.get_ident())
            self.ends.append(end_s)

    def script(deliver) -> None:
        deliver(x[:1000])
        until(lambda: bool(recording.note))
        x[:1000] = 0.0  # a source may overwrite what it delivered
        deliver(x[1000:1500], 96, Fault.STALL)
        deliver(x[1500:])
        deliver(None, 480)

    expected = x.copy()
    recording = Recording()
    engine = Engine(scripted(script), power_meter(), [recording], run_in=run_in)
    with engine:
        assert engine.wait(60)
    chunks = recording.chunks
    heard = np.concatenate([chunk.samples for chunk in chunks])
    np.testing.assert_array_equal(heard, expected)
    assert not any(chunk.samples.flags.writeable for chunk in chunks)
    position = 0
    for chunk in chunks:
        position += chunk.lost
        assert (chunk.sample, chunk.missed) == (position, 0)
        position += len(chunk)
    assert [(chunk.sample, chunk.lost) for chunk in chunks if chunk.lost] == [
        (1096, 96),
        (5376, 480),
    ]
    stalled = next(chunk for chunk in chunks if chunk.flags & Fault.STALL)
    assert stalled.sample == 1096
    assert recording.ends == [5376 / 48000]
    assert len(recording.threads) == 1
    assert engine.health.note == "the disk is full"
    told = [event.text for event in engine.events if event.kind == "sink"]
    assert told == ["the disk is full"]


def test_what_a_program_changes_is_an_event(power_meter, scripted):
    def script(deliver) -> None:
        block = np.full((480, 2), 0.1, np.float32)
        deliver(block)
        for change in (
            engine.reset_filters,
            partial(engine.calibrate, Calibration(94.0)),
            partial(engine.swap, power_meter()),
        ):
            change()
            deliver(block)
        deliver(None)

    engine = Engine(scripted(script, live=False), power_meter(), run_in="callback")
    with engine:
        assert engine.wait(60)
    assert [(e.kind, e.sample) for e in engine.events] == [
        ("filters_reset", 480),
        ("calibrated", 960),
        ("swapped", 1440),
    ]
    assert "94" in engine.events[1].text
    assert "PowerMeter" in engine.events[2].text


def test_a_sink_that_fails_is_counted_and_finally_dropped(speech, power_meter, collector, caplog):
    calls = []

    def failing(frames) -> None:
        calls.append(len(frames))
        raise RuntimeError("disk full")

    engine = Engine(FileSource(speech, paced=False), power_meter(), [failing, collector])
    with engine:
        assert engine.wait(60)
    assert len(collector.column("stl")) == 1003
    assert engine.health.sink_errors == len(calls) == 5
    assert "failing" in engine.health.note
    assert "disk full" in caplog.text


def test_a_sink_that_exits_is_dropped_and_the_measurement_goes_on(
    speech, power_meter, collector, caplog
):
    calls = []

    def leaving(frames) -> None:
        calls.append(frames)
        sys.exit("enough")

    sinks = [leaving, collector]
    with Engine(FileSource(speech, paced=False), power_meter(), sinks) as engine:
        assert engine.wait(60)
    assert len(collector.column("stl")) == 1003
    assert (engine.health.sink_errors, len(calls)) == (1, 1)
    assert "leaving" in engine.health.note
    assert "SystemExit: enough" in caplog.text


def test_a_sink_may_change_its_frames_and_no_other_hears_of_it(speech, power_meter, collector):
    def spoiling(frames) -> None:
        frames.values.stl[:] = -1.0
        frames.values.ears[:] = -1.0
        frames.fault[:] = Fault.CLIP
        frames.time_s[:] = -1.0

    sinks = [spoiling, collector, spoiling]
    with Engine(FileSource(speech, paced=False), power_meter(), sinks) as engine:
        assert engine.wait(60)
    assert engine.health.sink_errors == 0
    for name in ("stl", "ears", "fault", "time_s"):
        assert (collector.column(name) >= 0).all()
    assert not collector.column("fault").any()
    assert (engine.history.read().stl >= 0).all()
    assert (engine.history.latest.values.ears >= 0).all()


def test_a_sink_that_only_reads_is_handed_the_frames_themselves(speech, power_meter):
    class Reading(list):
        only_reads = True
        __call__ = list.append

    reading, other = Reading(), []
    sinks = [reading, other.append]
    with Engine(FileSource(speech, paced=False), power_meter(), sinks) as engine:
        assert engine.wait(60)
    assert reading[-1].values.stl is engine.history.latest.values.stl
    assert other[-1].values.stl is not engine.history.latest.values.stl
    np.testing.assert_array_equal(other[-1].values.stl, reading[-1].values.stl)


def test_an_exit_in_the_callback_ends_the_engine_and_says_why(power_meter):
    class Leaving(type(power_meter())):
        armed = False

        def step(self, x, state):
            if self.armed:
                raise SystemExit("enough")
            return super().step(x, state)

    model = Leaving(48)
    with Engine(SignalSource(), model, run_in="callback") as engine:
        model.armed = True
        assert not engine.wait(60)
    assert isinstance(engine.error, SystemExit)
    assert engine.health.device_state == "stopped"


@pytest.mark.parametrize("run_in", ["engine", "callback"])
@pytest.mark.parametrize(
    ("block", "lost", "error", "said"),
    [
        (np.zeros((480, 2)), -1, ValueError, "lost is -1: give 0 or more samples"),
        (np.zeros((480, 2)), 0.5, TypeError, "lost is 0.5: give a whole number of samples"),
        (None, -2, ValueError, "lost is -2: give 0 or more samples"),
        (np.zeros((480, 3)), 0, ValueError, r"shape \(480, 3\): give \(time, channel\) with 2 ch"),
        (np.zeros(480), 0, ValueError, r"shape \(480,\): give \(time, channel\) with 2 channels"),
        (np.zeros((480, 2), np.uint8), 0, TypeError, "holds uint8: give fractions of full scale"),
        ([0.0, 0.0], 0, TypeError, "is a list: give a numpy array"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_block_that_is_no_sound_ends_the_engine_and_says_why(
    scripted, power_meter, block, lost, error, said, run_in
):
    source = scripted(lambda deliver: deliver(block, lost))
    with Engine(source, power_meter(), run_in=run_in) as engine:
        assert not engine.wait(60)
    assert isinstance(engine.error, error)
    with pytest.raises(error, match=said):
        raise engine.error


@pytest.mark.parametrize("kind", [np.int16, np.int32, ">i2", np.float64])
def test_pcm_of_a_source_is_taken_by_its_full_scale(scripted, power_meter, collector, noise, kind):
    x = noise(4800, rms=0.1)
    kind = np.dtype(kind)
    full_scale = 2.0 ** (8 * kind.itemsize - 1) if kind.kind == "i" else 1.0
    block = (x * full_scale).astype(kind)
    run(scripted(lambda deliver: deliver(block), live=False), power_meter(), collector)
    expected = powers((block / full_scale).astype(np.float32))
    np.testing.assert_allclose(collector.column("stl"), expected, rtol=1e-6)


def test_an_engine_that_has_ended_and_that_nobody_refers_to_is_gone(power_meter):
    engines = [Engine(SignalSource(duration=0.1, paced=False), power_meter()) for _ in range(3)]
    engines[1].start().wait(20)
    engines[2].start().stop()
    left = [weakref.ref(engine) for engine in engines]
    del engines
    give_up = time.monotonic() + 20
    while any(one() for one in left) and time.monotonic() < give_up:
        gc.collect()
        time.sleep(0.01)
    assert [one() for one in left] == [None] * 3


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_model_that_fails_ends_the_engine_and_says_why(speech, power_meter, run_in):
    class Broken(type(power_meter())):
        samples = 0

        def step(self, x, state):
            self.samples += x.shape[-1]
            if self.samples > 9600:
                raise RuntimeError("the model broke")
            return super().step(x, state)

    with Engine(FileSource(speech, paced=False), Broken(48), run_in=run_in) as engine:
        assert not engine.wait(60)
        assert str(engine.error) == "the model broke"
        assert engine.health.device_state == "stopped"
        assert engine.health.error == "the model broke"


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_commands_in_a_running_stream(scripted, power_meter, collector, noise, run_in, until):
    x = noise(48000)
    calibration = Calibration(106.0206, source="test")

    def script(deliver):
        deliver(x[:9600])
        until(lambda: engine.history.count == 200)
        engine.calibrate(calibration)
        deliver(x[9600:19200])
        until(lambda: engine.history.count == 400)
        engine.reset_filters()
        engine.swap(power_meter(delay=480))
        with pytest.raises(ValueError, match="built for 32000 Hz"):
            engine.swap(wrong)
        deliver(x[19200:])

    wrong = power_meter()
    wrong.fs = 32000
    engine = Engine(scripted(script), power_meter(), [collector], run_in=run_in)
    with engine:
        assert engine.wait(60), engine.error
    power = powers(x)
    power[200:] *= 4.0
    sample = collector.column("sample")
    assert (np.diff(sample) > 0).all()
    np.testing.assert_allclose(collector.column("stl"), power[sample // 48], rtol=1e-4)
    assert [f.calibrated for f in collector.all[:20]] == [False] * 20
    assert all(f.calibrated for f in collector.all[20:])


def test_history_follows_a_model_of_another_frame_rate_and_loses_no_row(
    scripted, power_meter, collector, noise, until
):
    x = noise(48000)

    def script(deliver):
        deliver(x[:9600])
        until(lambda: engine.history.count == 200)
        engine.swap(slow)
        deliver(x[9600:])

    slow = type(power_meter())(480)
    engine = Engine(scripted(script), power_meter(), [collector], history_s=0.5)
    with engine:
        assert engine.wait(60), engine.error
    assert engine.history.count == 200 + 81
    sample = collector.column("sample")
    np.testing.assert_array_equal(engine.history.since(0).sample, sample[-50:])
    np.testing.assert_array_equal(engine.history.since(270).sample, sample[270:])


def test_stopping_in_the_middle_joins_everything(power_meter, collector):
    before = threading.active_count()
    with Engine(SignalSource([Noise(level_db=60.0)]), power_meter(), [collector]) as engine:
        assert not engine.wait(0.3)
        assert engine.health.device_state == engine.device_state == "running"
    assert threading.active_count() == before
    assert engine.health.device_state == engine.device_state == "stopped"
    assert not engine.wait(0)
    assert collector.all[0].calibrated
    with pytest.raises(RuntimeError, match="runs once"):
        engine.start()


@pytest.mark.parametrize("paced", [True, False])
def test_a_sink_that_never_returns_is_left_behind(power_meter, collector, until, caplog, paced):
    release, hanging = threading.Event(), threading.Event()

    def stuck(frames) -> None:
        hanging.set()
        release.wait(20)

    source = SignalSource([Noise(level_db=60.0)], paced=paced)
    engine = Engine(source, power_meter(), [stuck, collector], sink_slack_s=0.1)
    with engine:
        assert hanging.wait(20)
        until(lambda: len(collector.all))
    left = [t for t in threading.enumerate() if "stuck" in t.name]
    assert [t.daemon for t in left] == [True]
    assert "engine" not in [t.name for t in threading.enumerate()]
    assert "stuck has not returned" in caplog.text
    assert "Collector" not in caplog.text
    release.set()
    left[0].join(20)


def test_a_sink_may_stop_the_engine(power_meter, until, caplog):
    def enough(frames) -> None:
        engine.stop()

    engine = Engine(SignalSource(), power_meter(), [enough])
    engine.start()
    until(lambda: engine.health.device_state == "stopped")
    engine.stop()
    assert not caplog.text


def test_control_c_ends_an_engine_cleanly(forks):
    program = (
        "from amt_stream.dsp.compose import Delay\n"
        "from amt_stream.engine import Engine, demo_source\n"
        "try:\n"
        "    with Engine(demo_source(), Delay(480)) as engine:\n"
        "        print('running', flush=True)\n"
        "        engine.wait()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with forks.begin(program, options=["code"]) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(2)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(20) == 0


def test_a_source_that_cannot_start_raises_at_once(power_meter, scripted):
    source = scripted(lambda deliver: None)

    def refuse(deliver):
        raise SourceError("no such thing")

    source.start = refuse
    source.stop = lambda: None
    before = threading.active_count()
    with pytest.raises(SourceError, match="no such thing"):
        Engine(source, power_meter(), [print]).start()
    assert threading.active_count() == before


def test_a_source_that_goes_silent_for_too_long_is_lost(scripted, power_meter, noise):
    stop = threading.Event()

    def script(deliver):
        deliver(noise(4800))
        stop.wait(20)

    source = scripted(script)
    source.stall_s = 0.5
    inner_stop = source.stop
    source.stop = lambda: (stop.set(), inner_stop())
    with Engine(source, power_meter()) as engine:
        assert not engine.wait(60)
        assert isinstance(engine.error, DeviceLost)
        assert engine.health.device_state == "lost"


def test_an_error_while_reading_reaches_the_engine(power_meter, collector):
    class Failing(StdinSource):
        def blocks(self):
            yield from (np.zeros((480, 2), np.float32) for _ in range(10))
            raise OSError("the disk is gone")

    with Engine(Failing(), power_meter(), [collector]) as engine:
        assert not engine.wait(60)
        assert str(engine.error) == "the disk is gone"
    assert len(collector.column("stl")) == 101


def test_more_than_two_channels_must_be_chosen(scripted, power_meter):
    source = scripted(lambda deliver: None, channels=6)
    with pytest.raises(SourceError, match="script has 6 channels: choose"):
        Engine(source, power_meter())
    Engine(source, power_meter(), channels=(5, 6))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"history_s": 0}, ValueError, "history_s is 0: give seconds, more than 0"),
        ({"ring_s": -1.0}, ValueError, "ring_s is -1.0: give seconds"),
        ({"sink_slack_s": float("nan")}, ValueError, "sink_slack_s is nan: give seconds"),
        ({"block_ms": 0.1}, ValueError, "block_ms is 0.1: give 1 to 1000 ms"),
        ({"calibration": []}, ValueError, "0 calibrations given: give one, or one for each"),
        ({"calibration": 94.0}, TypeError, "calibration is 94.0: give a Calibration"),
        ({"calibration": (UNCALIBRATED, 94.0)}, TypeError, "calibration is 94.0: give a Cal"),
        ({"channels": 1}, TypeError, r"channels is 1: give numbers in a sequence, as \(1,\)"),
        ({"channels": "12"}, TypeError, "channels is '12': give numbers in a sequence"),
        ({"run_in": "process"}, ValueError, "run_in is 'process'"),
        ({"sinks": print}, TypeError, r"sinks is <built-in function print>: give a sequence, such"),
        ({"sinks": [3]}, TypeError, "the sink 3 cannot be called: give a function of Frames, or"),
    ],
)
def test_what_cannot_be_is_refused_at_once(power_meter, options, error, said):
    with pytest.raises(error, match=said):
        Engine(SignalSource(), power_meter(), **options)


def test_what_is_no_model_is_refused_at_once():
    with pytest.raises(TypeError, match=r"model is 'spl': give a Stage, such as Moore2016\(fs=480"):
        Engine(SignalSource(), "spl")


def test_what_is_no_source_is_refused_at_once(power_meter):
    with pytest.raises(TypeError, match=r"source is 'a\.wav': give a Source, such as FileSource"):
        Engine("a.wav", power_meter())

    class Mute(Source):
        name = "mute"

    with pytest.raises(TypeError, match="the source Mute says no fs and no channels: a Source se"):
        Engine(Mute(), power_meter())
    Mute.fs, Mute.channels = 48000.0, 1
    with pytest.raises(ValueError, match=r"fs of the source Mute is 48000\.0: give a whole number"):
        Engine(Mute(), power_meter())
    Mute.fs, Mute.channels = 48000, 0
    with pytest.raises(ValueError, match="channels of the source Mute is 0: give a whole number"):
        Engine(Mute(), power_meter())


def test_a_command_that_cannot_be_carried_out_is_refused_at_once(power_meter):
    engine = Engine(SignalSource(), power_meter())
    with pytest.raises(TypeError, match=r"calibration is 94\.0: give a Calibration"):
        engine.calibrate(94.0)
    with pytest.raises(
        TypeError, match=r"model is 'no': give a Stage, such as Moore2016\(fs=48000"
    ):
        engine.swap("no")
    with pytest.raises(ValueError, match="on the device meta, and the engine on cpu: give"):
        engine.swap(power_meter().to("meta"))


def memory_of_the_package() -> int:
    """Bytes held now that were allocated under a call from amt_stream."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    package = tracemalloc.Filter(True, str(Path(amt_stream.__file__).parent / "*"), all_frames=True)
    return sum(trace.size for trace in snapshot.filter_traces([package]).traces)


def test_memory_does_not_grow(scripted, power_meter, until, monkeypatch):
    """Blocks with marks of every kind. A number kept per block would be 32 bytes each.

    So few events are kept here that the warm-up fills their room. Of 480 samples that are
    missing none has a frame.

    What the interpreter keeps besides differs by some 10 kB from run to run.
    """
    monkeypatch.setattr(telling_module, "EVENTS", 10)
    warm, blocks = 200, 600
    block = np.zeros((480, 2), np.float32)
    block[5] = np.nan
    block[50] = 1.0
    rows = 0
    sizes = []

    def count(frames) -> None:
        nonlocal rows
        rows += len(frames)

    def at_least(expected: int) -> bool:
        return rows >= expected

    def script(deliver):
        expected = 0
        for i in range(1, warm + blocks + 1):
            lost = 480 if i % 10 == 0 else 0
            deliver(block, lost=lost)
            expected += 480 // 48
            if i in (warm, warm + blocks):
                until(partial(at_least, expected), 60)  # traced, on a busy machine
                sizes.append(memory_of_the_package())

    tracemalloc.start(8)
    try:
        engine = Engine(
            scripted(script, live=False),
            power_meter(),
            [count],
            history_s=2.0,
            sink_slack_s=0.1,
        )
        with engine:
            assert engine.wait(120), engine.error
    finally:
        tracemalloc.stop()
    assert engine.error is None
    assert sizes[1] - sizes[0] < 24 * blocks


def test_digital_silence_is_told(power_meter, collector):
    with Engine(SignalSource(duration=1.5, paced=False), power_meter(), [collector]) as engine:
        assert engine.wait(60)
    assert engine.health.silent
    assert (collector.column("level_db") == -100.0).all()


def test_utc_and_clock_of_a_paced_source(power_meter, collector):
    began = time.time()
    source = SignalSource([Tone(500.0, level_db=60.0)], duration=0.5)
    engine = run(source, power_meter(), collector)
    utc = collector.column("utc")
    assert (np.diff(utc) > 0).all()
    assert began - 0.1 < utc[0] < time.time()
    assert engine.health.clock_ppm is None


COMMANDS = {
    "mark": lambda engine: engine.mark("door"),
    "tell_event": lambda engine: engine.tell_event(Event("mark", 0, 0.0, 0.0, 0, "door")),
    "reset_filters": lambda engine: engine.reset_filters(),
    "reset_readings": lambda engine: engine.reset_readings(),
    "pause": lambda engine: engine.pause(),
    "unpause": lambda engine: engine.unpause(),
    "calibrate": lambda engine: engine.calibrate(gain_db=3.0),
    "swap": lambda engine: engine.swap(engine.model),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("ends", ["by itself", "stopped"])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_commanded_after_the_end_is_refused_and_no_event(power_meter, name, ends):
    duration = 0.1 if ends == "by itself" else None
    with Engine(SignalSource(duration=duration, paced=False), power_meter()) as engine:
        engine.wait(0.1 if duration is None else None)
    with pytest.raises(EngineEnded, match=r"has ended: .* comes too late"):
        COMMANDS[name](engine)
    assert not engine.events


def test_no_mark_vanishes_at_the_end(power_meter):
    """Somebody marks all the time: each is told to the sinks, or refused."""
    told = []

    class Sink:
        def __call__(self, frames):
            pass

        def event(self, event):
            told.append(event.text)

    kept = []
    for run in range(20):
        source = SignalSource(duration=0.05, paced=False)
        with Engine(source, power_meter(), [Sink()]) as engine:
            with contextlib.suppress(EngineEnded):
                for number in range(10_000):
                    engine.mark(f"{run} {number}")
                    kept.append(f"{run} {number}")
                    time.sleep(1e-4)  # else more than a sink has room for
            engine.wait()
    assert sorted(told) == sorted(kept)


def test_arguments_of_an_engine_are_the_fields_of_its_options():
    assert EngineKeywords.__annotations__.keys() == {one.name for one in fields(EngineOptions)}
