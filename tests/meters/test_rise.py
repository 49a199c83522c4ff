"""Statistics of sounds that rise from silence, against the rule worked out from all frames."""

from typing import NamedTuple

import numpy as np
import pytest

from amt_stream.meters.accumulators import Histogram
from amt_stream.meters.accumulators.sound_level import SoundLevelMeter
from tests.meters.one_quantity import loudness_meter, sharpness_meter, zwicker_meter


def counted(values, rising, width=0.0):
    """Those that count of `values` (n,): of the `rising`, none below the least of the others.

    width: of the classes in which values are compared
    """
    there = ~np.isnan(values)
    rest = values[~rising & there]
    if not len(rest):
        return values[there]
    least = np.floor(rest.min() / width + 1e-6) * width if width else rest.min()
    return np.append(rest, values[rising & there & (values >= least)])


class Case(NamedTuple):
    """A meter, how it is fed, frames per second, its rise, error, mean and percentiles."""

    meter: object
    feed: object
    rate: int
    rise_s: float
    error: float
    mean: str | None
    percentiles: dict


def spl(columns=()):
    def feed(meter, time_s, level):
        power = np.tile(4e-10 * 10 ** (level / 10), (9, 1))
        return meter.update(
            power[:3],
            power,
            power,
            power,
            power[:3],
            np.sqrt(power[:3]),
            None,
            np.full(len(level), np.inf),
            time_s[0],
        )

    return Case(
        SoundLevelMeter(columns), feed, 100, 0.625, 0.03, None, {"l10_db": 90, "l90_db": 10}
    )


def by_level(meter, time_s, level):
    return meter.update(time_s, level)


def loudness(columns=()):
    percentiles = {"ltl_n5_phon": 95, "ltl_n99_phon": 1}
    return Case(loudness_meter(columns), by_level, 1000, 0.5, 0.03, None, percentiles)


def zwicker(columns=()):
    percentiles = {"n5_sone": 95, "n90_sone": 10}
    return Case(zwicker_meter(columns), by_level, 500, 0.5, 0.05, None, percentiles)


def sharpness(columns=()):
    def feed(meter, time_s, level):
        return meter.update(time_s, level / 10)

    percentiles = {"s5_acum": 95, "s90_acum": 10}
    return Case(sharpness_meter(columns), feed, 500, 0.5, 0.003, "mean_acum", percentiles)


def sound(name, time_s):
    """A level over time that rises as a filter of 0.125 s lets it."""
    noise = np.random.default_rng(1).normal(0, 0.3, len(time_s))
    steady = 70 + 10 * np.log10(-np.expm1(-(time_s + 0.01) / 0.125)) + noise
    if name == "steady":
        return steady
    if name == "burst":
        return np.where(time_s < 0.2, steady, np.maximum(10, 70 - 60 * (time_s - 0.2)) + noise)
    if name == "step":
        return np.where(time_s < 0.3, steady - 30, steady)
    return np.where((time_s > 0.1) & (time_s < 0.15), np.nan, steady)


def fed(case, values, time_s, size):
    parts = [
        case.feed(case.meter, time_s[at : at + size], values[at : at + size])
        for at in range(0, len(values), size)
    ]
    return dict(zip(case.meter.columns, np.concatenate(parts, 1), strict=True))


@pytest.mark.cases(10)
@pytest.mark.parametrize("length_s", [0.02, 0.49, 0.51, 0.64, 3.0])
@pytest.mark.parametrize("name", ["steady", "burst", "step", "holes"])
@pytest.mark.parametrize("of", [spl, loudness, zwicker, sharpness])
def test_readings_and_columns(of, name, length_s):
    """At the end and after each frame, whatever the blocks: the same as of all frames at once."""
    wanted = of()
    columns = [*wanted.percentiles, *([wanted.mean] if wanted.mean else [])]
    found = []
    for size in (7, 441):
        case = of(columns)
        time_s = (np.arange(round(length_s * case.rate)) + (of is spl)) / case.rate
        values = sound(name, time_s)
        rising = time_s < case.rise_s - 1e-9
        found.append(fed(case, values, time_s, size))
        told = values / (10 if of is sharpness else 1)
        width = {spl: 0.05, loudness: 0.05, zwicker: 0.025, sharpness: 0.005}[of]
        there, reading = counted(told, rising, width), case.meter.reading()
        for column, percent in case.percentiles.items():
            expected = np.percentile(there, percent)
            assert reading[column] == pytest.approx(expected, abs=case.error), column
            for at in range(0, len(values), 13):
                value = found[-1][column][at]
                if value == value and at % (case.rate // 10) == (9 if of is spl else 0):
                    so_far = counted(told[: at + 1], rising[: at + 1], width)
                    assert value == pytest.approx(np.percentile(so_far, percent), abs=case.error)
        if case.mean:
            assert reading[case.mean] == pytest.approx(counted(told, rising).mean())
            for at in range(0, len(values), 13):
                so_far = counted(told[: at + 1], rising[: at + 1])
                assert found[-1][case.mean][at] == pytest.approx(so_far.mean())
    for column in columns:
        np.testing.assert_array_equal(found[0][column], found[1][column])


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_window_has_of_the_rise_what_it_still_holds(size):
    """Of 1 s, in slots of a frame: after each 0.1 s, until the rise is past."""
    time_s = np.arange(1, 301) / 100
    for name in ("steady", "burst", "step"):
        values, case = sound(name, time_s), spl(("l10_1s_db", "l90_1s_db"))
        told, rising = fed(case, values, time_s, size), time_s < 0.625
        for at in range(9, 300, 10):
            window = slice(max(0, at - 99), at + 1)
            there = counted(values[window], rising[window], 0.05)
            for column, percent in (("l10_1s_db", 90), ("l90_1s_db", 10)):
                expected = np.percentile(there, percent)
                assert told[column][at] == pytest.approx(expected, abs=0.03), (name, at)


@pytest.mark.parametrize("of", [spl, loudness, zwicker, sharpness])
def test_a_state_and_a_pause_within_the_rise(of):
    """What was saved goes on as if nothing had been; what is paused is in none of it."""
    one = of()
    time_s = (np.arange(2 * one.rate) + (of is spl)) / one.rate
    values = sound("burst", time_s)
    cut, paused = round(0.3 * one.rate), slice(round(0.1 * one.rate), round(0.15 * one.rate))
    fed(one, values[:cut], time_s[:cut], 10)
    other = of()
    other.meter.load_state_dict(one.meter.state_dict())
    for case in (one, other):
        fed(case, values[cut:], time_s[cut:], 10)
    assert one.meter.reading() == other.meter.reading()
    pausing, plain = of(), np.delete(values, np.r_[paused])
    fed(pausing, values[: paused.start], time_s[: paused.start], 10)
    pausing.meter.pause()
    fed(pausing, values[paused] + 20, time_s[paused], 10)
    pausing.meter.unpause()
    fed(pausing, values[paused.stop :], time_s[paused.stop :], 10)
    rising = np.delete(time_s, np.r_[paused]) < one.rise_s - 1e-9
    there = counted(plain / (10 if of is sharpness else 1), rising)
    for column, percent in one.percentiles.items():
        expected = np.percentile(there, percent)
        assert pausing.meter.reading()[column] == pytest.approx(expected, abs=one.error)


@pytest.mark.parametrize("of", [spl, loudness, zwicker, sharpness])
def test_after_a_reset_nothing_of_the_rise_is_left(of):
    case = of()
    time_s = (np.arange(2 * case.rate) + (of is spl)) / case.rate
    values = sound("burst", time_s)
    fed(case, values[: case.rate], time_s[: case.rate], 10)
    case.meter.reset()
    fed(case, values[case.rate :], time_s[case.rate :], 10)
    there = values[case.rate :] / (10 if of is sharpness else 1)
    for column, percent in case.percentiles.items():
        expected = np.percentile(there, percent)
        assert case.meter.reading()[column] == pytest.approx(expected, abs=case.error)


def test_the_rise_survives_a_saved_state():
    one = Histogram()
    one.add([50.0, 60.0, 71.0, 70.0], rising=2)
    one.add([65.0, 72.0], rising=1)
    again = Histogram()
    again.load_state_dict(one.state_dict())
    # 50, 60 and 65 are lower than the least of the others, 70.
    assert len(one) == len(again) == 3
    one.add([60.0])
    assert len(one) == 6
