"""A microphone's response is taken off at the engine's door, whatever else happens there."""

from dataclasses import replace

import numpy as np
import pytest

from amt_stream import Engine, PushSource
from amt_stream.core.saved_state import Unfitting
from amt_stream.engine import Microphone
from amt_stream.engine.microphone.gaps import MISSING
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.correction import Correction, CorrectionError
from amt_stream.meters.frames import Fault
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, SourceDescription
from tests.engine.measuring import measuring

FS = 48000
RESPONSE = Correction((20.0, 500.0, 8000.0), (-6.0, 0.0, 6.0), "mic.cal")
FULL_SCALE = Calibration(130.0, source="test")
DEVICE = replace(SourceDescription.of_signal(2), clips_at=DEVICE_CLIPS_AT)
CORRECTED = FULL_SCALE.with_correction(RESPONSE)


@pytest.fixture
def measure(collector, power_meter):
    """Makes a Measurement of powers whose frames go to the collector."""

    def make(*calibration, heard=2, offered=2, emit=collector):
        ready, ears = ReadyStage(power_meter(), FS, 10.0, heard), slice(0, heard)
        return measuring(ready, emit, calibration, ears, offered, description=DEVICE)

    return make


def tone(hz, seconds=0.5, peak=0.1):
    x = peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * FS)) / FS)
    return np.stack([x, x], -1).astype(np.float32)


def level_db(measured):
    """Of powers of both ears together."""
    return 10 * np.log10(measured[len(measured) // 2 :].mean() / 4e-10)


@pytest.mark.parametrize(("hz", "gain_db"), [(50, 4.29), (500, 0.0), (2000, -3.0), (8000, -6.0)])
def test_readings_are_those_of_the_sound_in_the_air(measure, collector, hz, gain_db):
    expected = 20 * np.log10(0.1) + 130.0 + gain_db
    measure(CORRECTED).take(tone(hz))
    both = expected + 10 * np.log10(2)
    assert level_db(collector.column("stl")) == pytest.approx(both, abs=0.1)
    # The level beside the frames is of the same sound.
    assert collector.all[-1].level_db[0, -1] == pytest.approx(expected, abs=0.15)


def test_each_ear_has_its_own(measure, collector):
    both, left = tone(8000), tone(8000)
    left[:, 1] = 0
    measurement = measure(CORRECTED, FULL_SCALE)
    measurement.take(both)
    two = collector.column("stl")
    collector.all.clear()
    measure(CORRECTED, FULL_SCALE).take(left)
    alone = collector.column("stl")
    assert level_db(alone) == pytest.approx(104.0, abs=0.15)
    assert level_db(two - alone) == pytest.approx(110.0, abs=0.15)


@pytest.mark.cases(2)
@pytest.mark.parametrize("size", [1, 7, 441, 8193])
def test_any_chunking_gives_the_same_bits(measure, collector, noise, size):
    x = noise(48000 if size > 1 else 4800)
    x[1000:1100] = np.nan
    measure(CORRECTED).take(x)
    whole = collector.column("stl")
    collector.all.clear()
    measurement = measure(CORRECTED)
    for at in range(0, len(x), size):
        measurement.take(x[at : at + size])
    assert collector.column("stl").tobytes() == whole.tobytes()


def test_a_flat_one_changes_nothing(measure, collector, noise):
    x = noise(9600)
    measure(FULL_SCALE).take(x)
    without = collector.column("stl")
    collector.all.clear()
    flat = Correction((20.0, 20000.0), (0.0, 0.0))
    measure(FULL_SCALE.with_correction(flat)).take(x)
    assert collector.column("stl").tobytes() == without.tobytes()


def test_what_is_clipped_or_no_number_is_judged_as_it_came(measure, collector):
    x = tone(8000, peak=0.6)  # 1.2 times what is then heard
    x[5000:5002] = 1.0
    x[6000] = np.nan
    measurement = measure(CORRECTED)
    measurement.take(x)
    assert (measurement.listeners[0].ends.count, measurement.listeners[0].non_finite) == (4, 2)
    louder = tone(50, peak=0.8)
    measurement = measure(CORRECTED)
    measurement.take(louder)  # above full scale once it is corrected
    assert measurement.listeners[0].ends.count == 0


def test_silence_is_seen_through_it(measure):
    measurement = measure(CORRECTED)
    measurement.take(tone(50))
    measurement.take(np.zeros((2 * FS, 2), np.float32))
    assert measurement.listeners[0].input.silent


def test_it_rings_on_through_a_short_gap_and_begins_anew_after_a_long_one(measure, collector):
    x = tone(50)

    def after(lost):
        collector.all.clear()
        measurement = measure(CORRECTED)
        measurement.take(x)
        measurement.take(x, lost=lost)
        return collector.column("stl")[-400:]

    gap = np.zeros((480, 2), np.float32)
    collector.all.clear()
    measure(CORRECTED).take(np.concatenate([x, gap, x]))
    assert after(480).tobytes() == collector.column("stl")[-400:].tobytes()
    collector.all.clear()
    measure(CORRECTED).take(x)
    assert after(2 * FS).tobytes() == collector.column("stl")[-400:].tobytes()


def test_a_row_that_lacks_its_sound_holds_zeros(measure, collector):
    x = tone(50)
    x[4800:9600] = MISSING
    measure(CORRECTED).take(x)
    filled = np.where(np.isnan(x), 0, x).astype(np.float32)
    missed = collector.column("stl")[-200:]
    assert any((frames.fault & Fault.GAP).any() for frames in collector.all)
    collector.all.clear()
    measure(CORRECTED).take(filled)
    assert missed.tobytes() == collector.column("stl")[-200:].tobytes()


def test_it_goes_on_where_it_was_saved(measure, collector, noise):
    x = noise(9600 + 123)
    first = measure(CORRECTED)
    first.take(x[:5003])
    saved = first.state_dict()
    collector.all.clear()
    first.take(x[5003:])
    expected = collector.column("stl")
    collector.all.clear()
    second = measure(CORRECTED)
    second.load_state_dict(saved)
    second.take(x[5003:])
    assert collector.column("stl").tobytes() == expected.tobytes()
    with pytest.raises(Unfitting, match="the calibration was"):
        measure(FULL_SCALE).load_state_dict(saved)


def test_an_engine_is_given_one_and_can_be_given_another(power_meter, collector, until):
    source = PushSource(FS, 2, live=False)
    with Engine(
        source, power_meter(), [collector], calibration=FULL_SCALE, correction=RESPONSE
    ) as engine:
        assert engine.calibration == (CORRECTED,)
        source.push(tone(8000))
        until(lambda: engine.health.samples == FS // 2)
        engine.calibrate(Calibration(135.0), keep_corrections=True)
        source.push(tone(8000))
        until(lambda: engine.health.samples == FS)
        assert engine.calibration == (Calibration(135.0).with_correction(RESPONSE),)
        engine.calibrate(FULL_SCALE)
        source.push(tone(8000))
        source.close()
        assert engine.wait(60)
    levels = 10 * np.log10(collector.column("stl")[1:-1] / 2 / 4e-10)
    assert levels[400] == pytest.approx(104.0, abs=0.2)
    assert levels[900] == pytest.approx(109.0, abs=0.2)
    assert levels[-100] == pytest.approx(110.0, abs=0.2)


def test_each_row_of_an_engine_has_its_own(power_meter):
    source = PushSource(FS, 3, live=False)
    rows = [
        Microphone((1,), "a", UNCALIBRATED),
        Microphone((2,), "b", CORRECTED),
        Microphone((3,), "c"),
    ]
    engine = Engine(source, power_meter(), microphones=rows, calibration=FULL_SCALE)
    assert [row.calibration for row in engine.health.microphones.values()] == [
        (UNCALIBRATED,),
        (CORRECTED,),
        (FULL_SCALE,),
    ]
    engine = Engine(
        source, power_meter(), microphones=rows, calibration=FULL_SCALE, correction=RESPONSE
    )
    assert {row.calibration[0].correction for row in engine.health.microphones.values()} == {
        RESPONSE
    }


def test_a_response_that_no_filter_has_is_refused_by_whoever_asks(power_meter):
    hz = tuple(np.geomspace(20, 20000, 500))
    steep = Correction(hz, tuple(np.where(np.array(hz) < 1000, 20.0, -20.0)), "odd.cal")
    engine = Engine(PushSource(FS, 2), power_meter())
    with pytest.raises(CorrectionError, match=r"odd\.cal: the gain changes so steeply near"):
        engine.calibrate(FULL_SCALE.with_correction(steep))
