"""Columns and readings by themselves, without a command and without an engine."""

import functools

import numpy as np
import pytest

from amt_stream.dsp.stages import Moore2016Output, ZwickerOutput
from amt_stream.meters import catalog
from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.names import stem_and_unit
from amt_stream.meters.rows import FieldReadings, JoinedRows, NoSuchColumn, choose, readings_of
from amt_stream.meters.rows.block import in_seven_digits, in_utc, python_values
from amt_stream.meters.rows.models.quantity import ColumnWords, Quantity, QuantityReadings, Unit
from amt_stream.meters.rows.readings import widest_readings
from amt_stream.meters.rows.words import NO_UNIT, reading_text


def frames(time_s, values, model="", fault=0, since_s=np.inf, stretch=0):
    n = len(time_s)
    return Frames(
        time_s=np.asarray(time_s),
        sample=np.zeros(n, np.int64),
        utc=np.full(n, np.nan),
        values=values,
        fault=np.broadcast_to(np.uint8(fault), n).copy(),
        settling=np.broadcast_to(since_s, n) < 1.0,
        since_s=np.broadcast_to(np.float64(since_s), n).copy(),
        level_db=np.zeros((2, n), np.float32),
        calibrated=True,
        stretch=stretch,
        model=model,
    )


def test_numbers_have_seven_digits_as_text_has_them():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(20000) * 10 ** rng.uniform(-9, 7, 20000)
    values = np.append(values, [0.0, 1.0, 9.9999999, 99999.96, 123456.75])
    expected = [float(f"{v:.7g}") for v in values]
    np.testing.assert_array_equal(in_seven_digits(values), expected)
    assert np.isnan(in_seven_digits(np.array([np.nan, np.inf, -np.inf]))).all()


def test_what_is_not_known_is_none():
    assert python_values("utc", in_utc(np.array([np.nan, 1.7e9]))) == [
        None,
        "2023-11-14T22:13:20.000Z",
    ]
    assert python_values("utc", in_utc(np.array([-7e10, 3e11]))) == [
        "-249-10-15T19:33:20.000Z",
        "11476-08-15T05:20:00.000Z",
    ]
    assert python_values("x", np.array([1.5, np.nan])) == [1.5, None]
    faults = np.array([0, Fault.GAP | Fault.NON_FINITE], np.uint8)
    assert python_values("fault", faults) == ["", "gap non_finite"]


@pytest.mark.parametrize("name", catalog.models_side_by_side())
@pytest.mark.parametrize("channels", [1, 2])
def test_every_column_of_all_that_was_counted_is_in_the_summary(name, channels):
    (readings,) = readings_of([name], channels, band=True).values()
    readings.choose(readings.offered)
    counted = {column.name for column in readings.offered if column.counted}
    assert counted - readings.summary().keys() == set()


@functools.cache
def units():
    """Those of any column."""
    offered = widest_readings(catalog.models_side_by_side()).values()
    return {column.unit.lower() for readings in offered for column in readings.offered} - {NO_UNIT}


def claims_a_unit(name):
    """Whether a name ends in the unit of any column."""
    return stem_and_unit(name)[1] in units()


@pytest.mark.parametrize("name", catalog.models_side_by_side())
@pytest.mark.parametrize("channels", [1, 2])
def test_every_column_says_what_it_is(name, channels):
    (readings,) = readings_of([name], channels).values()
    names = [column.name for column in readings.offered]
    assert len(set(names)) == len(names)
    for column in readings.offered:
        assert column.quantity
        assert column.statistic
        assert column.model == name
        unit = column.unit.lower().removesuffix("_hms").replace("/", "_")
        assert column.name.endswith(f"_{unit}") if unit else not claims_a_unit(column.name)
    assert {column.name for column in readings.columns} <= set(names)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sti", "0.49"),
        ("mti_2000", "0.49"),
        ("m1_250_left", "0.49"),
        ("sti_sd", "0.490"),
        ("lost_share", "0.49"),
        ("impulse_p", "0.5"),
        ("tone_n", "0"),
        ("leq_125_db", "0.5"),
    ],
)
def test_a_number_without_a_unit_is_written_as_one(name, text):
    assert reading_text(name, 0.49) == text


def test_a_window_is_a_column_by_its_name():
    readings = readings_of(["moore2016", "spl"], 2)
    choose(readings, ["ltl_n7_10min_phon", "lceq_60min_db", "l10_2h_right_db"])
    moore, spl = readings.values()
    assert [column.statistic for column in (*moore.columns, *spl.columns)] == [
        "exceeded 7 % of the time, last 10min",
        "equivalent, last 60min",
        "exceeded 10 % of the time, last 2h",
    ]
    for wrong in ("lafmax_10min_db", "laf_1s_db", "lae_1min_db", "lzeq_1s_middle_db"):
        with pytest.raises(NoSuchColumn, match="no column is called"):
            choose(readings, [wrong])


def test_a_model_without_readings_gives_its_outputs():
    readings = FieldReadings("own", ["stl", "ltl"])
    table = JoinedRows({"own": readings}, 10, 48000)
    assert [column.name for column in table.columns] == ["own_stl", "own_ltl"]
    time_s = np.arange(21) / 1000
    values = Moore2016Output(time_s, 2 * time_s, None, None, *[None] * 4)
    rows = table(frames(time_s, values, "own"))
    np.testing.assert_allclose(rows["own_ltl"], [0.0, 0.02, 0.04])
    assert table.summary() == {}


def test_what_settles_after_a_fault_is_not_counted_and_the_first_sound_is():
    """Of Zwicker's loudness: 20 sone, 1, 90 sone while it settles after a gap, then 2 sone."""
    (readings,) = readings_of(["zwicker"], 1).values()
    time_s = np.arange(2000) / 500
    sone = np.select([time_s < 0.4, time_s < 2, time_s < 3.5], [20.0, 1.0, 90.0], 2.0)
    fault = np.where((time_s >= 2) & (time_s < 2.1), int(Fault.GAP), 0)
    since_s = np.where(time_s >= 2, time_s - 2, np.inf)
    values = ZwickerOutput(sone[None].astype(np.float32), None)
    readings.take(frames(time_s, values, "zwicker", fault, since_s))
    assert readings.summary()["zwicker_nmax_sone"] == 20.0
    assert readings.counted_s()["measured_s"] == pytest.approx(2.5, abs=0.005)
    (readings,) = readings_of(["zwicker"], 1).values()
    readings.cover(0.5, 3.8)
    readings.take(frames(time_s, values, "zwicker", fault, since_s))
    assert readings.summary()["zwicker_nmax_sone"] == 2.0


def test_what_cannot_stand_in_rows_is_refused():
    with pytest.raises(ValueError, match="from 3 s to 2 s there is no sound"):
        JoinedRows(readings_of(["spl"], 1), 10, 48000, from_s=3.0, to_s=2.0)
    with pytest.raises(ValueError, match="dual mono is for one channel"):
        catalog.entry("bs1770").load("readings")(2, dual_mono=True)


def test_a_quantity_without_classes_has_a_maximum_and_a_mean():
    rate = Quantity(
        "rate",
        "rate",
        {"hz": Unit("Hz")},
        {
            "now": ColumnWords("rate{side}_{unit}", "instantaneous", "Rate", "R"),
            "max": ColumnWords.maximum("rate_max{side}_{unit}", "Highest rate", "Rmax"),
            "mean": ColumnWords("rate_mean{side}_{unit}", "mean", "Mean rate", "Rm"),
        },
        "A rate.",
        settle_s=0.0,
        rule=CountingRule(rate=10, averages=True),
    )

    class RateReadings(QuantityReadings):
        def __init__(self, channels):
            super().__init__("rate", channels, (rate,), ("rate_hz",))

        def values(self, frames):
            return {"rate": np.asarray(frames.values, np.float64)}

    readings = RateReadings(1)
    readings.take(frames([0.1, 0.2, 0.3], np.array([[1.0, 5.0, 3.0]])))
    assert readings.summary() == {"rate_max_hz": 5.0, "rate_mean_hz": 3.0}
    assert readings.counted_s() == {"measured_s": pytest.approx(0.3), "excluded_s": 0.0}
