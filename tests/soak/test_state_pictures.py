"""Each state of a measurement on each display, at a third of its size: real engines and screens.

With AMT_PICTURES=FOLDER in the environment it leaves a sheet of all pictures there, and each of
them in a folder of its own.
"""

import asyncio
import contextlib
import io
import os
import re
import threading
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.settings import Settings
from amt_monitor.base.theme import theme
from amt_stream.cli.terminal import TerminalMeter
from amt_stream.cli.terminal.app import MeterApp
from amt_stream.engine import Engine, FaultSource, Injection, SignalSource, Tone
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.state_signs import SIGNS, states_text
from amt_stream.meters.table import Sound, Table
from amt_stream.service import Station
from amt_stream.service.web import Web
from amt_stream.sessions.outputs import FollowedReadings
from tests.apps.conftest import open_window  # noqa: F401 (a fixture)
from tests.patience import PATIENCE_S
from tests.service.browser import Browser

pytestmark = pytest.mark.soak

FS = 48000
SIZE = 1280, 800
SMALL, COLORS = 4, 64
"""How much smaller the pictures of the sheet are, and how many colors it has."""
NARROWEST = 3.0
"""The shortest chip, of "Lost", relative to its height."""
APART = 10.0
"""Levels of 255 by which chips differ at least, on average over their pixels."""
DISPLAYS = "window", "wall", "page", "terminal"
COLUMNS, LINES = 100, 30
LIMIT = Limit("laf_db", 80.0, name="loud")
ENOUGH_S = 2.2
"""Seconds that are measured before a picture."""
LONG_LOST = "00:(0[3-9]|[1-5])"
"""In the banner of a microphone that has been lost for 3 s."""


class Shown(NamedTuple):
    """A picture, and where its chip is: left, top, right, bottom."""

    picture: Image.Image
    chip: Sequence[float]


class Case(NamedTuple):
    """How a state comes about: faults of the sound, its level, and what a user does then.

    The level is that of a source of 130 dB at full scale, which is measured as one of 100 dB.
    """

    faults: tuple[Injection, ...] = ()
    level_db: float = 92.0
    calibrated: bool = True
    does: str = ""


CASES = {
    "lost": Case(does="unplug"),
    "silent": Case(does="mute"),
    # Again and again: until a browser has started, one would be over.
    "too slow": Case(tuple(Injection("late", float(at), 1.2) for at in range(3, 60, 3))),
    "clipped": Case((Injection("clip", 2.0, 600.0),)),
    "over limit": Case(level_db=116.0),
    "stopped": Case(does="stop"),
    "paused": Case(does="pause"),
    "frozen": Case(does="freeze"),
    "settling": Case(),
    "uncalibrated": Case(calibrated=False),
    "running": Case(),
}


def source_of(case):
    later = Injection("mute", 3600.0, 1.0)  # for a gate, as `take_away` comes after the start
    faults = (*case.faults, *([later] if case.does == "mute" else []))
    source = FaultSource(SignalSource([Tone(1000.0, level_db=case.level_db)], FS), faults)
    source.name = "hall microphone"
    return source


def calibration_of(case):
    return Calibration(100.0) if case.calibrated else UNCALIBRATED


def model_of():
    return Preset(("spl",)).models(FS, 2)


def table_of(case, source, models):
    preset = Preset(("spl",), limits=(LIMIT,))
    sound = Sound(source.name, FS, (1, 2), [calibration_of(case)], None)
    return Table(preset, models, sound, RowSettings(100))


def engine_of(case, request=None):
    source, models = source_of(case), model_of()
    readings = FollowedReadings(table_of(case, source, models).rows)
    return Engine(source, models, [readings], calibration=calibration_of(case))


AWAY = {"unplug": "lost", "mute": "silent"}


def take_away(source, how):
    """From the next block on, as `FaultSource` has no fault of now."""
    source.faults.append(Injection(how, 0.0, 600.0))
    source._ahead.append((0, 600 * FS, len(source.faults) - 1))


def is_long_away(state, banner):
    return state not in AWAY.values() or re.search(LONG_LOST, banner) is not None


@contextlib.contextmanager
def resetting(engine, state):
    """Reset the filters ten times a second, for a picture of "settling", which passes soon."""
    over = threading.Event()

    def reset():
        while state == "settling" and not over.wait(0.1):
            engine.reset_filters()

    thread = threading.Thread(target=reset)
    thread.start()
    yield
    over.set()
    thread.join()


def of_widget(widget):
    image = widget.grab().toImage().convertToFormat(QtGui.QImage.Format.Format_RGB888)
    bits = np.frombuffer(image.constBits().asstring(image.sizeInBytes()), np.uint8)
    rows = bits.reshape(image.height(), image.bytesPerLine())[:, : 3 * image.width()]
    return Image.fromarray(rows.reshape(image.height(), image.width(), 3))


def of_browser(browser):
    return Image.open(io.BytesIO(browser.picture())).convert("RGB")


def box_of(chip, window):
    corner = chip.mapTo(window, QtCore.QPoint())
    return [corner.x(), corner.y(), corner.x() + chip.width(), corner.y() + chip.height()]


CHIP = """(() => {
  const { left, top, right, bottom } = document.getElementById('chip').getBoundingClientRect();
  return [left, top, right, bottom];
})()"""


def in_window(qtbot, open_window, state, case):  # noqa: F811
    """Pictures of the window and of its wall view."""
    window = open_window(lambda request: engine_of(case, request))
    window.resize(*SIZE)
    window.wall_view.resize(*SIZE)
    window.wall_view.show()
    qtbot.waitUntil(lambda: window.measurement.measured_s > ENOUGH_S)
    if case.does in AWAY:
        take_away(window.measurement.engine.source, case.does)
    elif case.does:
        window.actions_by_name[case.does].trigger()

    def shown():
        window.show_state()
        there = window.bar.chip.state == state
        return there and is_long_away(state, window.state_view.banner.text())

    with resetting(window.measurement.engine, state):
        qtbot.waitUntil(shown)
        qtbot.wait(400)
        found = [
            Shown(of_widget(whole), box_of(chip, whole))
            for whole, chip in (
                (window, window.bar.chip),
                (window.wall_view, window.wall_view.chip),
            )
        ]
    assert window.bar.chip.state == window.wall_view.chip.state == state
    window.close_now()
    return found


def on_page(state, case, colors):
    """A picture of the page of a station."""
    web, engines = Web("127.0.0.1", 0), []

    def make(preset, sink_of, wait_for):
        source, models = source_of(case), model_of()
        table = table_of(case, source, models)
        sinks = [sink_of(table)]
        engines.append(Engine(source, models, sinks, calibration=calibration_of(case)))
        return engines[0], table

    opened, over = threading.Event(), threading.Event()
    station = Station(make, Preset(("spl",)), [web], opened=opened.set)
    thread = threading.Thread(target=lambda: asyncio.run(station.serve(over.is_set)))
    thread.start()
    try:
        assert opened.wait(PATIENCE_S)
        with Browser(*SIZE, dark=colors == "dark") as browser:
            browser.open(web.address)
            browser.until("document.getElementById('elapsed').textContent >= '00:00:03'")
            if case.does in AWAY:
                take_away(engines[0].source, case.does)
            elif case.does:
                browser.evaluate(f"document.getElementById('{case.does}').click()")
            shown = f"document.getElementById('state').textContent === '{states_text([state])}'"
            if state in AWAY.values():
                banner = "document.getElementById('banner').textContent"
                shown += f" && /{LONG_LOST}/.test({banner})"
            with resetting(engines[0], state):
                if state not in (*AWAY.values(), "stopped"):
                    light = "document.querySelector('.light').textContent"
                    shown += f" && !{light}.startsWith('Not known')"
                end = time.monotonic() + PATIENCE_S
                while True:
                    browser.until(shown)
                    time.sleep(0.5)  # its numbers follow five times a second
                    picture, chip = of_browser(browser), browser.evaluate(CHIP)
                    if browser.evaluate(shown):  # on a busy machine "too slow" comes between
                        return Shown(picture, chip)
                    assert time.monotonic() < end, state
    finally:
        over.set()
        thread.join()


def in_terminal(state, case, colors, folder):
    """A picture of the terminal."""
    engine = engine_of(case)
    (readings,) = engine.sinks
    meter = TerminalMeter(engine, readings, lambda: None)
    path = folder / "terminal.svg"

    async def run():
        app = MeterApp(meter)
        async with app.run_test(size=(COLUMNS, LINES)) as pilot:
            if (colors == "dark") != app.theme.endswith("dark"):
                await pilot.press("t")
            words = f" {SIGNS[state].glyph} {states_text([state])}"

            def shown():
                header, banner = app.query_one("#header").text, app.query_one("#banner").text
                return header.startswith(words) and is_long_away(state, banner)

            async def until(holds):
                end = time.monotonic() + PATIENCE_S
                while not holds():
                    assert time.monotonic() < end, state
                    await asyncio.sleep(0.05)

            try:
                await until(lambda: readings.measured_s > ENOUGH_S)
                if case.does in AWAY:
                    take_away(engine.source, case.does)
                elif case.does:
                    await pilot.press({"stop": "s", "pause": "space", "freeze": "f"}[case.does])
                with resetting(engine, state):
                    await until(shown)
                    path.write_text(app.export_screenshot(), encoding="utf-8")
            finally:
                app.action_leave()

    with engine:
        asyncio.run(run())
    with Browser(*SIZE) as browser:
        browser.open(path.as_uri())
        wide, high = SIZE[0] / COLUMNS, SIZE[1] / (LINES + 2)
        left, top = 16, 43  # below the frame that Textual draws around it
        return Shown(of_browser(browser), [left, top, left + 20 * wide, top + high])


def far_chip(shown):
    """The chip and what is right of it, of one size for all states."""
    left, top, _, bottom = shown.chip
    wide = NARROWEST * (bottom - top)
    part = shown.picture.crop((round(left), round(top), round(left + wide), round(bottom)))
    return np.asarray(part.resize((33, 11), Image.Resampling.LANCZOS), float)


def sheet(pictures):
    """All pictures, a line for each state and a column for each display."""
    wide, high = (side // SMALL for side in SIZE)
    left, top, gap = 110, 28, 8
    size = left + len(DISPLAYS) * (wide + gap), top + len(pictures) * (high + gap)
    whole, font = Image.new("RGB", size, "#c9ced6"), ImageFont.load_default(17)
    pen = ImageDraw.Draw(whole)
    columns = [(name, left + x * (wide + gap)) for x, name in enumerate(DISPLAYS)]
    for name, x in columns:
        pen.text((x, 4), name, "#14161a", font)
    for row, (state, shown) in enumerate(pictures.items()):
        y = top + row * (high + gap)
        pen.text((8, y + 8), state, "#14161a", font)
        for name, x in columns:
            if name in shown:
                small = shown[name].picture.resize((wide, high), Image.Resampling.LANCZOS)
                whole.paste(small, (x, y))
    method = Image.Quantize.FASTOCTREE  # keeps the few small spots of color
    return whole.quantize(COLORS, method, dither=Image.Dither.NONE)


@pytest.mark.parametrize("colors", ["light", "dark", "contrast"])
def test_each_state_is_told_apart_from_afar(qtbot, open_window, tmp_path, record, colors):  # noqa: F811
    Settings(tmp_path / "monitor.json").put(started=True)  # no first steps
    before, pictures = theme.choice, {}
    theme.choose(colors)
    try:
        for state, case in CASES.items():
            window, wall = in_window(qtbot, open_window, state, case)
            pictures[state] = {"window": window, "wall": wall}
            pictures[state]["page"] = on_page(state, case, colors)
            pictures[state]["terminal"] = in_terminal(state, case, colors, tmp_path)
    finally:
        theme.choose(before)
    if folder := os.environ.get("AMT_PICTURES"):
        of_all = "states" if colors == "light" else f"states_{colors}"
        sheet(pictures).save(Path(folder) / f"{of_all}.png", optimize=True)
        single = Path(folder) / of_all
        single.mkdir(exist_ok=True)
        for state, row in pictures.items():
            for name, one in row.items():
                one.picture.save(single / f"{state.replace(' ', '_')}_{name}.png")
    for name in DISPLAYS:
        chips = {state: far_chip(row[name]) for state, row in pictures.items() if name in row}
        alike = {
            (one, other): float(np.abs(chips[one] - chips[other]).mean())
            for one, other in combinations(chips, 2)
        }
        closest = min(alike, key=alike.get)
        record(
            f"chips of the {name} at a third of their size, {colors}",
            f"most alike {' and '.join(closest)}: {alike[closest]:.0f} of 255 apart",
        )
        assert alike[closest] > APART, closest
