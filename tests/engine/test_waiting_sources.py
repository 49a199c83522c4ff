"""A file or computed sound in real time waits for models that are too slow: it loses nothing."""

import threading

import numpy as np
import pytest
import soundfile

from amt_stream.engine import (
    Engine,
    FaultSource,
    FileSource,
    RowSink,
    SignalSource,
    Together,
)
from amt_stream.engine.inputs import source_runner
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.meters.frames import BUFFER, Fault
from amt_stream.meters.signals import Tone
from tests.engine.conftest import Collector
from tests.engine.slow_models import FS, Sleeper

SOUND_S = 2.0
SHORT = {"ring_s": 0.2}
"""Far less than the sound: what does not wait loses some of it."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "noise.wav"
    sound = 0.1 * np.random.default_rng(3).standard_normal((round(SOUND_S * FS), 2))
    soundfile.write(path, sound, FS, subtype="FLOAT")
    return path


def signal(paced: bool) -> SignalSource:
    return SignalSource([Tone(440.0, level_db=70.0)], duration=SOUND_S, paced=paced)


def measured(source, model, **options) -> tuple[Collector, Engine]:
    sink = Collector()
    with Engine(source, model, [sink], ladder=(), **options) as engine:
        assert engine.wait(60), engine.error
    return sink, engine


@pytest.mark.cases(2)
@pytest.mark.parametrize("run_in", ["engine", "callback"])
@pytest.mark.parametrize("kind", ["file", "signal", "files"])
def test_it_plays_more_slowly_loses_nothing_and_says_so(path, kind, run_in):
    def source(paced):
        made = {"signal": lambda: signal(paced), "file": lambda: FileSource(path, paced=paced)}
        if kind in made:
            return made[kind]()
        return Together([FileSource(path, paced=paced), FileSource(path, paced=paced)])

    quick, _ = measured(source(False), Sleeper(0.0))
    slow, engine = measured(source(True), Sleeper(2.0), run_in=run_in, **SHORT)
    np.testing.assert_array_equal(slow.column("values"), quick.column("values"))
    assert not (slow.column("fault") & ~Fault.OVERLOAD).any()
    health = engine.health
    assert (health.lost_samples, health.dropped_samples, health.overruns) == (0, 0, 0)
    assert health.samples == SOUND_S * FS
    assert health.behind_s > 0.5
    assert health.late_callbacks == 0
    assert health.clock_ppm is None  # it tells of no clock
    kinds = [event.kind for event in engine.events]
    assert "gap" not in kinds
    assert "stalled" not in kinds
    if run_in == "engine":
        told = [event.text for event in engine.events if event.kind == "overload"]
        assert "it plays more slowly" in told[0]
        assert "dropped" not in " ".join(told)


def test_it_is_too_slow_and_how_far_behind_while_it_plays(path, until):
    source = FileSource(path, paced=True, loop=True)
    with Engine(source, Sleeper(1.5), ladder=(), **SHORT) as engine:
        until(lambda: "s behind real time" in engine.health.note)
        health = engine.health
        assert health.overloaded
        assert health.device_state == "running"
        assert health.note.startswith("processing cannot keep up with the sound")
        assert "it plays more slowly; noise.wav is " in health.note
        assert not health.lost_samples


def test_the_ladder_still_acts_for_it(path, until):
    models = {"dear": Sleeper(1.5), "cheap": Sleeper(0.3)}
    source = FileSource(path, paced=True, loop=True)
    with Engine(source, models, ladder=["models"], **SHORT) as engine:
        until(lambda: "dear off" in engine.health.note)
        assert not engine.health.lost_samples


def test_it_waits_for_a_slow_sink_as_well(path):
    slow, rows, wait = Collector(), [], threading.Event()

    def sink(frames) -> None:
        wait.wait(0.002 * len(frames.sample))
        slow(frames)

    def keep(row) -> None:
        wait.wait(0.05)
        rows.append(row)

    sinks = [sink, RowSink(keep)]
    with Engine(FileSource(path, paced=True), Sleeper(0.0), sinks, **SHORT) as engine:
        assert engine.wait(60), engine.error
    assert engine.health.sink_missed == 0
    assert (np.diff(slow.column("sample")) == 480).all()
    assert slow.column("sample")[-1] >= SOUND_S * FS - 480
    assert len(rows) >= SOUND_S * 10
    assert [row["time_s"] for row in rows] == pytest.approx(np.arange(len(rows)) / 10)


def test_what_stands_for_a_device_does_not_wait(path):
    source = FaultSource(FileSource(path, paced=True), faults=())
    assert not source.can_wait
    _, engine = measured(source, Sleeper(2.0), **SHORT)
    health = engine.health
    assert health.lost_samples == health.dropped_samples > 0
    assert {event.cause for event in engine.events if event.kind == "gap"} == {BUFFER}


def test_a_device_beside_a_file_is_not_held_up(path):
    live = SignalSource()
    live.can_wait = False
    assert not Together([live, FileSource(path, paced=True)]).can_wait
    assert Together([signal(True), FileSource(path, paced=True)]).can_wait


def test_it_waits_for_models_that_are_not_ready_yet(path, until, monkeypatch):
    monkeypatch.setattr(source_runner, "HELD_BYTES", 200_000)
    runner = SourceRunner(FileSource(path, paced=False))
    runner.begin()
    until(lambda: runner.samples * 8 > 80_000)
    blocks, ended = [], threading.Event()

    def deliver(block, lost=0, flags=0) -> None:
        assert not lost
        if block is None:
            ended.set()
        else:
            blocks.append(block.copy())

    blocks += [one.block for one in runner.held(deliver, lambda kind, text: None)]
    assert ended.wait(20)
    runner.end()
    assert runner.join(20)
    np.testing.assert_array_equal(np.concatenate(blocks), soundfile.read(path)[0])
