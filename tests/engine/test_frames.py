import threading
import weakref
from fractions import Fraction

import numpy as np
import pytest

from amt_stream.engine.history import FrameClock, History, Marks
from amt_stream.meters.frames import Fault, Frames


@pytest.mark.parametrize(
    ("fs", "ratio", "latency"),
    [(48000, Fraction(1, 48), Fraction(1584)), (44100, Fraction(10, 441), Fraction(14553, 10))],
)
def test_frames_fall_on_whole_milliseconds_after_a_year(fs, ratio, latency):
    clock = FrameClock(ratio, latency, fs)
    index = np.array([33, 34, 365 * 86400 * 1000 + 33])
    np.testing.assert_array_equal(clock.time_s(index), (index - 33) / 1000)
    assert clock.first_from(0) == 33
    assert clock.sample(index)[-1] == 365 * 86400 * fs


@pytest.mark.parametrize("kind", [Fault.NON_FINITE, Fault.CLIP])
def test_a_mark_covers_the_frames_that_heard_it(kind):
    """By trying: a frame of 48 samples whose analysis reaches 2 latencies back.

    Clipped sound was measured, so nothing settles after it.
    """
    clock, forget = FrameClock(Fraction(1, 48), Fraction(100), 48000), 300
    marks = Marks(clock, 0, forget)
    marks.add(kind, 1000, 1003)
    index = np.arange(3, 63)
    fault, settling, since_s = marks.rows(index)
    for i, n in enumerate(index):
        heard = (n + 1) * 48 > 1000 and n * 48 - 200 < 1003
        after = (n + 1) * 48 > 1000 and kind != Fault.CLIP
        assert fault[i] == (kind if heard else 0)
        assert settling[i] == (after and n * 48 - 100 < 1003 + forget)
        assert since_s[i] == pytest.approx((n * 48 - 1103) / 48000 if after else np.inf)


def test_what_unsettled_last_is_remembered_for_ever():
    """Longer than any smoothing: a rolling window may be of hours."""
    marks = Marks(FrameClock(Fraction(1, 48), Fraction(0), 48000), 96, 4800)
    assert marks.rows(np.arange(4)).settling.tolist() == [True, True, False, False]
    marks.add(Fault.GAP, 9600, 14400)
    marks.add(0, 480_000, 480_000)
    assert marks.rows(np.array([10_000, 1_000_000])).since_s.tolist() == [0.0, 990.0]
    assert marks.rows(np.array([2_000_000])).since_s.tolist() == [1990.0]


def test_marks_run_together_only_where_their_frames_do():
    marks = Marks(FrameClock(Fraction(1, 48), Fraction(0), 48000), 0, 0)
    for place in (10, 40, 96, 240):
        marks.add(Fault.CLIP, place, place + 1)
    fault = marks.rows(np.arange(6)).fault
    assert fault.tolist() == [2, 0, 2, 0, 0, 2]


def test_marks_do_not_pile_up():
    clock = FrameClock(Fraction(1, 48), Fraction(1584), 48000)
    marks = Marks(clock, 0, forget=96000)
    for block in range(2000):
        for place in range(0, 480, 24):
            marks.add(Fault.CLIP, 480 * block + place, 480 * block + place + 1)
        marks.add(Fault.GAP, 480 * block, 480 * block + 5)
        marks.rows(np.arange(10 * block, 10 * block + 10))
    assert len(marks._marks) <= 4


@pytest.mark.parametrize("latency", [-20, 0, 7, 100])
@pytest.mark.parametrize("share", [0.0005, 0.002, 0.02, 0.2, 1.0])
def test_many_marks_are_those_of_each_place(latency, share):
    """By trying, as above, in blocks of ten frames with two kinds of fault."""
    settle = 300
    marks = Marks(FrameClock(Fraction(1, 48), Fraction(latency), 48000), 0, settle)
    bad = np.random.default_rng(round(10000 * share)).random((2, 48 * 400)) < share
    bad[:, 4800:9600] = False
    for block in range(40):
        inside = slice(480 * block, 480 * block + 480)
        for fault, where in zip((Fault.NON_FINITE, Fault.CLIP), bad[:, inside], strict=True):
            marks.add_all(fault, inside.start + np.flatnonzero(where))
        n = np.arange(10 * block, 10 * block + 10)[:, None]
        fault, settling, _ = marks.rows(n[:, 0])
        expected = np.zeros((2, 10), bool)
        recovering = n[:, 0] * 48 < latency  # before the start
        for kind in (0, 1):
            place = np.flatnonzero(bad[kind, : inside.stop])
            begun = (n + 1) * 48 > place
            heard = begun & (n * 48 - 2 * max(latency, 0) < place + 1)
            expected[kind] = heard.any(axis=1)
            if kind == 0:
                recovering |= (heard | begun & (n * 48 - latency < place + 1 + settle)).any(axis=1)
        np.testing.assert_array_equal(fault & Fault.NON_FINITE > 0, expected[0])
        np.testing.assert_array_equal(fault & Fault.CLIP > 0, expected[1])
        np.testing.assert_array_equal(settling, recovering)


@pytest.mark.parametrize("apart", [1, 2, 29, 97, 480, 4801])
def test_marks_that_settle_for_long_do_not_pile_up(apart):
    """Each of them makes all that come after it dearer."""
    marks = Marks(FrameClock(Fraction(1, 48), Fraction(0), 48000), 0, 16 * 48000)
    for block in range(1000):
        inside = np.arange(480 * block, 480 * block + 480)
        marks.add_all(Fault.CLIP, inside[inside % apart == 0])
        marks.rows(np.arange(10 * block, 10 * block + 10))
        assert len(marks._marks) <= 4


def test_being_late_is_marked_but_does_not_unsettle():
    marks = Marks(FrameClock(Fraction(1, 48), Fraction(0), 48000), 0, 4800)
    marks.add(Fault.OVERLOAD, 48, 49)
    marks.add(Fault.STALL, 96, 97)
    fault, settling, since_s = marks.rows(np.arange(4))
    assert fault.tolist() == [0, 8, 16, 0]
    assert not settling.any()
    assert np.isinf(since_s).all()


def frames_from(first: int, count: int) -> Frames:
    time_s = np.arange(first, first + count) / 1000

    class Values:
        stl = np.arange(first, first + count, dtype=np.float32)

    return Frames(
        time_s=time_s,
        sample=np.arange(first, first + count) * 48,
        utc=time_s,
        values=Values,
        fault=np.zeros(count, np.uint8),
        settling=np.zeros(count, np.bool_),
        since_s=np.full(count, np.inf),
        level_db=np.zeros((2, count), np.float32),
        calibrated=True,
    )


def test_history_gives_the_last_seconds():
    history = History(("stl",), 1000.0, 2.0)
    for first in range(0, 5000, 10):
        history.write(frames_from(first, 10))
    np.testing.assert_array_equal(history.read().stl, np.arange(3000, 5000))
    np.testing.assert_array_equal(history.read(0.5)["stl"], np.arange(4500, 5000))
    np.testing.assert_array_equal(history.since(4990).time_s, np.arange(4990, 5000) / 1000)
    assert history.latest.time_s[-1] == 4.999


def test_a_history_that_nobody_reads_is_written_down_now_and_then():
    history = History(("stl",), 1000.0, 0.5)
    one = frames_from(0, 10)
    first = weakref.ref(one.time_s)
    history.write(one)
    del one
    for at in range(10, 600, 10):
        history.write(frames_from(at, 10))
    assert first() is None
    history.write(frames_from(600, 3000))
    np.testing.assert_array_equal(history.read().stl, np.arange(3100, 3600))


def test_a_history_goes_on_from_another_one():
    old = History(("stl",), 1000.0, 2.0)
    old.write(frames_from(0, 3000))
    new = History(("stl",), 100.0, 2.0, before=old)
    assert new.count == 3000
    assert new.latest is old.latest
    np.testing.assert_array_equal(new.since(2900).stl, np.arange(2900, 3000))
    new.write(frames_from(3000, 20))
    np.testing.assert_array_equal(new.since(2950).stl, np.arange(2950, 3020))
    assert len(new.read()) == 200


def test_a_history_of_other_fields_keeps_the_count_only():
    old = History(("stl",), 1000.0, 2.0)
    old.write(frames_from(0, 100))
    new = History(("ltl",), 1000.0, 2.0, before=old)
    assert (new.count, len(new.since(0)), new.latest) == (100, 0, None)


def test_history_read_while_it_is_written_is_never_torn():
    history = History(("stl",), 1000.0, 1.0)
    stop = threading.Event()

    def write() -> None:
        first = 0
        while not stop.is_set():
            history.write(frames_from(first, 10))
            first += 10

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(300):
        rows = history.read()
        np.testing.assert_array_equal(np.diff(rows.stl), 1)
        np.testing.assert_array_equal(rows.time_s, rows.sample / 48000)
    stop.set()
    writer.join()
