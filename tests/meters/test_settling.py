"""After a fault each column is marked until it is what it would have been without."""

import numpy as np
import pytest

from amt_stream.meters.frames import Fault
from amt_stream.meters.rows import choose, readings_of
from amt_stream.meters.rows.block import ALL, names_of
from tests.meters.threadless import FS, MODELS, Meters

OF_THE_MOMENT = {
    "moore2016": ("stl_phon", "ltl_phon"),
    "gm2002": ("gm2002_stl_phon", "gm2002_ltl_phon"),
    "zwicker": ("zwicker_n_phon", "sharpness_acum"),
    "bs1770": ("momentary_lufs", "short_term_lufs"),
    "third_octave": ("lzf_63hz_db", "lzf_1000hz_db", "lzeq_100hz_1s_db", "lzeq_4000hz_1s_db"),
    "spectrum": ("spectrum_peak_db",),
    "spl": ("laf_db", "lcf_db", "lzf_db", "las_db", "lcs_db", "lzs_db", "lai_db", "laeq_1s_db"),
}


def sound_in_steps(rng, seconds, quietest_db=40.0, tones=True):
    """A tone or noise whose level steps by up to 50 dB, every 0.1 to 3 s."""
    levels, lengths = [float(rng.choice([0.0, 50.0]))], []
    while sum(lengths) < seconds:
        lengths.append(rng.uniform(0.1, 3.0))
        levels.append(float(np.clip(levels[-1] + rng.uniform(-50, 50), 0.0, 50.0)))
    level = np.repeat(levels[1:], np.rint(np.array(lengths) * FS).astype(int))[: seconds * FS]
    n = np.arange(len(level))
    carrier = rng.standard_normal(len(n))
    if rng.random() < 0.5 and tones:
        carrier = 1.4 * np.sin(2 * np.pi * 40 * 2 ** rng.uniform(0, 7) * n / FS)
    return (carrier * 10 ** ((quietest_db - 120 + level) / 20) * 0.7).astype(np.float32)


def losses(rng, seconds, last_s):
    """Starts and lengths of what is lost until `last_s`, from a sample to 3 s."""
    found, at = [], int(0.5 * FS)
    while (at := at + int(rng.uniform(0.2, 2.0) * FS)) < last_s * FS:
        lost = int(rng.choice([1, 500, 0.3 * FS, 0.9 * FS, 1.5 * FS, 3 * FS]) * rng.uniform(0.5, 1))
        found.append((at, max(1, lost)))
        at += lost
    return [(start, lost) for start, lost in found if start + lost < (seconds - 0.1) * FS]


def furthest_off(name, rng, seconds, last_s):
    """How far unmarked values of each column are from the fault-free run, and how many are late."""
    # In a band without a tone the click of a gap is any number of dB above what else is there.
    x = sound_in_steps(rng, seconds, tones=name != "third_octave")
    columns = OF_THE_MOMENT[name]
    free, meters = (Meters([name], 20, columns, 50.0) for _ in range(2))
    free.take(x)
    at, lost = 0, (0, 0)
    for start, count in losses(rng, seconds, last_s):
        flags = Fault.OVERLOAD if rng.random() < 0.2 else 0
        meters.take(x[at:start], *lost)
        at, lost = start + count, (count, flags)
    meters.take(x[at:], *lost)
    rows, free = meters.rows, free.rows
    places = np.searchsorted(free["sample"], rows["sample"])
    np.testing.assert_array_equal(free["sample"][places], rows["sample"])
    found = {}
    for column in columns:
        settling = np.array(
            [t == ALL or column in t.split() for t in rows["settling_columns"].tolist()]
        )
        calm = ~settling & (rows["fault"] == 0)
        value, true = rows[column][calm], free[column][places][calm]
        known = ~(np.isnan(value) & np.isnan(true))
        off = np.abs(value - true)[known]
        late = calm & (rows["sample"] >= at)
        found[column] = float(off.max(initial=0.0)), int(late.sum())
    return found


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("name", "seconds", "last_s", "seed"),
    [
        ("moore2016", 13, 4.5, 0),
        ("zwicker", 10, 7.0, 1),
        pytest.param("zwicker", 10, 7.0, 2, marks=pytest.mark.soak),
        ("bs1770", 12, 7.0, 3),
        pytest.param("bs1770", 12, 7.0, 4, marks=pytest.mark.soak),
        ("third_octave", 12, 4.5, 8),
        pytest.param("third_octave", 12, 4.5, 9, marks=pytest.mark.soak),
        pytest.param("spectrum", 12, 4.5, 10, marks=pytest.mark.soak),
        ("spl", 24, 4.5, 5),
        pytest.param("spl", 24, 4.5, 6, marks=pytest.mark.soak),
    ],
)
def test_what_is_not_marked_is_as_without_faults(name, seconds, last_s, seed):
    for column, (off, count) in furthest_off(
        name, np.random.default_rng(seed), seconds, last_s
    ).items():
        assert off <= 0.05, column
        assert count > 10, column


@pytest.mark.quick
def test_short_term_loudness_of_2002_settles_long_before_the_long_term():
    found = furthest_off("gm2002", np.random.default_rng(7), 9, 5.0)
    off, count = found["gm2002_stl_phon"]
    assert off <= 0.05
    assert count > 10
    assert found["gm2002_ltl_phon"][1] == 0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("name", "column", "least_s", "most_s"),
    [
        ("zwicker", "zwicker_n_phon", 0.5, 1.5),
        ("third_octave", "lzf_1000hz_db", 1.9, 2.05),
        ("spectrum", "spectrum_peak_db", 1.9, 2.22),
        ("spl", "laf_db", 1.9, 2.13),
        ("spl", "las_db", 15.0, 16.11),
        ("spl", "lai_db", 17.0, 18.0),
    ],
)
def test_a_fall_by_50_db_in_a_gap_is_forgotten_when_its_mark_ends(name, column, least_s, most_s):
    """Loud sound, of which the last 0.9 s are lost, then quiet: the slowest that there is."""
    n = np.arange(int((2 + most_s + 1) * FS))
    x = (0.7 * np.sin(2 * np.pi * 1000 * n / FS) * np.where(n < 2 * FS, 10**-1.5, 1e-4)).astype(
        np.float32
    )
    free, meters = (Meters([name], 20, [column], 50.0) for _ in range(2))
    free.take(x)
    meters.take(x[: int(1.1 * FS)])
    meters.take(x[2 * FS :], int(0.9 * FS))
    rows, true = meters.rows, free.rows
    places = np.searchsorted(true["sample"], rows["sample"])
    off = np.abs(rows[column] - true[column][places])
    after_s = rows["time_s"] - 2.0
    wrong_until_s = after_s[np.flatnonzero(off > 0.05)[-1]]
    marked_until_s = after_s[np.flatnonzero(rows["settling_columns"] == ALL)[-1]]
    assert least_s < wrong_until_s <= marked_until_s < most_s


def test_the_names_of_what_settles():
    marked = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 1]], bool)
    told = names_of(marked, ["laf_db", "las_db", "lai_db"])
    assert told.tolist() == ["", ALL, "laf_db lai_db", "lai_db", "laf_db lai_db"]


@pytest.mark.parametrize("name", OF_THE_MOMENT)
def test_every_column_says_how_long_it_settles(name):
    """And no longer than the model says of its frames, but for windows."""
    readings = readings_of([name], 1)
    model = MODELS[name]()
    for column in readings[name].offered:
        assert column.settle_s is not None, column.name
        if column.statistic == "instantaneous" and name != "bs1770":
            assert column.settle_s <= max(model.settle_s, model.memory_s), column.name
    if name == "spl":
        choose(readings, ["l90_10min_db", "laeq_1h_db"])
        assert [c.settle_s for c in readings[name].columns] == [602.12, 3600.12]
