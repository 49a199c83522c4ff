"""A calibrator's tone, heard by whoever asks now and then."""

import numpy as np
import pytest

from amt_stream.engine import FaultSource, SignalSource, SourceError, Tone
from amt_stream.engine.inputs.calibrator_source import CalibratorListener, unbroken
from amt_stream.meters.calibrator import ToneWatch
from amt_stream.meters.frames import Fault

FS = 48000


def sine(seconds, hz=1000.0, peak=0.1):
    return peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * FS)) / FS)


def test_each_piece_has_a_verdict_and_the_last_three_seconds_may_be_accepted():
    watch = ToneWatch(FS)
    first = watch.push(sine(2.8))
    assert {one.kind for one in first} == {"short"}
    assert first[-1].good_s == pytest.approx(2.8)
    assert all(one.mean is None for one in first)
    good = watch.push(sine(0.2))[-1]
    assert (good.kind, good.mean.level_dbfs) == ("good", pytest.approx(-20.0, abs=1e-3))
    assert good.spread_db < 0.001
    for _ in range(20):
        watch.push(sine(0.2))
    assert watch.verdict.good_s == pytest.approx(5.0)
    louder = watch.push(sine(0.2, peak=0.11))[-1]
    assert (louder.kind, louder.mean) == ("drift", None)
    assert louder.spread_db == pytest.approx(0.83, abs=0.01)
    other = watch.push(sine(0.2, hz=250.0))[-1]
    assert (other.kind, other.good_s) == ("frequency", 0.0)
    assert "choose 250 Hz as its frequency" in other.words
    assert watch.interrupt().kind == "gap"
    assert watch.push(np.full(9600, np.nan))[-1].kind == "invalid"


def test_nothing_is_joined_across_a_gap():
    block = np.ones((4, 1), np.float32)
    sound = [(block, 0, 0), (block, 0, Fault.STALL), (block, 3, 0), (block, 0, 0)]
    joined = [(len(one), missing) for one, missing in unbroken(sound)]
    assert joined == [(4, False), (4, True), (4, False)]
    held = [(block, 0, Fault.STALL), (block, 0, 0)]
    assert [(len(one), missing) for one, missing in unbroken(held)] == [(8, False)]


def test_a_listener_tells_levels_and_verdicts_and_changes_its_mind(until):
    tone = SignalSource([Tone(1000.0, level_db=110.0)])
    listener = CalibratorListener(lambda: tone)
    try:
        until(lambda: listener.reading.verdict is not None and listener.reading.verdict.mean)
        heard = listener.reading
        assert heard.state == "listening"
        np.testing.assert_allclose(heard.levels_db, [(-20.0, -20.0)] * 2, atol=0.1)
        assert heard.verdict.mean.level_dbfs == pytest.approx(-20.0, abs=1e-3)
        listener.listen_to(2, 250.0)
        assert listener.reading.verdict is None  # that was of another tone
        until(lambda: (now := listener.reading.verdict) is not None and now.kind == "frequency")
    finally:
        listener.stop()
    assert listener.reading.state == "ended"


def test_a_source_that_cannot_be_opened_or_ends_is_told_in_words(until):
    def refuse():
        raise SourceError("there is no microphone")

    listener = CalibratorListener(refuse)
    until(lambda: listener.reading.state == "ended")
    assert listener.reading.words == "there is no microphone"
    gone = FaultSource(SignalSource([Tone(1000.0, level_db=60.0)], duration=0.3), [])
    listener = CalibratorListener(lambda: gone)
    until(lambda: listener.reading.state == "ended")
    assert "ended" in listener.reading.words
    listener.stop()
