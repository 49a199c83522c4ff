"""Panes take in every frame, also those that nobody saw."""

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore

from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.panes.spectrum_pane import SpectrumPane
from amt_monitor.panes.waterfall_pane import COLUMN_S, WaterfallPane
from amt_stream.dsp.stages import SoundLevel, ThirdOctaves
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.frames import Event
from amt_stream.sessions.counted_time import counted_from
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.frame_follower import FrameFollower

FS = 48000
CONTROL = QtCore.Qt.KeyboardModifier.ControlModifier


def tone_with_click(start):
    """Some milliseconds that no window draws, or that it may not see at all."""
    return [Tone(1000.0, level_db=40.0), Tone(3000.0, level_db=85.0, start=start, duration=0.02)]


def heard(components, model, duration=3.0):
    """An engine that has heard all, what it told, and all frames."""
    frames = []
    source = SignalSource(components, FS, duration=duration, paced=False)
    engine = Engine(source, model, [frames.append])
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    with engine:
        assert engine.wait(60)
    return engine, readings, frames


def reached(readings):
    return 0.0 if readings.row is None else readings.row["time_s"]


def test_loudness_is_held_of_all_frames(qtbot, model):
    engine, readings, frames = heard(tone_with_click(1.5), model)
    specific = np.concatenate([one.values.specific_loudness for one in frames], axis=1)
    pane = SpectrumPane()
    qtbot.addWidget(pane)
    pane.take_frames(engine, readings)
    pane.draw(specific[:, -1])
    assert not len(pane.greatest[0].y)
    assert not len(pane.filled[0].high)
    pane.hold.click()
    pane.most.click()
    expected = specific.max(axis=1)
    np.testing.assert_array_equal([curve.y for curve in pane.greatest], expected)
    assert max(filled.high.max() for filled in pane.filled) == expected.max()
    assert pane.plot.y.high >= expected.max() > 3 * pane.curves[0].y.max()
    pane.most.click()
    assert not len(pane.greatest[0].y)
    pane.restart()
    pane.most.click()
    assert not len(pane.greatest[0].y)


def test_a_waterfall_has_the_loudest_of_each_time(qtbot, model):
    engine, readings, frames = heard(tone_with_click(1.5), model)
    pane = WaterfallPane()
    qtbot.addWidget(pane)
    pane.take_frames(engine, readings)
    columns = np.concatenate([one.time_s for one in frames]) // COLUMN_S
    specific = np.concatenate([one.values.specific_loudness for one in frames], axis=1)
    loudest = specific[:, columns == 15].max(axis=(0, 1))
    np.testing.assert_allclose(10 ** pane.colors.curve(1.55), loudest, rtol=1e-4, atol=2e-6)


def test_lines_over_bands_are_the_maxima_of_the_meter(qtbot):
    engine, readings, _ = heard(tone_with_click(1.5), {"third_octave": ThirdOctaves(FS)})
    of_model = readings.rows.readings["third_octave"]
    names = [column.name for column in of_model.columns]
    pane = pane_of("third_octave", names)
    qtbot.addWidget(pane)
    pane.take_frames(engine, readings)
    pane.show_readings(readings.row)
    pane.line.setCurrentText("maximum")
    told = of_model.summary()
    expected = np.array([told[name.replace("lzf_", "lzfmax_")] for name in names])
    # A bar begins at 0 dB.
    np.testing.assert_allclose(pane.bars.held, np.maximum(expected, 0.0), atol=1e-6)
    at = names.index("lzf_3150hz_db")
    assert pane.bars.held[at] > pane.bars.heights[at] + 10
    pane.line.setCurrentText("hold 2 s")
    assert pane.bars.held[at] == pytest.approx(expected[at])


def test_what_is_paused_or_was_before_a_reset_does_not_count(qtbot):
    engine = Engine(SignalSource(tone_with_click(1.0), FS), {"spl": SoundLevel(FS)})
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    with engine:
        for action in (engine.reset_readings, engine.pause, engine.unpause, lambda: None):
            wait_for = reached(readings) + 0.4
            qtbot.waitUntil(lambda end_s=wait_for: reached(readings) > end_s, timeout=10000)
            action()
    follower, of_model = FrameFollower(), readings.rows.readings["spl"]
    new = follower.new(engine, "spl")
    counts = follower.counts(new, readings)
    time_s = np.concatenate([one.time_s for one in new])
    known = np.concatenate([of_model.counted(one) for one in new])
    at = {event.kind: event.time_s for event in readings.events}
    expected = known & (time_s > at["readings_reset"])
    expected &= (time_s <= at["paused"]) | (time_s > at["continued"])
    np.testing.assert_array_equal(counts, expected)
    assert 0 < np.count_nonzero(counts) < np.count_nonzero(known)
    assert not follower.new(engine, "spl")


def test_what_sounds_while_panes_are_hidden_is_in_them_when_they_are_seen(
    qtbot, open_window, model
):
    source = SignalSource(tone_with_click(3.0), FS)
    window = open_window(lambda wanted: Engine(source, model))
    spectrum, waterfall = window.area.docks["specific_loudness"], window.area.docks["waterfall"]
    spectrum.close()
    waterfall.close()
    qtbot.waitUntil(lambda: not waterfall.is_seen, timeout=5000)
    qtbot.waitUntil(lambda: window.measurement.readings.row["time_s"] > 4.0, timeout=20000)
    assert not spectrum.is_seen
    pane = spectrum.pane
    pane.most.setChecked(True)
    spectrum.toggleViewAction().trigger()
    most = lambda: pane.greatest[0].y.max(initial=0.0)  # noqa: E731
    qtbot.waitUntil(lambda: most() > 3 * pane.curves[0].y.max(), timeout=5000)
    loudest = most()
    waterfall.toggleViewAction().trigger()
    qtbot.waitUntil(lambda: waterfall.is_seen, timeout=5000)
    for time_s in np.arange(0.15, 3.9, COLUMN_S):
        assert np.isfinite(waterfall.pane.colors.curve(time_s)).all(), time_s
    spectrum.raise_()
    qtbot.keyClick(window, QtCore.Qt.Key.Key_R)
    qtbot.waitUntil(lambda: most() < loudest / 3, timeout=5000)


def test_what_is_frozen_stays_in_colors_and_maxima(qtbot, open_window, model):
    source = SignalSource(tone_with_click(3.0), FS)
    window = open_window(lambda wanted: Engine(source, model))
    spectrum, waterfall = window.area.docks["specific_loudness"], window.area.docks["waterfall"]
    readings = window.measurement.readings
    qtbot.waitUntil(lambda: waterfall.is_seen, timeout=5000)
    colors = waterfall.pane.colors
    qtbot.waitUntil(lambda: bool(np.isfinite(colors.curve(0.55)).all()), timeout=5000)
    qtbot.waitUntil(lambda: (readings.row["max_ltl_sone"] or 0) > 0, timeout=5000)
    qtbot.keyClick(window, QtCore.Qt.Key.Key_F)
    assert reached(readings) < 3.0
    picture = waterfall.pane.plot.grab().toImage()
    qtbot.waitUntil(lambda: reached(readings) > 3.4, timeout=10000)
    qtbot.wait(300)
    assert waterfall.pane.plot.grab().toImage() == picture
    spectrum.raise_()
    qtbot.waitUntil(lambda: spectrum.is_seen, timeout=5000)
    pane = spectrum.pane
    pane.most.click()
    most = lambda: pane.greatest[0].y.max(initial=0.0)  # noqa: E731
    held = most()
    assert held > 0
    qtbot.keyClick(window, QtCore.Qt.Key.Key_F)
    qtbot.waitUntil(lambda: most() > 3 * held, timeout=5000)
    assert np.isfinite(colors.curve(3.25)).all()


def test_counting_begins_where_no_reset_was_undone():
    def begins(*told):
        return counted_from([Event(kind, 0, time_s, 0.0) for kind, time_s in told])

    assert begins(("readings_reset", 3.0), ("readings_reset", 12.0)) == 12.0
    assert begins(("readings_reset", 3.0), ("readings_reset", 12.0), ("reset_undone", 13.0)) == 0.0
    old = (
        ("readings_reset", 3.0),
        ("readings_reset", 14.0),
        ("readings_reset", 20.0),
        ("reset_undone", 21.0),
    )
    assert begins(*old) == 3.0
    assert begins(*old, ("readings_reset", 22.0)) == 22.0


def test_a_reset_is_undone_in_numbers_and_curves(qtbot, open_window, model):
    source = SignalSource(tone_with_click(1.0), FS)
    window = open_window(lambda wanted: Engine(source, model))
    pane, readings = window.area.docks["specific_loudness"].pane, window.measurement.readings
    pane.most.click()
    undo, most = window.message.undo, lambda: pane.greatest[0].y.max(initial=0.0)
    qtbot.waitUntil(lambda: most() > 1.0, timeout=10000)
    qtbot.waitUntil(lambda: readings.totals["max_stl_sone"] > 5.0, timeout=10000)
    loudest = readings.totals["max_stl_sone"]
    assert undo.isHidden()
    assert not window.actions_by_name["undo_reset"].isEnabled()

    def press():
        undo.setFocus()
        qtbot.waitUntil(undo.hasFocus, timeout=5000)
        qtbot.keyClick(undo, QtCore.Qt.Key.Key_Return)

    def reset(number):
        qtbot.keyClick(window, QtCore.Qt.Key.Key_R)
        resets = lambda: sum(one.kind == "readings_reset" for one in readings.events)  # noqa: E731
        qtbot.waitUntil(lambda: resets() == number, timeout=5000)
        qtbot.waitUntil(lambda: undo.isVisible() and most() < 1.0, timeout=5000)
        qtbot.waitUntil(lambda: readings.totals["max_stl_sone"] < 5.0, timeout=5000)

    undo_by_key = lambda: qtbot.keyClick(window, QtCore.Qt.Key.Key_Z, CONTROL)  # noqa: E731
    for before, act in ((0, press), (2, undo_by_key)):
        counted = readings.measured_s
        reset(before + 1)
        reset(before + 2)
        assert "Undo" in window.message.text
        assert undo.focusPolicy() == QtCore.Qt.FocusPolicy.StrongFocus
        assert readings.measured_s < counted + 0.2
        act()
        qtbot.waitUntil(lambda: most() > 1.0, timeout=5000)
        qtbot.waitUntil(lambda: readings.totals["max_stl_sone"] == loudest, timeout=5000)
        qtbot.waitUntil(undo.isHidden, timeout=5000)
        assert readings.measured_s > counted
    assert (readings.row["max_ltl_sone"] or 0) >= (readings.row["ltl_sone"] or 0)
    assert "reset undone" in [
        text for _, text in window.area.docks["history"].pane.layers.notes.items
    ]
