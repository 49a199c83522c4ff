"""What rows, statistics and limits say of a time in which a model was switched off."""

import numpy as np
import pytest

from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.catalog import entry
from amt_stream.meters.frames import BUFFER, DEVICE, Event, Fault, missing_words
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.rows import (
    JoinedRows,
    Rows,
    choose,
    columns_of,
    header,
    readings_of,
    summary,
)
from amt_stream.sessions.outputs import LatestReadings
from amt_stream.sessions.results import Results
from tests.engine.measuring import measuring

FS = 48000
STEP = FS // 10
NAMES = ("spl", "bs1770")
LIMITS = [limit_from_text("laeq_5s_db>100"), limit_from_text("laeq_db>100")]
OTHER = limit_from_text("momentary_lufs>0")
FROM_S, TO_S, END_S = 3.0, 5.0, 8.0
"""The sound level is off between these times."""


def made(duration_s=None) -> JoinedRows:
    readings, limits = readings_of(NAMES, 2), [*LIMITS, OTHER]
    choose(readings, None, columns_of(limits))
    return JoinedRows(readings, 100, FS, limits=limits, duration_s=duration_s)


class Meter:
    """Runs models on noise whose level changes every 0.1 s; `frames` are those of the first."""

    def __init__(self, take, off_until_s=TO_S) -> None:
        self.frames, self.rows = [], []
        self._take = take
        self._each = [self._measurement(name) for name in NAMES]
        rng = np.random.default_rng(7)
        level = np.repeat(10 ** rng.uniform(-2, -1, 80), STEP)[:, None]
        sound = (level * rng.standard_normal((round(END_S * FS), 2))).astype(np.float32)
        first = self._each[0]
        for at in range(0, len(sound), STEP):
            if at == FROM_S * FS:
                first.commands.put(first.switch_off)
            if at == off_until_s * FS:
                first.commands.put(first.switch_on)
            for one in self._each:
                one.take(sound[at : at + STEP])

    def _measurement(self, name: str) -> Measurement:
        ready = ReadyStage(entry(name).build(FS, channels=2), FS, 10.0)
        return measuring(ready, self._emit, Calibration(100.0, source="test"), name=name)

    def _emit(self, frames) -> None:
        self.rows += self._take(frames) or ()
        self.frames += [frames] if frames.model == "spl" else []


@pytest.fixture(scope="module")
def heard():
    rows = made()
    return Meter(rows), rows


def between(rows, from_s, to_s):
    return [row for row in rows if from_s < row["time_s"] <= to_s]


def test_all_of_its_columns_are_empty_and_no_other(heard):
    meter, table = heard
    own = [column.name for column in table.readings["spl"].columns]
    others = ("momentary_lufs", "integrated_lufs")
    assert {"laf_db", "laeq_db", "laeq_5s_db", "lafmax_db", "l50_db"} <= set(own)
    assert any("_until_" in name for name in own)
    away = between(meter.rows, FROM_S + 0.1, TO_S)
    assert len(away) == 19
    for row in away:
        assert {row[name] for name in own} == {None}
        assert None not in [row[name] for name in others]
        assert {row[limit.state] for limit in LIMITS} == {"unknown"}
        assert "off" in row["fault"]


def test_it_settles_and_goes_on_without_the_time_between(heard):
    meter, _ = heard
    back = between(meter.rows, TO_S + 0.1, END_S)
    assert None not in [row["laeq_db"] for row in back]
    # More than 1 % of their time was not measured.
    assert {row[limit.state] for row in back for limit in LIMITS} == {"unknown"}
    settling = [row["time_s"] for row in back if "laf_db" in row["settling_columns"]]
    assert min(settling) > TO_S
    assert 0.5 < max(settling) - TO_S < 3.0
    frames, power, count = meter.frames, 0.0, 0
    for one in frames:
        there = (one.fault == 0) & (one.since_s >= 0.1)
        power += one.values.mean_square[:, 0][:, there].sum(-1)
        count += int(there.sum())
    expected = 10 * np.log10(power / count / 4e-10).max()
    assert meter.rows[-1]["laeq_db"] == pytest.approx(expected, abs=0.01)


def test_a_limit_of_another_model_is_judged_all_the_time(heard):
    meter, table = heard
    states = {row[OTHER.state] for row in meter.rows if row["momentary_lufs"] is not None}
    assert states == {"green"}
    (stood,) = (one for one in table.stood() if one.limit is OTHER)
    assert stood.exceeded is False
    assert stood.unjudged_s == 0.0


def test_rows_of_a_broken_log_give_the_same_results_of_limits(heard):
    meter, table = heard
    models, source = [{"name": name} for name in NAMES], {"name": "noise", "fs": FS}
    source |= {"channels": [1, 2], "duration_s": None}
    told = header(table, models, [Calibration(100.0, source="test")], source)
    found = Results("noise", told, Rows.of(meter.rows), meter.rows[-1])
    assert found.limits == [one.to_dict() for one in table.stood()]


def test_measured_left_out_and_off_are_all_of_the_time(heard):
    _, table = heard
    counted = table.counted.counted_s()
    assert counted["spl"]["off_s"] == pytest.approx(TO_S - FROM_S, abs=0.02)
    assert counted["spl"]["excluded_s"] < 0.5
    for one in counted.values():
        assert sum(one.values()) == pytest.approx(END_S, abs=0.11)
    assert counted["bs1770"]["off_s"] == 0.0
    assert counted["bs1770"]["measured_s"] == pytest.approx(END_S, abs=0.11)
    source = {"name": "noise", "fs": FS, "channels": [1, 2], "duration_s": None}
    told = summary(table, [{"name": name} for name in NAMES], [Calibration(100.0)], source)
    assert told["statistics"]["spl"]["off_s"] == pytest.approx(TO_S - FROM_S, abs=0.02)
    assert "missing" not in told


def test_a_sound_that_ends_without_its_model_has_no_verdict_by_it():
    rows = made(duration_s=END_S)
    meter = Meter(rows, off_until_s=END_S)
    meter.rows += rows.rest(END_S)
    last = meter.rows[-1]
    assert last["time_s"] == END_S
    assert last["laeq_db"] is None
    assert last["integrated_lufs"] is not None
    assert {last[limit.state] for limit in LIMITS} == {"unknown"}
    assert rows.summary()["laeq_db"] is not None


def test_a_display_has_the_statistics_with_the_time_that_they_cover():
    latest = LatestReadings(made())
    seen = []

    def take(frames):
        latest(frames)
        row, totals = latest.row, latest.totals
        if row is not None and row["laeq_db"] is not None:
            seen.append((row["laeq_db"], totals["laeq_db"], row["lafmax_db"], totals["lafmax_db"]))

    Meter(take, off_until_s=END_S)
    assert len(seen) > 100
    for row, total, highest, total_highest in seen:
        assert total == row
        assert total_highest == highest
    assert latest.row["laeq_db"] is None
    assert latest.totals["laeq_db"] == pytest.approx(seen[-1][1], abs=0.01)
    assert latest.counted_s["spl"]["measured_s"] == pytest.approx(FROM_S, abs=0.11)
    assert latest.counted_s["spl"]["off_s"] > 4.0


def test_gaps_are_summed_by_cause_since_the_last_reset():
    rows = made()
    Meter(rows)

    def gap(at_s, samples, cause):
        rows.event(Event("gap", round(at_s * FS), at_s, at_s, samples, "", "", cause))

    gap(1.0, FS, DEVICE)
    rows.event(Event("readings_reset", 2 * FS, 2.0, 2.0))
    assert not any(rows.counted.missing_s(FS).values())
    rows.event(Event("reset_undone", 2 * FS, 2.0, 2.0))
    gap(3.0, FS // 2, BUFFER)
    gap(4.0, FS // 4, BUFFER)
    rows.event(Event("paused", 5 * FS, 5.0, 5.0))
    gap(6.0, FS, DEVICE)
    missing = rows.counted.missing_s(FS)
    assert (missing[DEVICE], missing[BUFFER]) == (1.0, 0.75)
    assert missing_words(missing) == (
        "1.00 s lost by the device or the sound server, "
        "0.75 s dropped by this program, whose buffer was full"
    )


def test_its_state_goes_on_where_it_was_saved():
    rows, again = made(), made()
    Meter(rows)
    again.load_state_dict(rows.state_dict())
    assert again.counted.counted_s() == rows.counted.counted_s()
    assert again.counted.missing_s(FS) == rows.counted.missing_s(FS)


def test_frames_without_the_model_say_so_and_miss_nothing(heard):
    meter, _ = heard
    sample = np.concatenate([one.sample for one in meter.frames])
    fault = np.concatenate([one.fault for one in meter.frames])
    assert (np.diff(sample) == FS // 100).all()
    assert not (fault & Fault.GAP).any()
