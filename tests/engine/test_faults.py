"""A source that spoils another one's sound: what it did is what the engine counts."""

from types import SimpleNamespace

import numpy as np
import pytest

from amt_stream.engine import Engine, Fault, FaultSource, PushSource, SignalSource, random_faults
from amt_stream.engine.inputs.faults import KINDS
from amt_stream.meters.signals import Noise
from amt_stream.offline.selftest import faults as selftest

NOISE = [Noise(level_db=60.0)]


def noise(duration: float, paced: bool = False) -> SignalSource:
    return SignalSource(NOISE, duration=duration, paced=paced)


def run(source, model, sinks=(), **options):
    with Engine(source, model, sinks, **options) as engine:
        assert engine.wait(60), engine.error
    return engine


def agrees(engine) -> None:
    """Health and events tell what was injected, sample by sample."""
    injected, health = engine.source.injected, engine.health
    assert health.lost_samples == injected.lost
    assert health.non_finite == injected.nan * engine.source.channels
    assert health.clipped == injected.clip * engine.source.channels
    told = [(event.sample, event.samples) for event in engine.events if event.kind == "gap"]
    assert told == injected.gaps
    kinds = [event.kind for event in engine.events]
    assert kinds.count("lost") == injected.unplug
    assert kinds.count("stall") == injected.stall


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_what_was_injected_is_what_is_counted(power_meter, collector, run_in):
    faults = [
        ("nan", 0.2, 0.01),
        ("drop", 0.5001, 0.0302),
        ("clip", 0.7, 0.002),
        ("unplug", 0.9, 0.25),
        ("silence", 1.3, 1.2),
        ("stall", 2.6, 0.05),
        ("late", 2.7, 0.05),
        ("drop", 2.99, 5.0),
    ]
    source = FaultSource(noise(3.0), faults)
    engine = run(source, power_meter(), [collector], run_in=run_in)
    agrees(engine)
    injected = source.injected
    assert (injected.nan, injected.clip, injected.silence) == (480, 96, 57600)
    assert injected.gaps == [(24005, 1449), (43200, 12000), (143520, 480)]
    assert (injected.lost, injected.unplug, injected.stall, injected.late) == (13929, 1, 1, 1)
    assert engine.health.samples + engine.health.lost_samples == 144000
    kinds = [event.kind for event in engine.events]
    assert sorted(kinds) == ["back", "clip", "gap", "gap", "gap", "lost", "stall"]
    assert kinds.index("lost") < kinds.index("back")
    at = collector.column("time_s")
    fault = collector.column("fault")
    assert (fault[(at > 0.2005) & (at < 0.2095)] & Fault.NON_FINITE).all()
    assert (fault[(at > 2.5995) & (at < 2.61)] & Fault.STALL).any()
    assert not fault[(at > 1.4) & (at < 2.5)].any()


def test_a_loss_of_the_source_itself_is_no_fault_of_ours(power_meter):
    source = FaultSource(PushSource(48000, 1, live=False), [("drop", 0.15, 0.05)])
    with Engine(source, power_meter()) as engine:
        source.source.push(np.zeros(4800, np.float32))
        source.source.push(np.zeros(4800, np.float32), lost=2400)
        source.source.push(np.zeros(4800, np.int16))
        source.source.close()
        assert engine.wait(60)
    assert source.injected.lost == 2400
    # Both together are one gap.
    assert source.injected.gaps == [(4800, 4800)]
    assert engine.health.lost_samples == 4800


def test_live_sound_halts_and_is_lost_and_the_device_says_so(power_meter, until):
    source = FaultSource(noise(2.0, paced=True), [("stall", 0.3, 0.6), ("unplug", 1.0, 0.5)])
    states = set()
    with Engine(source, power_meter()) as engine:
        while not engine.wait(0.01):
            health = engine.health
            states.add((health.device_state, health.note))
    agrees(engine)
    assert ("stalled", "signal with faults stands still") in states
    assert ("lost", "signal with faults was lost: it was unplugged") in states
    assert engine.health.late_callbacks >= 1


@pytest.mark.parametrize("ppm", [-100000.0, 100000.0])
def test_a_clock_that_is_off(power_meter, ppm):
    source = FaultSource(noise(1.5, paced=True), [("rate", 0.0, 1.5, ppm)])
    engine = run(source, power_meter())
    agrees(engine)
    # A fast clock begins late, to have time to catch up.
    late_s = engine._health._timeline.arrivals.last - engine._runner.began_at
    assert late_s > 1.5 * (1.05 if ppm < 0 else 0.95)


@pytest.mark.parametrize(("for_s", "missing"), [(0.4, 0), (0.7, 0.7)])
def test_a_muted_device_is_silent_when_it_lasts(for_s, missing, power_meter, collector):
    source = FaultSource(noise(3.0), [("mute", 1.0, for_s)])
    with Engine(source, power_meter(), [collector]) as engine:
        assert engine.wait(60)
    assert source.injected.mute == round(for_s * source.fs)
    assert engine.health.lost_samples == pytest.approx(missing * source.fs, abs=1)
    silent = [event.kind for event in engine.events if event.kind != "late"]
    assert silent == (["silent", "back", "gap"] if missing else [])
    assert bool(np.bitwise_or.reduce(collector.column("fault")) & Fault.SILENT) == bool(missing)


def test_a_random_plan_is_repeatable_and_does_not_overlap():
    plan = random_faults(5, 100.0)
    assert plan == random_faults(5, 100.0)
    assert plan != random_faults(6, 100.0)
    ends = [fault.at_s + fault.for_s for fault in plan]
    assert all(end < fault.at_s for end, fault in zip(ends, plan[1:], strict=False))
    assert 50 < len(plan) < 150
    assert {fault.kind for fault in plan} == set(KINDS) - {"rate", "mute"}
    assert FaultSource(noise(100.0), seed=5).faults == plan


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (("hum", 0.0, 1.0), "'hum'.*drop, late"),
        (("nan", -1.0, 1.0), "at_s of nan is -1.0"),
        (("nan", 0.0, float("inf")), "for_s of nan is inf"),
        (("rate", 0.0, 1.0), "ppm of rate is 0.0"),
        (("nan", 0.0, 1.0, 5.0), "ppm of nan is 5.0"),
        (("rate", 0.0, 1.0, -2e6), "less than a million"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(fault, said):
    with pytest.raises(ValueError, match=said):
        FaultSource(noise(1.0), [fault])
    with pytest.raises(TypeError, match="give a Source"):
        FaultSource(None)


def test_the_self_test_compares_what_was_put_in_with_what_is_found(monkeypatch):
    cases = [case for case in selftest.CASES if not case.paced and case.duration_s < 10.0]
    found = list(selftest.run_faults(cases))
    assert {result.case for result in found} == {case.words for case in cases}
    assert [result for result in found if not result.passed] == []
    monkeypatch.setattr(Engine, "health", property(lambda engine: WRONG(vars(HEALTH(engine)))))
    wrong = [result.what for result in selftest.run_faults(cases[:1]) if not result.passed]
    assert wrong == ["samples in all", "samples missing"]


HEALTH = Engine.health.fget


def WRONG(health):
    """One sample too few."""
    return SimpleNamespace(**{**health, "lost_samples": health["lost_samples"] - 1})
