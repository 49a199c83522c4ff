"""Positions, gaps and marks, with no thread in between."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from amt_stream.dsp.models import Moore2016, ZwickerTimeVarying
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine.history import Marks
from amt_stream.engine.microphone.converter_ends import fits_together
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.frames import LATER, Fault
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, SourceDescription
from tests.engine.measuring import measuring

FULL_SCALE = Calibration(130.0, source="test")
DEVICE = replace(SourceDescription.of_signal(2), clips_at=DEVICE_CLIPS_AT)
LIVE = {"epoch": lambda audio_s: 1e9}


@pytest.fixture
def measure(collector):
    """Makes a Measurement whose frames go to the collector."""

    def make(model, fs=48000, ears=slice(0, 2), calibration=FULL_SCALE, description=None):
        ready = ReadyStage(model, fs, 10.0)
        return measuring(ready, collector, calibration, ears, **LIVE, description=description)

    return make


def reference(samples: np.ndarray) -> np.ndarray:
    """Mean square in pascal of both ears together, per millisecond at 48 kHz."""
    pascal = samples.astype(np.float64) * FULL_SCALE.pascal_per_unit
    return (pascal**2).sum(axis=1).reshape(-1, 48).mean(axis=1)


@pytest.mark.parametrize("size", [1, 7, 441, 480, 8193])
def test_any_chunking_gives_the_same_rows(measure, collector, power_meter, noise, size):
    x = noise(48000 if size > 1 else 4800)
    measurement = measure(power_meter(delay=960))
    for at in range(0, len(x), size):
        measurement.take(x[at : at + size])
    measurement.flush()
    # The last row stands exactly at the end and hears the silence after it.
    rows = np.arange(len(x) // 48 + 1)
    np.testing.assert_allclose(collector.column("stl"), [*reference(x), 0.0], rtol=1e-5)
    np.testing.assert_allclose(collector.column("time_s"), rows / 1000)
    np.testing.assert_array_equal(collector.column("sample"), rows * 48)
    np.testing.assert_allclose(collector.column("utc"), 1e9 + collector.column("time_s"))


def test_the_tail_is_not_lost_where_the_end_is_ragged(measure, collector, power_meter, noise):
    x = noise(48 * 100 + 5)
    measurement = measure(power_meter(delay=960))
    measurement.take(x)
    measurement.flush()
    padded = np.concatenate([x, np.zeros((43, 2), np.float32)])
    np.testing.assert_allclose(collector.column("stl"), reference(padded), rtol=1e-5)


@pytest.mark.parametrize("samples", [47, 48, 480, 4800, 4801, 4848])
@pytest.mark.parametrize("delay", [0, 48, 960, 961])
def test_the_last_frame_is_the_last_one_that_stands_within_the_sound(
    measure, collector, power_meter, noise, samples, delay
):
    measurement = measure(power_meter(delay=delay))
    measurement.take(noise(samples))
    measurement.flush()
    assert measurement.position.samples == samples
    sample = collector.column("sample")
    assert samples - 48 < sample[-1] <= samples
    np.testing.assert_array_equal(np.diff(sample), 48)


def test_no_input_gives_no_rows(measure, collector, power_meter):
    measure(power_meter()).flush()
    assert collector.all == []


@pytest.mark.parametrize("lost", [1, 100, 480, 47999, 48000])
def test_a_short_gap_is_zeros_at_its_place_and_no_frame_stands_in_it(
    measure, collector, power_meter, noise, lost
):
    before, after = noise(1000), noise(48 * 200)
    measurement = measure(power_meter())
    measurement.take(before)
    measurement.take(after, lost=lost)
    measurement.flush()
    joined = np.concatenate([before, np.zeros((lost, 2), np.float32), after])
    expected = reference(np.concatenate([joined, np.zeros((-len(joined) % 48, 2), np.float32)]))
    sample = np.arange(len(expected)) * 48
    there = (sample < 1000) | (sample >= 1000 + lost)
    np.testing.assert_array_equal(collector.column("sample"), sample[there])
    np.testing.assert_allclose(collector.column("stl"), expected[there], rtol=1e-5)
    marked = collector.column("sample")[collector.column("fault") == Fault.GAP]
    heard = there & (sample + 48 > 1000) & (sample < 1000 + lost)
    heard[np.flatnonzero(sample >= 1000 + lost)[0]] = True
    np.testing.assert_array_equal(marked, sample[heard])
    assert measurement.listeners[0].gaps.lost == lost


@pytest.mark.parametrize("lost", [48001, 500_123, 2**40 + 77])
def test_after_a_long_gap_the_model_is_new_and_the_clock_has_gone_on(
    measure, collector, power_meter, noise, lost
):
    before, after = noise(4800, rms=0.5), noise(48 * 200)
    measurement = measure(power_meter(delay=960))
    measurement.take(before)
    measurement.take(after, lost=lost)
    measurement.flush()
    sample, stl = collector.column("sample"), collector.column("stl")
    assert (np.diff(sample) > 0).all()
    assert (sample % 48 == 0).all()
    assert sample[-1] == (4800 + lost + len(after) - 1) // 48 * 48
    begin = 4800 + lost
    lead = begin % 48
    padded = np.concatenate([np.zeros((lead, 2), np.float32), after])
    padded = np.concatenate([padded, np.zeros((-len(padded) % 48, 2), np.float32)])
    heard = sample >= begin
    assert not ((sample >= 4800) & ~heard).any()
    expected = reference(padded)[1 if lead else 0 :]
    np.testing.assert_allclose(stl[heard], expected, rtol=1e-5)
    settling = collector.column("settling")
    assert settling[heard & (sample < begin + 2400)].all()
    assert not settling[sample >= begin + 2400].any()


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("lost", [1, 5, 480, 48000, 48480, 480_000])
@pytest.mark.parametrize("delay", [0, 960])
def test_what_follows_a_gap_says_so(measure, collector, power_meter, noise, lost, delay, ahead):
    model = power_meter(delay=delay)
    model.frames_stand_for_end = ahead  # such a frame stands for the 48 samples before its time
    measurement = measure(model)
    measurement.take(noise(4800))
    measurement.take(noise(48 * 200), lost=lost)
    measurement.flush()
    sample, stop = collector.column("sample"), 4800 + lost
    within = (sample > 4800) & (sample <= stop) if ahead else (sample >= 4800) & (sample < stop)
    assert not within.any()
    (after,) = [frames for frames in collector.all if frames.gaps]
    assert after.gaps == ((4800, stop),)
    assert after.fault[0] & Fault.GAP
    assert after.sample[0] - 48 < stop + ahead
    past = [frames for frames in collector.all if frames.sample[-1] < after.sample[0]]
    assert after.skipped == (after.sample[0] - past[-1].sample[-1]) // 48 - 1
    assert [frames.skipped for frames in collector.all if frames is not after] == [0] * (
        len(collector.all) - 1
    )
    calm = collector.column("fault") == 0
    np.testing.assert_allclose(
        collector.column("since_s")[calm & (sample >= stop)],
        (sample[calm & (sample >= stop)] - stop) / 48000,
    )
    assert np.isinf(collector.column("since_s")[calm & (sample < 4800)]).all()
    assert measurement.position.samples == 14400 + lost


@pytest.mark.parametrize("lost", [1, 480, 500, 48480, 480_000])
@pytest.mark.parametrize("delay", [0, 960])
@pytest.mark.parametrize("ahead", [False, True])
def test_what_is_missing_at_the_end_is_counted_and_has_no_frames(
    measure, collector, power_meter, noise, lost, delay, ahead
):
    model = power_meter(delay=delay)
    model.frames_stand_for_end = ahead
    measurement = measure(model)
    measurement.take(noise(4800))
    measurement.take(noise(0), lost=lost, flags=Fault.OVERLOAD)
    measurement.flush()
    assert (measurement.position.samples, measurement.listeners[0].gaps.lost) == (4800 + lost, lost)
    assert collector.column("sample")[-1] == (4800 if ahead else 4752)
    if delay:
        assert collector.column("fault")[-1] == Fault.GAP | Fault.OVERLOAD


def test_gaps_that_follow_one_another_are_each_told_once(measure, collector, power_meter, noise):
    """Gaps within a frame, over several, across blocks, and one right after another."""
    rng = np.random.default_rng(7)
    measurement, told = measure(power_meter(delay=96)), []
    measurement.take(noise(1000))
    for _ in range(200):
        lost = int(rng.choice([1, 5, 60, 480, 3000, 60_000]))
        told.append((measurement.position.sample, measurement.position.sample + lost))
        measurement.take(noise(int(rng.choice([0, 1, 30, 700, 5000]))), lost)
    measurement.take(noise(1000))
    measurement.flush()
    assert [gap for frames in collector.all for gap in frames.gaps] == told
    index, after = collector.column("sample") // 48, 0
    within = [(-(-start // 48), -(-stop // 48)) for start, stop in told]
    missing = np.concatenate([np.arange(*pair) for pair in within])
    assert not np.isin(index, missing).any()
    for frames in collector.all:
        assert frames.sample[0] // 48 - after == frames.skipped
        after = frames.sample[-1] // 48 + 1
        np.testing.assert_array_equal(np.diff(frames.sample), 48)


@pytest.mark.parametrize(("flags", "computed"), [(0, 48_000), (Fault.OVERLOAD, 0)])
def test_the_zeros_of_a_gap_in_overload_are_not_computed(
    measure, power_meter, noise, flags, computed
):
    """A model that is too slow would never catch up with them."""
    taken = []

    class Counting(type(power_meter())):
        def step(self, x, state):
            taken.append(x.shape[-1])
            return super().step(x, state)

    measurement = measure(Counting(48))
    taken.clear()
    measurement.take(noise(4800))
    measurement.take(noise(4800), 48_000, flags)
    assert sum(taken) == 4800 + computed + 4800


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e19, -3e38, 1.001 * LARGEST_SAMPLE])
def test_what_is_not_a_number_is_zero_counted_and_marked(
    measure, collector, power_meter, noise, bad
):
    x = noise(48 * 300)
    clean = x.copy()
    x[5000:5100, 0] = bad
    clean[5000:5100, 0] = 0.0
    measurement = measure(power_meter())
    measurement.take(x)
    np.testing.assert_allclose(collector.column("stl"), reference(clean), rtol=1e-5)
    assert measurement.listeners[0].non_finite == 100
    fault = collector.column("fault")
    assert np.flatnonzero(fault).tolist() == list(range(5000 // 48, 5100 // 48 + 1))
    assert set(fault[fault > 0].tolist()) == {Fault.NON_FINITE}


@pytest.mark.parametrize("peak", [1.0, -1.0, 32767 / 32768])
def test_clipping_is_counted_marked_and_left_alone(measure, collector, power_meter, noise, peak):
    x = noise(48 * 300)
    x[5000:5002, 1] = peak
    measurement = measure(power_meter(delay=96), description=DEVICE)
    measurement.take(x)
    assert measurement.listeners[0].ends.count == 2
    marked = np.flatnonzero(collector.column("fault") & Fault.CLIP) * 48
    # Heard from its own frame on; two rows earlier by the model's latency, two later by its reach.
    assert marked.tolist() == [4896, 4944, 4992, 5040, 5088]
    assert not collector.column("settling")[60:].any()
    np.testing.assert_allclose(collector.column("stl"), reference(x)[:298], rtol=1e-5)


def test_samples_beyond_full_scale_without_a_converter_are_sound(measure, collector, power_meter):
    x = np.full((4800, 2), 3.0, np.float32)
    measurement = measure(power_meter())
    measurement.take(x)
    assert measurement.listeners[0].ends.count == 0
    assert not collector.column("fault").any()
    np.testing.assert_allclose(collector.column("stl"), reference(x), rtol=1e-5)


def calls_for(measurement: Measurement, x: np.ndarray) -> int:
    """How many functions are called for `x` in blocks of 10 ms."""
    count = 0

    def called(frame, event, argument) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        for at in range(0, len(x), 480):
            measurement.take(x[at : at + 480])
    finally:
        sys.setprofile(before)
    return count


def test_faults_everywhere_cost_a_few_calls_a_block(measure, power_meter, noise):
    """Every second sample clips, and some are no numbers; what it costs does not add up either."""
    x = noise(48000)
    bad = x.copy()
    bad[::2] = 1.0
    bad[5::101] = np.nan
    clean, faulty = (measure(power_meter(delay=480), description=DEVICE) for _ in range(2))
    least = calls_for(clean, x)
    first, later = calls_for(faulty, bad), calls_for(faulty, bad)
    assert first < least + 100 * 400
    assert later < 1.05 * first


def test_settling_at_the_start_lasts_as_the_model_says(measure, collector, power_meter, noise):
    measurement = measure(power_meter())
    measurement.take(noise(48 * 200))
    time_s, settling = collector.column("time_s"), collector.column("settling")
    np.testing.assert_array_equal(settling, time_s < 0.05)


def test_mono_is_both_ears_and_channels_can_be_chosen(measure, collector, power_meter, noise):
    x = noise(4800, channels=4)
    measurement = measure(power_meter(), ears=slice(3, 4))
    measurement.take(x)
    ears = collector.column("ears")
    np.testing.assert_array_equal(ears[0], ears[1])
    assert collector.all[0].values.ears.shape == (2, 10)
    assert collector.all[0].values.spectrum is None
    np.testing.assert_allclose(ears.sum(0), reference(x[:, [3, 3]]), rtol=1e-5)


def test_level_is_that_of_each_ear(measure, collector, power_meter):
    t = np.arange(48000) / 48000
    sine = np.stack([np.sin(2 * np.pi * 1000 * t), np.zeros(48000)], 1).astype(np.float32) * 0.1
    measure(power_meter(), calibration=(FULL_SCALE, FULL_SCALE)).take(sine)
    np.testing.assert_allclose(collector.column("level_db")[0], 110.0, atol=1e-3)
    np.testing.assert_array_equal(collector.column("level_db")[1], -100.0)


def test_the_level_of_the_last_rows_is_that_of_the_last_sound(measure, collector, power_meter):
    """Neither the zeros that fill the last block nor those after it count as input."""
    x = np.full((480 + 5, 2), 0.1, np.float32)
    measurement = measure(power_meter(delay=960))
    measurement.take(x)
    measurement.flush()
    np.testing.assert_allclose(collector.column("level_db"), 113.01, atol=1e-3)


@pytest.mark.parametrize("model", [Moore2016, ZwickerTimeVarying, SoundLevel])
def test_blocks_that_are_taken_together_give_what_each_gives_alone(measure, collector, model):
    """Faults, gaps and a level that changes are those of each block, to the last bit."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((72000, 2)) * np.repeat(rng.uniform(0.001, 0.1, 150), 480)[:, None]
    x = x.astype(np.float32)
    x[30000:30002], x[40001, 1] = 1.0, np.nan
    told = []
    for several in (False, True):
        collector.all.clear()
        measurement = measure(model(fs=48000))
        for at, lost in zip(range(0, 72000, 4800), [0, 0, 700, 0, 60000] + [0] * 10, strict=True):
            chunk = x[at : at + 4800]
            together = several and fits_together(chunk, np.float32(1.0))
            measurement.take(chunk, lost, Fault.GAP if lost else 0, together)
        measurement.flush()
        told.append(list(collector.all))
    assert len(told[1]) < len(told[0]) - 80
    for name in LATER:
        joined = [np.concatenate([getattr(f, name) for f in one], axis=-1) for one in told]
        np.testing.assert_array_equal(*joined, err_msg=name)
    for k, dim in enumerate(told[0][0].time_dim):
        if told[0][0].values[k] is not None:
            joined = [np.concatenate([f.values[k] for f in one], axis=dim) for one in told]
            np.testing.assert_array_equal(*joined)


def test_reset_and_recalibration_between_blocks(measure, collector, power_meter, noise):
    x = noise(48 * 400)
    measurement = measure(power_meter(), calibration=UNCALIBRATED)
    measurement.take(x[:9600])
    measurement.commands.put(measurement.reset)
    measurement.commands.put(lambda: measurement.recalibrate(FULL_SCALE))
    measurement.take(x[9600:])
    assert [f.calibrated for f in collector.all] == [False] * 20 + [True] * 20
    stl, ltl = collector.column("stl"), collector.column("ltl")
    assert ltl[200] == pytest.approx(0.05 * stl[200])
    np.testing.assert_allclose(stl[200:], reference(x)[200:], rtol=1e-5)
    time_s, settling = collector.column("time_s"), collector.column("settling")
    np.testing.assert_array_equal(settling, (time_s < 0.05) | ((time_s >= 0.2) & (time_s < 0.25)))
    np.testing.assert_allclose(time_s, np.arange(400) / 1000)


@pytest.mark.parametrize("delays", [(0, 960), (960, 0), (96, 96)])
def test_another_model_never_repeats_a_row(measure, collector, power_meter, noise, delays):
    x = noise(48 * 400)
    measurement = measure(power_meter(delay=delays[0]))
    measurement.take(x[:9600])
    measurement.swap(ReadyStage(power_meter(delay=delays[1]), 48000, 20.0))
    measurement.take(x[9600:])
    measurement.flush()
    sample, stl = collector.column("sample"), collector.column("stl")
    assert (np.diff(sample) > 0).all()
    known = (sample < 9600 - delays[0]) | (sample >= 9600)
    expected = np.append(reference(x), 0.0)
    assert sample[-1] == len(x)
    np.testing.assert_allclose(stl[known], expected[sample[known] // 48], rtol=1e-5)


@pytest.mark.parametrize("ears", [(1, 2), (2, 1)])
@pytest.mark.parametrize("later", [0, 1, 4801])
def test_a_model_of_ears_and_one_of_channels_end_the_same_sound(collector, ears, later):
    """A steady tone is told as steady to its end, however little of it the last model heard."""
    models = {1: ZwickerTimeVarying(48000), 2: Moore2016(48000)}
    first, second = (ReadyStage(models[n], 48000, 10.0, channels=1) for n in ears)
    measurement = measuring(first, collector, FULL_SCALE, slice(0, 1), 1, **LIVE)
    x = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(48000 + later) / 48000, dtype=np.float32)[:, None]
    measurement.take(x[:47520])
    measurement.swap(second)
    measurement.take(x[47520 : 48000 + later])
    measurement.flush()
    assert collector.all[-1].sample[-1] > 48000 + later - 96
    assert all(frames.cut for frames in collector.all if frames.after_end)


def test_a_model_that_comes_at_the_very_end_adds_no_sound(collector, power_meter, measure, noise):
    """The model that heard the sound tells the rest of it."""
    coarse = type(power_meter())(480)
    measurement = measure(power_meter(delay=960))
    measurement.take(noise(48000))
    measurement.swap(ReadyStage(coarse, 48000, 10.0))
    measurement.flush()
    assert measurement.position.sample <= 48000 + 3 * 480
    assert collector.column("sample")[-1] == 48000


def test_a_plain_tensor_serves_as_output(measure, collector, noise):
    from amt_stream.dsp.compose import Delay

    delay = Delay(480)
    assert delay.ratio == Fraction(1)
    measure(delay).take(noise(4800))
    assert collector.all[0].values.shape == (2, 480)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_a_model_makes_no_number_of_is_marked_and_counted(
    measure, collector, power_meter, noise, bad
):
    class Breaking(type(power_meter())):
        def step(self, x, state):
            y, state = super().step(x, state)
            return y._replace(ltl=torch.where(y.ltl > 100.0, bad, y.ltl)), state

    x = noise(4800)
    x[2400:2880] = 0.9
    measurement = measure(Breaking(48))
    measurement.take(x)
    wrong = ~np.isfinite(collector.column("ltl"))
    assert measurement.listeners[0].broken == wrong.sum() > 0
    fault = collector.column("fault")
    assert (fault[wrong] == Fault.NON_FINITE).all()
    assert not fault[:50].any()
    assert measurement.listeners[0].non_finite == 0


def test_a_model_for_another_rate_is_refused(power_meter):
    model = power_meter()
    model.fs = 32000
    with pytest.raises(ValueError, match="built for 32000 Hz and the source gives 48000 Hz"):
        ReadyStage(model, 48000, 10.0)


def test_state_is_allocated_outside_inference_mode(power_meter):
    with torch.inference_mode():
        ready = ReadyStage(power_meter(), 48000, 10.0)
    assert not any(buffer.is_inference() for buffer in ready.stream.state.values())


def test_arrays_made_later_are_those_made_at_once(
    measure, collector, power_meter, noise, monkeypatch
):
    x = noise(48000)
    x[20000] = np.nan
    told = []
    for at_once in (False, True):
        with monkeypatch.context() as patch:
            if at_once:
                patch.setattr(Marks, "calm", lambda *given: None)
            collector.all.clear()
            measurement = measure(power_meter(delay=960))
            for at in range(0, len(x), 4799):
                measurement.take(x[at : at + 4799], lost=(at == 9598) * 100)
            measurement.flush()
            told.append(tuple(collector.all))
    later, now = told
    assert {one.later is None for one in later} == {True, False}
    assert {one.later for one in now} == {None}
    for name in LATER:
        for one, other in zip(later, now, strict=True):
            mine, wanted = getattr(one, name), getattr(other, name)
            np.testing.assert_array_equal(mine, wanted, strict=True)
            assert getattr(one, name) is mine
    assert [len(one) for one in later] == [len(one) for one in now]
    assert [(one.begin_s, one.end_s) for one in later] == [(f.time_s[0], f.time_s[-1]) for f in now]


def test_a_copy_of_frames_is_its_owners(measure, collector, power_meter, noise):
    measurement = measure(power_meter())
    measurement.take(noise(4800))
    frames = collector.all[-1]
    frames.level_db[:] = 1.0
    copy = frames.copy()
    copy.time_s[:], copy.level_db[:], copy.values.stl[:] = 7.0, 8.0, -9.0
    again = copy.copy()
    assert again.time_s[0] == 7.0
    assert again.level_db[0, 0] == 8.0
    assert again.values.stl[0] == -9.0
    assert frames.time_s[0] == 0.09
    assert frames.level_db[0, 0] == 1.0
    assert frames.values.stl[0] > 0.0
    with pytest.raises(AttributeError, match="no attribute 'times'"):
        frames.times  # noqa: B018
