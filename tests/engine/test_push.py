"""Sound that a program hands in, from its own threads."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch

from amt_stream.dsp.models import Moore2016
from amt_stream.engine import Engine, FileSource, PushSource, SourceError
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault

FS = 48000
BLOCK = 480


def pieces(x: np.ndarray, seed: int = 0, most: int = 3000) -> list[np.ndarray]:
    """`x` in blocks of random lengths, empty ones among them."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, len(x), 2 * len(x) // most))
    return np.split(x, edges)


def push_all(source: PushSource, blocks, threads: int = 2) -> None:
    """Push the blocks one after another, each from whichever thread is first to ask for it."""
    turn, waiting = threading.Lock(), iter(blocks)

    def work() -> None:
        while True:
            with turn:
                block = next(waiting, None)
                if block is None:
                    return
                source.push(block)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def measured(source, model, sink, push=None, **options) -> Engine:
    with Engine(source, model, [sink], **options) as engine:
        if push is not None:
            with source:
                push()
        assert engine.wait(60), engine.error
    return engine


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_the_thread_that_pushes_stays_as_it_was(power_meter, collector, noise, run_in):
    threads = torch.get_num_threads()
    source = PushSource(FS, 2)
    measured(source, power_meter(), collector, lambda: source.push(noise(FS)), run_in=run_in)
    assert torch.get_num_threads() == threads
    assert np.float64(1e-310) * 1.0 > 0


@pytest.mark.parametrize("run_in", ["engine", "callback"])
@pytest.mark.parametrize("live", [True, False])
def test_random_blocks_from_two_threads_give_what_the_file_gives(
    tmp_path, collector, noise, live, run_in
):
    x = noise(FS, rms=0.05)
    path = tmp_path / "sound.wav"
    soundfile.write(path, x, FS, subtype="FLOAT")
    calibration = Calibration(100.0)
    model = Moore2016(fs=FS, accuracy="coarse")
    file = FileSource(path, paced=False)
    file.description = replace(file.description, has_offset=False)  # as of what a program pushes
    measured(file, model, collector, calibration=calibration)
    expected = [collector.column(name) for name in ("time_s", "stl", "ltl")]
    collector.all.clear()
    source = PushSource(FS, 2, live=live, calibration=calibration)
    engine = measured(
        source, model, collector, lambda: push_all(source, pieces(x)), run_in=run_in, ring_s=2.0
    )
    for name, values in zip(("time_s", "stl", "ltl"), expected, strict=True):
        np.testing.assert_allclose(collector.column(name), values, rtol=1e-6)
    assert (engine.health.samples, engine.health.lost_samples) == (FS, 0)
    assert not (collector.column("fault") & ~np.uint8(Fault.OVERLOAD)).any()
    assert all(frames.calibrated for frames in collector.all)


def test_late_and_lost_blocks_are_marked_and_shift_nothing(power_meter, collector, noise):
    x = noise(FS)
    source = PushSource(FS, 2)

    def push() -> None:
        for at in range(0, FS, BLOCK):
            if at == 24000:
                time.sleep(0.7)
            source.push(x[at : at + BLOCK], lost=BLOCK if at == 36000 else 0)

    engine = measured(source, power_meter(), collector, push, ring_s=2.0)
    assert engine.health.late_callbacks == 1
    assert (engine.health.samples, engine.health.lost_samples) == (FS, BLOCK)
    row, fault = collector.column("sample") // 48, collector.column("fault")
    np.testing.assert_array_equal(row, [*range(750), *range(760, 1011)])
    assert row[fault > 0].tolist() == [500, 760]
    assert fault[fault > 0].tolist() == [Fault.OVERLOAD, Fault.GAP]


@pytest.mark.parametrize("closes", [True, False])
def test_what_does_not_fit_is_counted_whoever_pushes(power_meter, collector, noise, closes):
    x = noise(240_000)
    source = PushSource(FS, 2)
    blocks = pieces(x, seed=1)

    def push() -> None:
        push_all(source, blocks, threads=3)
        source.push(np.zeros((0, 2)), lost=77)
        if closes:
            source.close()

    engine = measured(source, power_meter(), collector, push, ring_s=0.25)
    health = engine.health
    assert health.lost_samples > 77
    assert health.samples + health.lost_samples == 240_077
    last = engine.events[-1]
    assert (last.kind, last.sample + last.samples) == ("gap", 240_077)
    assert sum(event.samples for event in engine.events) == health.lost_samples


@pytest.mark.parametrize(
    ("block", "channels"),
    [
        (np.array([0.5, -0.25]), 1),
        (np.array([[0.5], [-0.25]]), 1),
        (np.array([16384, -8192], np.int16), 1),
        (np.array([2**30, -(2**29)], np.int32), 1),
        ([[0.5, 0.5], [-0.25, -0.25]], 2),
        (torch.tensor([[0.5, 0.5], [-0.25, -0.25]]), 2),
    ],
)
def test_blocks_come_in_many_forms(collector, block, channels):
    given = []
    source = PushSource(FS, channels)
    source.start(lambda block, lost=0: given.append(block))
    source.push(block)
    np.testing.assert_array_equal(given[0], np.array([[0.5], [-0.25]]) * np.ones(channels))
    assert given[0].dtype == np.float32


@pytest.mark.parametrize(
    ("block", "lost", "error", "said"),
    [
        (np.zeros((2, 480)), 0, ValueError, r"shape \(2, 480\): give \(time, channel\) with 2 ch"),
        (np.zeros(480), 0, ValueError, r"shape \(480,\): give \(time, channel\) with 2 channels"),
        (np.zeros((4, 2), np.uint8), 0, TypeError, "holds uint8: give fractions of full scale"),
        (np.zeros((4, 2), complex), 0, TypeError, "holds complex128: give fractions of full"),
        ([[0, 1]], 0, TypeError, "holds int64: give fractions of full scale"),
        (np.zeros((4, 2)), -3, ValueError, "lost is -3: give 0 or more samples"),
        (np.zeros((4, 2)), 1.5, TypeError, r"lost is 1\.5: give a whole number"),
    ],
)
def test_what_is_no_block_is_refused_and_the_engine_goes_on(
    power_meter, collector, block, lost, error, said
):
    source = PushSource(FS, 2)

    def push() -> None:
        with pytest.raises(error, match=said):
            source.push(block, lost)
        source.push(np.zeros((480, 2)))

    assert measured(source, power_meter(), collector, push).health.samples == 480


def test_a_push_out_of_time_is_refused(power_meter):
    block = np.zeros((480, 2), np.float32)
    source = PushSource(FS, 2, "socket")
    with pytest.raises(SourceError, match="socket is not started: start its Engine before pushing"):
        source.push(block)
    with Engine(source, power_meter()) as engine:
        source.push(block)
        source.close()
        with pytest.raises(SourceError, match="socket is closed: make a new PushSource"):
            source.push(block)
        source.close()
        assert engine.wait(60)
    stopped = PushSource(FS, 2, "socket")
    with Engine(stopped, power_meter()):
        pass
    with pytest.raises(SourceError, match="socket takes no more sound: its engine has ended"):
        stopped.push(block)
    with pytest.raises(RuntimeError, match="socket was started before: make a new one"):
        Engine(stopped, power_meter()).start()


def test_one_that_was_closed_before_it_started_ends_at_once(power_meter):
    source = PushSource(FS, 2)
    source.close()
    with Engine(source, power_meter()) as engine:
        assert engine.wait(60)
    assert engine.health.frames == 0


@pytest.mark.parametrize(("fs", "channels"), [(48000.0, 2), (48000, 0)])
def test_what_cannot_be_a_source_is_refused(fs, channels):
    with pytest.raises(ValueError, match=r"of the source PushSource is .*: give a whole number"):
        PushSource(fs, channels)


def test_one_that_waits_for_room_can_be_stopped(power_meter, until):
    """The model hangs, the ring is full, push waits; the engine is stopped by another thread."""
    release = threading.Event()

    class Hanging(type(power_meter())):
        armed = False

        def step(self, x, state):
            if self.armed:
                release.wait(20)
            return super().step(x, state)

    model = Hanging(48)
    source = PushSource(FS, 2, live=False)
    ended = []

    def feed() -> None:
        try:
            while True:
                source.push(np.zeros((BLOCK, 2), np.float32))
        except SourceError as refusal:
            ended.append(str(refusal))

    engine = Engine(source, model, ring_s=0.1).start()
    model.armed = True
    feeder = threading.Thread(target=feed)
    feeder.start()
    until(lambda: engine.health.queue_s > 0.09)
    stopper = threading.Thread(target=engine.stop)
    stopper.start()
    release.set()
    stopper.join(20)
    feeder.join(20)
    assert ended == ["pushed sound takes no more sound: its engine has ended"]


def test_samples_that_are_lost_with_an_empty_block_count_in_a_source_that_waits(
    power_meter, collector, noise
):
    source = PushSource(FS, 2, live=False)

    def push() -> None:
        source.push(noise(FS))
        source.push(np.zeros((0, 2)), lost=BLOCK)
        source.push(noise(FS))

    engine = measured(source, power_meter(), collector, push)
    assert (engine.health.samples, engine.health.lost_samples) == (2 * FS, BLOCK)
    assert [(event.sample, event.samples) for event in engine.events] == [(FS, BLOCK)]
