"""Frames that are not there pass as that many that do not count, at no cost."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import (
    ProgrammeLoudness,
    RollingHistogram,
    RollingLevel,
    SoundLevelMeter,
    SpectrumMeter,
    ThirdOctaveMeter,
)
from amt_stream.meters.rows.models.ecma418 import TONALITY
from tests.meters.one_quantity import ecma_meter, loudness_meter, sharpness_meter, zwicker_meter

COUNTS = [0, 1, 7, 99, 100, 101, 350, 399, 400, 401, 1234]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("before", [0, 50, 100, 730])
def test_windows_move_on(count, before):
    """Windows of 400 values, in slots of 4, and of 100."""
    rng = np.random.default_rng(count)
    values = rng.uniform(30, 90, before + 500)
    for make in (lambda: RollingHistogram(0.01, 4.0), lambda: RollingLevel(1.0, 0.01)):
        skipping, counting = make(), make()
        for one in (skipping, counting):
            one.add(values[:before])
        skipping.skip(count)
        counting.add(np.full(count, np.nan))
        for at in range(before, before + 500, 20):
            given = [one.add(values[at : at + 20]) for one in (skipping, counting)]
            if given[0] is not None:
                np.testing.assert_array_equal(*given)
            else:
                counts = [one.histogram.used for one in (skipping, counting)]
                np.testing.assert_array_equal(*counts)


def of_values(low, high, silent=1.0):
    """Feeds a meter with a value a frame: between two numbers, or that of silence."""

    def update(meter, n, rng, valid):
        values = rng.uniform(low, high, n) if rng else np.full(n, silent)
        return meter.update(np.full(n, 9.0), values, valid)

    return update


def of_programme(meter, n, rng, valid):
    energy = rng.uniform(0.001, 0.01, n) if rng else np.zeros(n)
    return meter.update(energy, energy[None], energy[None], valid)


def of_sound_level(meter, n, rng, valid):
    """What is left out was heard: whoever missed it missed no sound."""
    power = rng.uniform(0.001, 0.01, n) if rng else np.zeros(n)
    timed = np.tile(power, (9, 1))
    given = timed[:3], timed, timed, timed, timed[:3], np.sqrt(timed[:3])
    return meter.update(*given, valid, np.full(n, np.inf))


def of_third_octaves(meter, n, rng, valid):
    power = rng.uniform(0.001, 0.01, (2, n)) if rng else np.zeros((2, n))
    timed = np.stack([power, power])
    return meter.update(power, timed, timed, valid, np.full(n, np.inf))


def of_spectrum(meter, n, rng, valid):
    level = rng.uniform(40, 60, n) if rng else np.full(n, 50.0)
    return meter.update(20 * level, level, valid)


METERS = {
    "loudness": (of_values(40, 60, 50.0), lambda: loudness_meter(["ltl_n5_1s_phon"])),
    "zwicker": (of_values(1, 9), lambda: zwicker_meter(["n5_1s_sone"])),
    "sharpness": (of_values(0.5, 3), lambda: sharpness_meter(["s5_1s_acum"])),
    "ecma": (of_values(0, 0.1), lambda: ecma_meter(TONALITY, ["t5_1s_tu"])),
    "programme": (of_programme, ProgrammeLoudness),
    "third octaves": (
        of_third_octaves,
        lambda: ThirdOctaveMeter((100.0, 1000.0), ["lzeq_100hz_1s_db"]),
    ),
    "spectrum": (of_spectrum, lambda: SpectrumMeter(25.0)),
    "sound level": (of_sound_level, lambda: SoundLevelMeter(["l10_2s_db", "laeq_1s_db"])),
}


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize(("update", "make"), METERS.values(), ids=METERS)
def test_meters_leave_them_out(update, make, paused):
    """As frames that are not valid."""
    readings = []
    for skips in (False, True):
        rng, meter = np.random.default_rng(3), make()
        update(meter, 900, rng, None)
        meter.paused = paused
        if skips:
            meter.skip(333)
        else:
            update(meter, 333, None, np.zeros(333, bool))
        meter.paused = False
        update(meter, 901, rng, None)
        readings.append(meter.reading())
    assert readings[0] == readings[1]
    assert readings[1]["excluded_s"] > 0 or paused


@pytest.mark.parametrize(("update", "make"), METERS.values(), ids=METERS)
def test_a_year_costs_nothing(update, make):
    meter = make()
    update(meter, 900, np.random.default_rng(0), None)
    meter.skip(365 * 86400 * 1000)
    update(meter, 900, np.random.default_rng(0), None)
    assert meter.reading()["excluded_s"] > 86400
