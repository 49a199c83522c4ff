"""What counts of a measurement whose calibration holds for a part of it only."""

from functools import partial

import numpy as np
import pytest

from amt_stream.core.clock import Interval
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Event
from amt_stream.meters.presets import Preset
from amt_stream.meters.source_description import InputGain, SourceDescription
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from tests.meters.threadless import FS, MODELS, Meters

FULL, HALF = InputGain((100.0,)), InputGain((50.0,))
STATISTICS = {
    "spl": ("laeq_db", "lafmax_db", "lafmin_db", "l90_db", "lcpeak_db"),
    "moore2016": ("max_ltl_phon", "ltl_n90_phon"),
    "zwicker": ("zwicker_nmax_sone", "zwicker_n90_sone"),
    "third_octave": ("lzeq_1000hz_db",),
    "spectrum": ("spectrum_max_db",),
}


class Turned:
    """A source whose input gain is turned down."""

    description = SourceDescription.of_device(2, HALF)


def sound(seconds):
    return np.random.default_rng(1).standard_normal(round(seconds * FS)).astype(np.float32) * 0.01


def turn(meters, gain):
    """From the next sample on."""
    for one in meters.measurements:
        one.commands.put(partial(one.know_gains, [gain]))


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", STATISTICS)
def test_uncalibrated_sound_counts_in_no_statistic_of_calibrated_sound(name):
    meters, usual = Meters([name]), Meters([name])
    turn(meters, FULL)
    for one in (meters, usual):
        one.take(sound(4.0))
    turn(meters, HALF)
    meters.take(40 * sound(2.0))  # however loud
    turn(meters, FULL)
    meters.take(sound(4.0))
    usual.take(sound(4.0))
    found, expected = meters.table.summary(), usual.table.summary()
    for column in STATISTICS[name]:
        assert found[column] == pytest.approx(expected[column], abs=0.3), column
    rows = meters.rows
    assert not rows.where((rows["time_s"] > 4.05) & (rows["time_s"] < 5.9))["calibrated"].any()
    assert rows.where(rows["time_s"] < 3.9)["calibrated"].all()
    left_out_s = meters.table.readings[name].counted_s()["excluded_s"]
    assert left_out_s >= 2.0


def test_uncalibrated_sound_counts_while_there_is_no_other_and_then_counting_begins_anew():
    meters = Meters(["spl"])
    for one in meters.measurements:
        one.listeners[0].input.in_use.began_at = '{"percent": [80], "muted": false, "port": ""}'
    turn(meters, HALF)
    meters.take(10 * sound(3.0))
    meters.table.catch_up()
    loud = meters.table.summary()["laeq_db"]
    assert meters.table.readings["spl"].level == "relative"
    turn(meters, InputGain((80.0,)))
    meters.take(sound(3.0))
    assert meters.table.summary()["laeq_db"] == pytest.approx(loud - 20, abs=0.1)
    assert meters.table.summary()["lafmax_db"] < loud - 15


def test_an_interval_says_whether_its_statistics_are_calibrated():
    meters = Meters(["spl"], step_ms=100, interval=Interval(2))
    turn(meters, FULL)
    meters.take(sound(3.0))
    turn(meters, HALF)
    meters.take(sound(3.0))
    turn(meters, FULL)
    meters.take(sound(2.01))
    rows = meters.table.intervals_ended()
    assert rows["calibrated"].tolist() == [True] * 4
    assert rows["measured_s"] == pytest.approx([2.0, 1.0, 0.0, 1.9], abs=0.15)
    assert rows["excluded_s"] == pytest.approx([0.0, 1.0, 2.0, 0.1], abs=0.15)
    assert np.isnan(rows["laeq_db"][2])
    assert rows["laeq_db"][[0, 1, 3]] == pytest.approx(rows["laeq_db"][0], abs=0.1)


@pytest.fixture
def table():
    preset = Preset(("spl",))
    given = Calibration(120.0, source="a test")
    several = ("desk", (1,)), ("door", (2,))
    sound = Sound("two", FS, (1, 2), [given], None, microphones=several, source=Turned())
    models = {"spl": MODELS["spl"]()}
    return Table(preset, models, sound, RowSettings(100))


def test_headers_follow_whether_a_calibration_holds(table):
    def told(kind, microphone):
        table.event(Event(kind, 0, 0.0, 0.0, text="it was turned", microphone=microphone))
        return [one["calibrated"] for one in table.header()["calibration"]]

    assert table.header()["source"]["sound"]["input_gain"] == HALF.to_dict()
    assert told("gain", "") == [True, True]
    assert told("uncalibrated", "door") == [True, False]
    assert table.header()["calibration"][1]["origin"] == "it was turned"
    assert [one["calibrated"] for one in table.sound.calibration_of_columns] == [True, False]
    assert [one["calibrated"] for one in table.settings["calibration"]] == [True]
    assert table.summary()["calibrated"], "while it does not hold, nothing is counted"
    assert told("uncalibrated", "desk") == [False, False]
    assert told("calibrated", "door") == [False, True]
    assert told("calibrated", "desk") == [True, True]
    assert table.header()["calibration"][1]["origin"] == "a test"
