"""What happened, and how the measurement is doing: what the panes say is what the engine has."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.panes.events_pane import EventsPane, line_of
from amt_monitor.panes.health_pane import HealthPane
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.frames import Event
from amt_stream.views.health_text import health_lines
from amt_stream.views.view_state import ViewState

FS = 48000


@pytest.fixture
def engine():
    source = SignalSource([Tone(1000.0, level_db=60.0)], FS, duration=2.0, paced=False)
    with Engine(source, SoundLevel(FS)) as one:
        yield one


@pytest.fixture
def look(engine):
    assert engine.wait(60)
    return ViewState.at(engine, None)


def test_events_are_those_of_the_engine_the_newest_first(qtbot):
    pane = EventsPane()
    qtbot.addWidget(pane)
    with Engine(SignalSource([], FS), SoundLevel(FS)) as engine:
        qtbot.waitUntil(lambda: ViewState.at(engine, None) is not None, timeout=15000)
        pane.read(ViewState.at(engine, None))
        assert not pane.texts()
        assert not pane.none.isHidden()
        for text in ("first", "<b>second</b>\x1b[2J"):
            engine.mark(text)
        qtbot.waitUntil(lambda: len(engine.events) == 2, timeout=5000)
        pane.read(ViewState.at(engine, None))
    assert pane.texts() == tuple("\t".join(line_of(one)) for one in reversed(engine.events))
    top = pane.list.topLevelItem(0)
    assert (top.text(2), top.text(3)) == ("Marker", "<b>second</b>\\x1b[2J")
    pane.list.selectAll()
    pane.copy()
    assert QtWidgets.QApplication.clipboard().text() == "\n".join(pane.texts())


def test_both_offsets_stand_where_the_clock_was_set_meanwhile(qtbot, monkeypatch):
    pane = EventsPane()
    qtbot.addWidget(pane)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        end = datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp()
        pane._events = tuple(Event("mark", 0, 0.0, end + after) for after in (-60.0, 60.0))
        pane._show()
        days = [line.split("\t")[1] for line in pane.texts()]
        pane._events = pane._events[:1]
        pane._show()
        assert days == ["02:01:00 +0100", "02:59:00 +0200"]
        assert pane.texts()[0].split("\t")[1] == "02:59:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_markers_can_be_seen_alone(qtbot, look):
    pane = EventsPane()
    qtbot.addWidget(pane)
    pane._events = (
        Event("gap", 4800, 0.1, 0.0, 480, "the input lost it"),
        Event("mark", 9600, 0.2, 0.0, text="here"),
    )
    pane._show()
    assert [line.split("\t")[2:] for line in pane.texts()] == [
        ["Marker", "here"],
        ["Sound lost", "480 samples: the input lost it"],
    ]
    qtbot.keyClick(pane.which, QtCore.Qt.Key.Key_Down)
    assert len(pane.texts()) == pane.list.topLevelItemCount() == 1


def test_health_is_that_of_the_engine(qtbot, engine, look):
    pane = HealthPane()
    qtbot.addWidget(pane)
    pane.read(look)
    told = dict(line.split(": ", 1) for line in pane.texts())
    health = engine.health
    assert told["Heard"] == f"2.0 s, {health.samples} samples"
    assert told["Lost"] == "0 samples lost"
    assert told["Load"].startswith(f"{100 * health.load:.0f} % of one core")
    assert told["Log"] == "not logged"
    assert not any(one.wrong for one in health_lines(engine) if one.what != "Note")


def test_what_went_wrong_is_bold(qtbot, engine, look, monkeypatch):
    pane = HealthPane()
    qtbot.addWidget(pane)
    worse = replace(engine.health, lost_samples=480, late_callbacks=1, note="")
    monkeypatch.setattr(Engine, "health", property(lambda _: worse))
    pane.read(look)
    assert "Lost: 480 samples lost (0.01 s)" in pane.texts()
    assert "Late: sound came late once" in pane.texts()
    bold = [words.text() for _, words in pane._labels if words.font().bold()]
    assert bold == ["480 samples lost (0.01 s)", "sound came late once"]
