"""No face shows green, or a color at all, beside a value that was not measured."""

import asyncio
from dataclasses import replace

import pytest
from textual.app import App

from amt_monitor.panes.limits_pane import LimitsPane
from amt_monitor.window.wall_view import WallView
from amt_stream.cli.terminal.number_panes import LimitPane
from amt_stream.cli.terminal.palette import COLORS
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows.limit_words import forecast_words, state_of, state_words
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.service.message import Message
from amt_stream.service.screen import Screens
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.status_text import title_text
from amt_stream.views.view_state import ViewState

FS = 48000
LIMITS = [limit_from_text("laf_db>80"), limit_from_text("laeq_15min_db>85,name=venue")]

LAF = LIMITS[0].state
UNKNOWN = {"laf_db": None, LAF: "unknown"}
ROWS = {
    "switched off": (UNKNOWN | {"fault": "off"}, "Not known: its model is switched off"),
    "lost": (UNKNOWN | {"fault": "gap"}, "Not known: samples lost"),
    "silent": (UNKNOWN | {"fault": "gap silent"}, "Not known: silent"),
    "too early": (UNKNOWN | {"fault": ""}, "Not known yet"),
    "a color without a value": ({"laf_db": None, LAF: "green"}, "Not known yet"),
    "clipped": ({LAF: "unknown", "clipped_columns": "laf_db"}, "Not known: the sound was clipped"),
    "part of its time": ({LAF: "unknown"}, "Within the limit so far"),
}


@pytest.fixture
def view():
    """The last view of two models with two limits on a tone of 60 dB."""
    sound = SignalSource([Tone(1000.0, level_db=60.0)], FS, duration=1.0, paced=False)
    preset = Preset(("spl", "bs1770"), limits=tuple(LIMITS))
    models, level = preset.models(FS, 2), Calibration(130.0)
    table = Table(preset, models, Sound("tone", FS, (1, 2), [level], None), RowSettings(100))
    sink = FollowedReadings(table.rows)
    with Engine(sound, models, [sink], calibration=level) as engine:
        assert engine.wait(60)
        sink.sum_up()
        yield ViewState.at(engine, sink)


def changed(view, row):
    return replace(view, values={**view.values, **row})


def test_a_measured_limit_has_its_color(view):
    assert state_of(LIMITS[0], view.values) == "green"
    assert state_words(LIMITS[0], view.values) == "Within the limit"
    assert state_of(LIMITS[1], view.values) == "unknown", "of a window of 15 min"
    assert title_text(view.engine, "running", view).startswith("LAeq 60.0 dB - ")


@pytest.mark.parametrize("name", ROWS)
def test_no_color_stands_beside_what_was_not_measured(qtbot, view, name):
    row, words = ROWS[name]
    view = changed(view, row)
    pane = LimitsPane(LIMITS, lambda: None)
    wall = WallView()
    for widget in (pane, wall):
        qtbot.addWidget(widget)
    pane.show_status(view)
    assert pane.lights[0].state == "unknown"
    assert words in pane.texts()[0]
    assert "forecast" not in forecast_words(LIMITS[0], view.values).lower()
    wall.choose(["laf_db"])
    wall.read(view, None)
    assert wall.light.state == "unknown"
    content = {**view.values}
    header = Message("header", {"limits": [one.to_dict() for one in LIMITS]})
    screens = Screens()
    for message in (header, Message("state", {"state": "measuring"}), Message("row", content)):
        screens.take(message)
    limits = screens.messages()[0].content["limits"]
    assert {one["state"] for one in limits} == {"unknown"}
    assert words in limits[0]["word"]


class Screen(App):
    """The limits of a terminal, and nothing else."""

    def compose(self):
        yield LimitPane()

    def on_mount(self):
        self.register_theme(COLORS["amt-dark"].theme("amt-dark"))
        self.theme = "amt-dark"


@pytest.mark.parametrize("name", ROWS)
def test_nor_in_the_terminal(view, name):
    row, words = ROWS[name]
    told = changed(view, row)

    async def look():
        async with Screen().run_test(size=(120, 4)) as pilot:
            await pilot.pause()
            pane = pilot.app.query_one(LimitPane)
            pane.draw(LIMITS, told)
            return pane._lines

    for ((text, role),), expected in zip(asyncio.run(look()), (words, "so far"), strict=True):
        assert role == "second"
        assert text.startswith(" \N{WHITE CIRCLE} ")
        assert expected in text


def test_a_model_that_is_switched_off_gives_no_headline(view):
    class Off(ViewState):
        def number_status(self, reading, model=None):
            return replace(super().number_status(reading, model), off=True)

    off = Off(view.engine, view.readings, view.frames, view.values, view.measured_s)
    assert title_text(view.engine, "running", off).startswith("running - ")
