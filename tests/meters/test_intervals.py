"""A table of intervals against plain calculations over the frames, and how it adds up."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.core.clock import Interval
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import JoinedRows, readings_of
from tests.meters.threadless import FS, Meters

BERLIN = ZoneInfo("Europe/Berlin")
BEGAN = datetime(2026, 10, 24, 21, 59, 53, 870_000, tzinfo=timezone(timedelta(hours=2))).timestamp()
"""6.13 s before a whole minute."""


def noise(seconds, seed=3):
    """Noise whose level goes up and down by 30 dB."""
    rng = np.random.default_rng(seed)
    size = round(seconds * FS)
    knots = np.arange(0, seconds + 1.7, 1.7)
    level = np.interp(np.arange(size) / FS, knots, rng.uniform(-55, -25, len(knots)))
    return (rng.standard_normal(size) * 10 ** (level / 20)).astype(np.float32)


class Kept(Meters):
    """Meters that keep the frames of the sound level meter, and the intervals."""

    def __init__(self, names=("spl",), seconds=5, zone=UTC, **more):
        self.frames = []
        super().__init__(names, 100, interval=Interval(seconds, zone), pass_on=self.keep, **more)

    def keep(self, frames):
        self.frames += [frames] if frames.model == "spl" else []
        return [frames]

    def finish(self, end_s):
        for one in self.measurements:
            one.flush()
        return self.table.intervals_ended(end_s)

    def plain(self, begin_s, end_s):
        """Levels of the frames after one time until another, by the definition."""
        time_s = np.concatenate([f.time_s for f in self.frames])
        there = (time_s > begin_s + 1e-6) & (time_s <= end_s + 1e-6)
        since_s = np.concatenate([f.since_s for f in self.frames])
        fault = np.concatenate([f.fault for f in self.frames])
        square, power, highest, *_ = (
            np.concatenate([f.values[k][0] for f in self.frames], axis=-1) for k in range(3)
        )
        heard = there & ~((fault & (Fault.GAP | Fault.NON_FINITE)) > 0) & (since_s >= 0.12)
        fast = level_db(power[0, there & (since_s > 2.2) & (time_s > 0.63)])
        return {
            "laeq_db": float(level_db(square[0, heard].mean())),
            "measured_s": 0.01 * heard.sum(),
            "lafmax_db": float(level_db(highest[0, there & (since_s > 2.2)].max(initial=0.0))),
            **{f"l{n}_db": float(np.percentile(fast, 100 - n)) for n in (10, 50, 90) if len(fast)},
        }


@pytest.mark.cases(2)
@pytest.mark.parametrize("block_ms", [10.0, 70.0, 977.0])
def test_each_interval_is_that_of_its_frames(block_ms):
    kept = Kept(block_ms=block_ms)
    kept.take(noise(23.4))
    rows = kept.finish(23.4)
    assert rows["time_s"].tolist() == [0, 5, 10, 15, 20]
    assert rows["end_s"].tolist() == [5, 10, 15, 20, 23.4]
    assert rows["partial"].tolist() == [False] * 4 + [True]
    for row in rows:
        expected = kept.plain(row["time_s"], row["end_s"])
        for name, value in expected.items():
            if row["time_s"] or name[1:3] not in ("10", "50", "90"):  # the rise is another matter
                assert row[name] == pytest.approx(value, abs=0.05), name
        assert row["laeq_db"] == pytest.approx(expected["laeq_db"], abs=1e-4)
        assert row["measured_s"] == pytest.approx(row["end_s"] - row["time_s"], abs=1e-6)
        assert (row["excluded_s"], row["paused_s"], row["local"]) == (0, 0, None)


def energy_mean(rows):
    weights = rows["measured_s"]
    there = weights > 0
    return 10 * np.log10(np.average(10 ** (rows["laeq_db"][there] / 10), weights=weights[there]))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))]
)
def test_intervals_add_up_whatever_happens(seed):
    """With gaps of all lengths, a pause, and blocks of any size."""
    rng = np.random.default_rng(seed)
    kept = Kept(
        ["spl", "bs1770"], 5, block_ms=float(rng.choice([10.0, 30.0, 100.0])), epoch=lambda s: BEGAN
    )
    at_s = 0.0
    for turn in range(6):
        seconds, gap = float(rng.uniform(1.0, 4.0)), int(rng.choice([0, 5, 480, 30_001, 400_000]))
        if turn == 3:
            kept.table.event(Event("paused", round(at_s * FS), at_s, 0.0))
        if turn == 4:
            kept.table.event(Event("continued", round(at_s * FS), at_s, 0.0))
        x = noise(seconds, seed * 100 + turn)
        kept.take(x, gap)
        at_s += (len(x) + gap) / FS
    rows = kept.finish(at_s)
    whole = kept.table.summary()
    counted = kept.table.readings["spl"].counted_s()
    assert energy_mean(rows) == pytest.approx(whole["laeq_db"], abs=1e-4)
    assert np.nanmax(rows["lafmax_db"]) == pytest.approx(whole["lafmax_db"], abs=1e-4)
    assert np.nanmax(rows["lcpeak_db"]) == pytest.approx(whole["lcpeak_db"], abs=1e-4)
    assert np.nanmax(rows["true_peak_dbtp"]) == pytest.approx(whole["true_peak_dbtp"], abs=1e-4)
    assert rows["measured_s"].sum() == pytest.approx(counted["measured_s"], abs=1e-6)
    assert rows["excluded_s"].sum() == pytest.approx(counted["excluded_s"], abs=1e-6)
    spans = rows["measured_s"] + rows["excluded_s"] + rows["paused_s"]
    np.testing.assert_allclose(spans, rows["end_s"] - rows["time_s"], atol=0.021)
    assert rows["paused_s"].sum() > 0.9
    seconds = [text[17:19] for text in rows["local"]]
    assert seconds == ["53", *(f"{(55 + 5 * k) % 60:02}" for k in range(len(rows) - 1))]
    assert (rows["end_s"][:-1] == rows["time_s"][1:]).all()
    gaps = np.array([bool(fault & Fault.GAP) for fault in rows["fault"]])
    assert not (gaps & (rows["excluded_s"] + rows["paused_s"] == 0)).any()


def test_a_reset_goes_by_intervals_and_its_undoing_too():
    plain, reset = Kept(), Kept()
    for kept in (plain, reset):
        for second in range(12):
            kept.take(noise(1.0, second))
            if kept is reset and second in (2, 7):
                kept.table.event(Event("readings_reset", second * FS, float(second), 0.0))
            if kept is reset and second in (3, 9):
                kept.table.event(Event("reset_undone", second * FS, float(second), 0.0))
    rows = [[*kept.finish(12.0)] for kept in (plain, reset)]
    assert len(rows[0]) == 3
    assert rows[0] == rows[1]


def test_a_clock_that_is_set_forward_leaves_out_what_it_leaps_over():
    kept = Kept(
        zone=BERLIN,
        seconds=60,
        block_ms=100.0,
        epoch=lambda s: BEGAN + (3600.0 if s > 20 else 0.0),
    )
    kept.take(np.tile(noise(9.0), 10))
    rows = kept.finish(90.0)
    began = [text[11:16] for text in rows["local"]]
    assert began == ["21:59", "22:00", "23:00", "23:01"]
    assert rows["partial"].tolist() == [True, True, True, True]
    assert rows["end_s"] - rows["time_s"] == pytest.approx([6.13, 13.87, 46.13, 23.87], abs=0.02)
    assert rows["measured_s"].sum() == pytest.approx(90.0)


def test_a_day_ends_at_local_midnight():
    given = {"interval": "24h", "began": "2026-10-24T23:59:59.95", "zone": "Europe/Berlin"}
    m = measure(np.zeros(4800), FS, "spl", **given)
    began = ["2026-10-24T23:59:59.950+02:00", "2026-10-25T00:00:00+02:00"]
    assert m.intervals["local"].tolist() == began
    assert m.intervals["partial"].all()
    assert m["utc"][0] == np.datetime64("2026-10-24T21:59:59.950")
    assert m.header["interval"]["clock"] == "Europe/Berlin"


def test_intervals_go_on_where_they_were_saved():
    whole, first, second = (Kept(["spl", "zwicker"], epoch=lambda s: BEGAN) for _ in range(3))
    x = noise(13.7)
    whole.take(x)
    expected = [*whole.finish(13.7)]
    cut = round(8.03 * FS)
    first.take(x[:cut])
    rows = [*first.table.intervals_ended()]
    second.table.load_state_dict(first.table.state_dict())
    second.measurements = first.measurements
    for one in second.measurements:
        one._batch._emit_frames = second.emit
    second.take(x[cut:])
    assert [*rows, *second.finish(13.7)] == expected
    screen = JoinedRows(readings_of(["spl", "zwicker"], 1), 100, FS)
    screen.load_state_dict(whole.table.state_dict())


def test_a_model_without_statistics_has_no_intervals():
    with pytest.raises(ValueError, match="king2019 has no statistics"):
        measure(np.zeros(4800), FS, "king2019", interval=1)


def test_measure_gives_a_table_of_every_model():
    names = ["moore2016", "gm2002", "zwicker", "bs1770", "spl", "third_octave", "spectrum"]
    x = noise(3.2)
    m = measure(
        x, FS, names, calibration=100.0, interval=1, columns=["l5_db", "laf_db", "zwicker_n_sone"]
    )
    assert m.intervals["time_s"].tolist() == [0, 1, 2, 3]
    for name in (
        *("laeq_db", "lafmax_db", "lafmin_db", "l5_db", "l10_db", "l50_db", "l90_db", "lcpeak_db"),
        *(
            "max_ltl_phon",
            "ltl_n5_phon",
            "gm2002_ltl_n5_phon",
            "zwicker_n5_sone",
            "zwicker_nmax_sone",
        ),
        *(
            "integrated_lufs",
            "true_peak_dbtp",
            "lzeq_1000hz_db",
            "lzeq_31_5hz_db",
            "spectrum_max_db",
        ),
    ):
        assert np.isfinite(m.intervals[name][1]), name
    assert "laf_db" not in m.intervals.columns
    assert m.intervals["max_ltl_phon"].max() == pytest.approx(m.summary["max_ltl_phon"], abs=1e-4)
    assert energy_mean(m.intervals) == pytest.approx(m.summary["laeq_db"], abs=1e-4)
    assert measure(x, FS, "spl").intervals is None
    assert m.header["interval"]["clock"] == "elapsed time"


@pytest.mark.parametrize("interval", [1, 2])
def test_loudness_of_a_window_counts_where_it_ends(interval):
    x = 1e-3 * np.random.default_rng(0).standard_normal(round(6.0115 * FS))
    loud = slice(round(1.85 * FS), round(2.15 * FS))
    x[loud] *= 100.0
    for sound in (x, x[: loud.stop]):
        found = measure(sound, FS, "bs1770", interval=interval)
        highest = [f"max_{name}_lufs" for name in ("momentary", "short_term")]
        for name in highest[: 1 if len(sound) < 3 * FS else 2]:
            told = np.nanmax(found.intervals[name])
            assert told == pytest.approx(found.summary[name], abs=1e-5)
