"""A reading above its own maximum says that it is settling after a gap, and counts no more."""

import numpy as np
import pytest

from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.settling_words import AFTER_GAP, AGAIN, SETTLING
from amt_stream.views.view_state import ViewState

FS = 48000
STEP = 4800


@pytest.fixture
def measured(qtbot, model):
    """An engine that measures what `push` gives it, and the view after that."""
    source = PushSource(FS, 2, live=False)
    engine = Engine(source, model, calibration=Calibration(110.0))
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    position = 0

    def push(seconds, lost=0):
        nonlocal position
        for k in range(round(seconds * FS / STEP)):
            position += lost if k == 0 else 0
            times = (position + np.arange(STEP)) / FS
            tone = 0.01 * np.sin(2 * np.pi * 1000.0 * times).astype(np.float32)
            source.push(np.stack([tone, tone], axis=1), lost if k == 0 else 0)
            position += STEP

        def view():
            readings.take()
            return ViewState.at(engine, readings)

        def heard():
            newest = view()
            # The last row waits for the next frame.
            time_s = 0.0 if newest is None else newest.values.get("time_s", 0.0)
            return time_s >= position / FS - 0.25

        qtbot.waitUntil(heard, timeout=60000)
        return view()

    with engine, source:
        yield engine, push


def test_what_lies_above_its_maximum_says_why(measured):
    engine, push = measured
    assert push(1.0).number_status("ltl_phon").settling == SETTLING
    assert push(8.0).number_status("ltl_phon").settling == ""
    above = 0
    for _ in range(6):
        view = push(0.3, lost=480)
        assert view.number_status("ltl_phon").settling == AFTER_GAP
        assert view.reading_status().settling == AFTER_GAP
        above += view.values["ltl_phon"] > view.values["max_ltl_phon"]
    assert above, "a gap is a click, which is louder than the tone"
    # Short-term loudness settles in 0.4 s, long-term loudness in 7.5 s.
    view = push(2.0)
    assert view.number_status("stl_phon").settling == ""
    assert view.number_status("ltl_phon").settling == AFTER_GAP
    view = push(7.0)
    assert view.number_status("ltl_phon").settling == ""
    assert view.values["ltl_phon"] <= view.values["max_ltl_phon"] + 0.05
    engine.reset_filters()
    assert push(1.0).number_status("ltl_phon").settling == AGAIN
