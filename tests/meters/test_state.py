"""A meter that was saved in mid-sound and goes on in a new one, against one that never stopped."""

import numpy as np
import pytest

from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.meters.accumulators import (
    Histogram,
    ProgrammeLoudness,
    RollingHistogram,
    RollingLevel,
    SoundLevelMeter,
    SpectrumMeter,
    ThirdOctaveMeter,
)
from amt_stream.meters.accumulators.programme import COLUMNS
from amt_stream.meters.rows.models.ecma418 import TONALITY
from tests.meters.one_quantity import ecma_meter, loudness_meter, sharpness_meter, zwicker_meter


def walk(count, seed=0):
    """A level in dB that wanders between 35 and 85."""
    random = np.random.default_rng(seed)
    return 60 + 25 * np.sin(np.cumsum(random.normal(0, 0.05, count)))


def of_loudness(count):
    columns = ["ltl_n5_phon", "max_phon", "ltl_n90_2s_phon"]
    time_s, phon = np.arange(count) / 1000, walk(count)
    return lambda: loudness_meter(columns), (time_s, phon)


def of_zwicker(count):
    columns = ["max_sone", "n5_sone", "n10_3s_sone"]
    return lambda: zwicker_meter(columns), (np.arange(count) / 500, np.exp2(walk(count) / 10 - 4))


def of_sharpness(count):
    columns = ["mean_acum", "max_acum", "s5_acum", "s10_3s_acum"]
    return lambda: sharpness_meter(columns), (np.arange(count) / 500, walk(count) / 30)


def of_ecma(count):
    columns = ["mean_tu", "max_tu", "t5_tu", "t10_3s_tu"]
    values = np.maximum(walk(count) / 30 - 1.5, 0)
    return lambda: ecma_meter(TONALITY, columns), (np.arange(count) / 187.5, values)


def of_programme(count):
    energy = 10 ** (walk(count) / 10 - 8)
    peaks = np.sqrt(np.stack([energy, energy / 2]))
    return lambda: ProgrammeLoudness(columns=COLUMNS), (energy, 1.1 * peaks, peaks)


def of_sound_level(count):
    columns = ["laeq_db", "laeq_1s_db", "l90_2s_db", "lafmax_db", "lasmin_db", "lcpeak_db"]
    columns += ["dose_70_5_60_percent", "lex_8h_until_40_s", "lceq_4s_allowed_70_db"]
    power = 4e-10 * 10 ** (walk(count) / 10)
    timed = power * 10 ** (np.arange(9)[:, None] / 20)
    weighted = power * np.array([[1], [2], [3]])
    given = weighted, timed, timed * 1.2, timed / 1.2, 4 * weighted, 9 * np.sqrt(weighted)
    return lambda: SoundLevelMeter(columns), [v.astype(np.float32) for v in given]


def of_third_octaves(count):
    columns = ["lzf_31_5hz_db", "lzeq_1000hz_db", "lzeq_31_5hz_2s_db", "lzsmax_1000hz_db"]
    power = 4e-10 * 10 ** (np.stack([walk(count), walk(count, 1)]) / 10)
    given = power, np.stack([power, power / 2]), np.stack([power, power / 2]) * 1.2
    return lambda: ThirdOctaveMeter((31.5, 1000.0), columns), [v.astype(np.float32) for v in given]


def of_spectrum(count):
    return lambda: SpectrumMeter(25.0), (100 * np.exp2(walk(count, 1) / 10), walk(count))


CASES = [of_loudness, of_zwicker, of_sharpness, of_programme, of_sound_level, of_third_octaves]
CASES += [of_spectrum, of_ecma]


def ran(meter, given, start, stop):
    """The columns of frames from `start` to `stop`, of which some do not count."""
    told = []
    for at in range(start, stop, 10):
        part = slice(at, at + 10)
        valid = np.arange(at, at + 10) % 700 > 40
        told.append(meter.update(*(v[..., part] for v in given), valid))
    return np.concatenate(told, axis=1)


def measured(case, frames):
    """What makes a meter, and one that has taken so many frames."""
    make, given = case(frames)
    meter = make()
    ran(meter, given, 0, frames)
    return make, meter


@pytest.mark.cases(2)
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_meter_goes_on_in_a_new_one(case, paused):
    make, given = case(6000)
    one, other = make(), make()
    ran(one, given, 0, 2630)
    if paused:
        one.pause()
        ran(one, given, 2630, 2730)
    other.load_state_dict(one.state_dict())
    start = 2730 if paused else 2630
    told, again = (ran(meter, given, start, 4000) for meter in (one, other))
    one.unpause(), other.unpause()
    told, again = (
        np.concatenate([v, ran(meter, given, 4000, 6000)], axis=1)
        for v, meter in ((told, one), (again, other))
    )
    np.testing.assert_array_equal(told, again)
    assert one.reading() == other.reading()
    assert one.reading()["excluded_s"] > 0


def unkept(fresh, used, where=""):
    """Names of attributes that running has changed and that no state holds."""
    for name, value in vars(used).items():
        before = vars(fresh)[name]
        if name in used.kept:
            yield from unkept_inside(before, value, f"{where}{name}/")
        elif repr(before) != repr(value):
            yield f"{where}{name}"


def unkept_inside(before, value, where):
    if isinstance(value, Resumable):
        yield from unkept(before, value, where)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from unkept_inside(before[key], inner, f"{where}{key}/")


TOLD_AS = {"counts", "sums", "_next", "events", "present", "_slots", "_rise", "_rise_places"}
TOLD_AS |= {"_counts", "first"}
"""Attributes that the state holds in another form."""


@pytest.mark.parametrize("case", CASES)
def test_nothing_that_changes_is_left_out(case):
    make, meter = measured(case, 3000)
    left_out = {name.rpartition("/")[2] for name in unkept(make(), meter)}
    assert left_out <= TOLD_AS


@pytest.mark.parametrize("case", CASES)
def test_a_state_is_small_and_of_numbers_alone(case):
    _, meter = measured(case, 3000)
    state = meter.state_dict()
    kinds = {type(value) for value in state.values()}
    assert kinds <= {np.ndarray, int, float, bool, type(None)}
    assert {v.dtype.kind for v in state.values() if isinstance(v, np.ndarray)} <= set("fi")
    size = sum(v.nbytes for v in state.values() if isinstance(v, np.ndarray))
    assert size < 120_000


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_refused(case):
    """Another kind of number, another shape, one too many, one missing: of every value."""
    make, meter = measured(case, 1000)
    state = meter.state_dict()
    for name, value in state.items():
        bad = value[None] if isinstance(value, np.ndarray) else "0"
        with pytest.raises(Unfitting):
            make().load_state_dict(state | {name: bad})
        with pytest.raises(Unfitting, match="missing"):
            make().load_state_dict({k: v for k, v in state.items() if k != name})
    with pytest.raises(Unfitting, match="foreign"):
        make().load_state_dict(state | {"foreign": 1})


def test_places_out_of_range_are_refused():
    """What would be counted elsewhere, or for ever."""
    for place in (500 * 20 + 1, -300 * 20 - 2):
        with pytest.raises(Unfitting, match="of the classes -6000 to 9999: the state has others"):
            Histogram().load_state_dict({"used": np.array([[place], [1]])})
    window = RollingHistogram(0.01, 10.0)
    window.add([1.0, 2.0])
    with pytest.raises(Unfitting, match="_taken"):
        RollingHistogram(0.01, 10.0).load_state_dict(window.state_dict() | {"_taken": 10**6})
    with pytest.raises(Unfitting, match="slots"):
        RollingHistogram(0.01, 10.0).load_state_dict(
            window.state_dict() | {"slots/0": np.array([-3], np.int32)}
        )
    level = RollingLevel(1.0, 0.01)
    with pytest.raises(Unfitting, match="_taken"):
        RollingLevel(1.0, 0.01).load_state_dict(level.state_dict() | {"_taken": 100})
