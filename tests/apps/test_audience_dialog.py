"""The correction to the audience is measured at two places, or typed, and then used and kept."""

import pytest
from pyqtgraph.Qt import QtWidgets

from amt_monitor.dialogs.audience_dialog import AudienceDialog
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.audience import Audience
from amt_stream.meters.presets import Preset
from tests.apps.test_limits_and_presets import Button, begun_anew, start

__all__ = ["start"]
FS = 48000


def playing(*tones):
    """An engine that measures sound levels of tones."""
    models = Preset(("spl",)).models(FS, 2)
    source = SignalSource([Tone(hertz, level_db=level) for hertz, level in tones], FS)
    return Engine(source, models)


def dialog_of(qtbot, engines, present=None):
    dialog = AudienceDialog(present, lambda: engines[0] if engines else None)
    dialog.seconds = 0.5
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_two_places_give_the_difference_of_a_and_c(qtbot):
    """A tone of 63 Hz is 26.2 dB down in A and 0.8 dB in C, so its level shows in C alone."""
    found = []
    here = playing((1000.0, 90.0), (63.0, 90.0))
    there = playing((1000.0, 94.0), (63.0, 100.0))
    with here, there:
        engines = [here]
        dialog = dialog_of(qtbot, engines)
        dialog.chosen.connect(found.append)
        qtbot.mouseClick(dialog.buttons[0], Button)
        qtbot.waitUntil(lambda: dialog.texts[0].text().startswith("LAeq 90.0 dB"), timeout=30000)
        assert [spin.value() for spin in dialog.spins] == [0.0, 0.0]
        engines[0] = there
        qtbot.mouseClick(dialog.buttons[1], Button)
        qtbot.waitUntil(lambda: dialog.spins[0].value() != 0.0, timeout=30000)
    assert dialog.spins[0].value() == pytest.approx(4.0, abs=0.1)
    assert dialog.spins[1].value() == pytest.approx(7.7, abs=0.1)
    dialog.accept()
    (audience,) = found
    assert (audience.a_db, audience.c_db) == tuple(round(s.value(), 1) for s in dialog.spins)
    assert audience.origin.startswith("measured 20")
    dialog.spins[0].setValue(5.0)
    assert dialog.audience.origin == "given by the user"


def test_without_sound_levels_it_is_typed(qtbot):
    dialog = dialog_of(qtbot, [])
    assert "choose the venue view" in dialog.problem.text()
    assert not any(button.isEnabled() for button in dialog.buttons)
    assert not dialog.removing.isEnabled()
    found = []
    dialog.chosen.connect(found.append)
    dialog.spins[0].setValue(4.2)
    dialog.spins[1].setValue(6.0)
    dialog.accept()
    assert found == [Audience(4.2, 6.0)]


def test_an_engine_that_ends_is_said(qtbot):
    engine = playing((1000.0, 90.0))
    engines = [engine]
    with engine:
        dialog = dialog_of(qtbot, engines)
        dialog.seconds = 600.0
        qtbot.mouseClick(dialog.buttons[0], Button)
        qtbot.waitUntil(lambda: "of 600 s" in dialog.texts[0].text(), timeout=30000)
    engines.clear()
    engines.append(None)
    qtbot.waitUntil(lambda: "No measurement is running" in dialog.problem.text(), timeout=15000)
    assert dialog.texts[0].text() == "not measured"


def test_it_is_used_kept_and_removed(qtbot, start):
    words = "--source", "am-tone", "--full-scale-db", "160"
    window = start(*words)
    window.targets.limits.choose_venue()
    qtbot.waitUntil(lambda: "venue" in window.area.docks, timeout=60000)

    def choose(values, name=None):
        begun = window.measurement.begun
        window.targets.limits.choose_audience()
        (dialog,) = [d for d in window.findChildren(AudienceDialog) if d.isVisible()]
        for spin, value in zip(dialog.spins, values, strict=False):
            spin.setValue(value)
        if name:
            qtbot.mouseClick(dialog.findChild(QtWidgets.QPushButton, name), Button)
        else:
            dialog.accept()
        begun_anew(qtbot, window, begun)

    choose((4.2, 6.0))
    (limit,) = window.measurement.readings.limits
    assert limit.column == "laeq_15min_audience_db"
    qtbot.waitUntil(lambda: "venue" in window.area.docks)
    assert window.area.docks["venue"].pane.grid._large[0][0].name == "laeq_15min_audience_db"
    window.close_now()
    window = start(*words)
    (limit,) = window.measurement.readings.limits
    assert limit.column == "laeq_15min_audience_db", "the next start has it too"
    choose((), "remove")
    (limit,) = window.measurement.readings.limits
    assert limit.column == "laeq_15min_db"
    assert not any("audience" in c.name for c in window.measurement.readings.rows.columns)
