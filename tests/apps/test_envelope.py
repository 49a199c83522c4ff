"""What is drawn keeps every peak, every gap and every mark."""

import numpy as np
import pytest

from amt_monitor.envelope import Envelope, stretches
from amt_monitor.numbers import sone_text
from amt_stream.engine import Fault, Frames, History
from amt_stream.models import Moore2016Output


def frames(time_s, stl, fault=0, settling=False):
    time_s = np.asarray(time_s)
    stl = np.asarray(stl, np.float32)
    n = len(time_s)
    return Frames(
        time_s=time_s,
        sample=np.round(48000 * time_s).astype(np.int64),
        utc=time_s,
        values=Moore2016Output(stl, stl / 2, np.stack((stl, stl)), np.stack((stl, stl))),
        fault=np.full(n, fault, np.uint8),
        settling=np.full(n, settling),
        since_s=np.full(n, np.inf),
        level_db=np.zeros((2, n), np.float32),
        calibrated=True,
    )


@pytest.fixture
def history():
    return History(("stl", "ltl"), 1000.0, 60.0)


def make(seconds=1.0, column_s=0.1):
    return Envelope(("stl", "ltl"), seconds, column_s)


@pytest.mark.parametrize("chunk", [1, 7, 10, 441])
def test_extremes_of_each_column_do_not_depend_on_the_chunks(history, chunk):
    time_s = np.arange(1000) / 1000
    stl = np.random.default_rng(0).exponential(size=1000)
    envelope = make()
    for at in range(0, 1000, chunk):
        history.write(frames(time_s[at : at + chunk], stl[at : at + chunk]))
        envelope.follow(history)
    columns = stl.astype(np.float32).reshape(10, 100)
    np.testing.assert_array_equal(envelope.columns().low[0, 1:], columns.min(1))
    np.testing.assert_array_equal(envelope.columns().high[1, 1:], columns.max(1) / 2)
    np.testing.assert_allclose(envelope.columns().start_s[1:], np.arange(10) / 10)
    assert np.isnan(envelope.columns().low[:, 0]).all()


def test_the_window_moves_on(history):
    envelope = make()
    for second in range(5):
        time_s = second + np.arange(1000) / 1000
        history.write(frames(time_s, np.full(1000, second)))
        envelope.follow(history)
    np.testing.assert_array_equal(envelope.columns().high[0], [3] + 10 * [4])
    assert envelope.now_s == pytest.approx(4.999)


def test_a_jump_in_time_leaves_a_hole(history):
    envelope = make()
    history.write(frames([0.0, 0.1, 0.2], [1, 1, 1]))
    envelope.follow(history)
    history.write(frames([0.6, 0.7], [2, 2], fault=Fault.GAP, settling=True))
    envelope.follow(history)
    assert np.isnan(envelope.columns().low[0, -5:-2]).all()
    np.testing.assert_array_equal(envelope.columns().fault[-2:], Fault.GAP)
    assert envelope.columns().settling.tolist()[-3:] == [False, True, True]


def test_another_history_begins_anew(history):
    envelope = make()
    history.write(frames([5.0], [1]))
    envelope.follow(history)
    another = History(("stl", "ltl"), 1000.0, 60.0)
    another.write(frames([0.0], [2]))
    envelope.follow(another)
    assert envelope.columns().high[0, -1] == 2
    assert np.isnan(envelope.columns().high[0, :-1]).all()


def test_stretches_join_what_is_close():
    marked = np.zeros(30, bool)
    marked[[2, 3, 5, 20]] = True
    assert stretches(marked, 2) == [(2, 3), (5, 5), (20, 20)]
    assert stretches(marked, 5) == [(2, 5), (20, 20)]
    assert stretches(np.zeros(3, bool), 5) == []


@pytest.mark.parametrize(
    ("sone", "written"),
    [(0.0, "0.000"), (0.0523, "0.052"), (0.9994, "1.00"), (9.996, "10.0"), (99.96, "100")],
)
def test_sone_is_written_with_three_digits(sone, written):
    assert sone_text(sone) == written
