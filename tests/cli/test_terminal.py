"""The meter in the terminal: its screen on a real engine, its keys, and lines of text.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of the screen there.
"""

import asyncio
import itertools
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from rich.color import ColorSystem
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets import Input

from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.terminal import TerminalMeter
from amt_stream.cli.terminal.app import HelpScreen, MeterApp, run_app
from amt_stream.cli.terminal.cells import cell_lines
from amt_stream.cli.terminal.keys import keys_that_fit
from amt_stream.cli.terminal.palette import COLORS, DARK, FEW, LIGHT, other_theme, theme_of_terminal
from amt_stream.cli.terminal.panes import _value_labels
from amt_stream.cli.terminal.picture import Picture
from amt_stream.cli.terminal.pictures import HATCH, braille, digits, digits_width, meter, trace
from amt_stream.cli.watch import Watch
from amt_stream.cli.window import Maker
from amt_stream.dsp.scales import phon_to_sone
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, FaultSource, Injection, PushSource, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows, fault_words, phon_text, readings_of
from amt_stream.meters.state_signs import SIGNS
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.measurement_control import MeasurementRequest
from tests.service.browser import Browser

FS = 48000
SIZES = [(60, 20), (80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("phon", [0.0, 20.0, 40.0, 119.9, 120.0])
def test_phon_is_written_with_one_decimal(phon):
    assert phon_text(phon_to_sone(phon)) == f"{phon:.1f}"


def test_beyond_the_table_of_the_standard_phon_is_above_120():
    assert phon_text(1.01 * phon_to_sone(120.0)) == ">120"


def test_faults_in_words():
    assert fault_words(0) == []
    assert fault_words(5) == ["gap", "bad samples"]


def test_large_digits_grow_by_whole_characters():
    assert digits("1.0") == (" ▄    ▄▄▄", "▀█    █ █", "▄█▄ ▄ █▄█")
    for scale, height in ((1, 3), (2, 5), (3, 8), (4, 10)):
        lines = digits("-12.5", scale)
        assert {len(line) for line in lines} == {digits_width("-12.5", scale)}
        assert len(lines) == height
    assert digits("8", 2) == ("██████", "██  ██", "██████", "██  ██", "██████")


def test_a_line_in_braille_joins_its_points_and_leaves_gaps():
    dots = trace([0.0, 0.0, 10.0, np.nan, 10.0, 0.0], 0.0, 10.0, 2)
    lines = braille([dots], ["ltl"], np.array([False, False, False]))
    assert ["".join(part for part, _ in line) for line in lines] == [" ⡇⢱", "⣀⠇⢸"]
    hatched = braille([np.zeros((1, 3), int)], ["ltl"], np.array([True, False, True]))
    assert "".join(part for part, _ in hatched[0]) == f"{HATCH} {HATCH}"


def test_a_meter_is_filled_in_eighths_and_holds_its_peak():
    assert [text for text, _ in meter(0.5, 0.0, 4)] == [" ", " ", "█", "█"]
    assert [text for text, _ in meter(0.53125, 0.0, 4)] == [" ", "▁", "█", "█"]
    assert meter(0.0, 0.9, 4)[0] == ("▔", True)


def test_a_scale_of_the_history_has_two_labels_at_least():
    for height in range(2, 40):
        for low, top in ((20.0, 60.0), (20.0, 90.0), (20.0, 130.0), (-60.0, -10.0)):
            labels = _value_labels(low, top, height)
            assert labels[height - 1] == f"{low:.0f}"
            assert len(labels) > 1, (low, top, height)


def test_the_line_of_keys_fits():
    for width in (20, 58, 78, 200):
        words = "  ".join(f"{one.label} {one.word}" for one in keys_that_fit(width))
        assert len(words) <= width
        assert words.endswith("? Help  Q Quit")
    assert words.startswith("Space Pause  S Stop  R Reset  M Marker  L Log  F Freeze")


def made(*options):
    """A meter as the command makes it, and its engine, not yet started."""
    args = build_parser().parse_args(["meter", *map(str, options)])
    maker = Maker(args, chosen_preset(args))
    engine = maker.engine(MeasurementRequest())
    return engine, TerminalMeter(engine, maker.readings, lambda: maker.log(engine, None))


def drive(engine, meter, script, size=(80, 24)):
    """Run `script(app, pilot)` beside the screen of a running engine."""

    async def run():
        app = MeterApp(meter)
        async with app.run_test(size=size) as pilot:
            try:
                await script(app, pilot)
            finally:
                app.action_leave()

    with engine:
        asyncio.run(run())


def text_of(app):
    """The screen as text, a line each."""
    return "\n".join(
        "".join(segment.text for segment in strip)
        for strip in app.screen._compositor.render_strips()
    )


def ink(app):
    """The role of the large digits."""
    return app.query("NumberPane").first()._lines[1][0][1]


async def press(app, *keys):
    """Type keys, at the pace of a fast typist."""
    for key in keys:
        app.simulate_key(key)
        await asyncio.sleep(0.05)


async def until(app, holds, timeout=60.0):
    """Wait until this holds of the text on the screen, and return it."""
    end = time.monotonic() + timeout
    while not holds(text := text_of(app)):
        assert time.monotonic() < end, text
        await asyncio.sleep(0.05)
    return text


HISTORY_S = 64.0
"""Seconds that are measured before a picture."""


def test_what_a_text_shows_of_the_terminal(tmp_path):
    words = ("--source", "demo", "--model", "moore2016", "--limit", "ltl_phon>85")
    engine, meter = made(*words)
    folder, path = os.environ.get("AMT_PICTURES"), tmp_path / "terminal.svg"

    async def look(app, pilot):
        if not app.theme.endswith("dark"):
            await press(app, "t")
        parts = "Loudness, long-term", "History, last minute", "Specific loudness, left", "limit 85"
        await until(app, lambda text: all(one in text for one in (*parts, "● Within the limit")))
        if folder:
            await asyncio.sleep(HISTORY_S)
        title = "amt-stream meter --terminal"
        path.write_text(app.export_screenshot(title=title), encoding="utf-8")

    drive(engine, meter, look, (100, 30))
    assert "Loudness" in path.read_text(encoding="utf-8")
    if folder:
        with Browser(1280, 800) as browser:
            browser.open(path.as_uri())
            (Path(folder) / "terminal.png").write_bytes(browser.picture())


def faults_of(app, text, width, height):
    """What is wrong on a screen of this size, once it has settled."""
    lines = text.split("\n")
    words = "Stopped", "LTL", "STL", "sone", "phon", "last minute", "dB SPL", "48 kHz"
    there = {
        "History, last minute": width >= 80,
        "Loudness, long-term": width >= 80,
        "1k": height >= 24,
        "stl_sone": False,
        "…": False,
        **dict.fromkeys(words, True),
    }
    found = [one for one, wanted in there.items() if (one in text) != wanted]
    if (len(lines), {len(line) for line in lines}) != (height, {width}):
        found.append("size")
    if not re.search(r"last minute +━ LTL [\d.]+ +─ STL [\d.]+", text):
        found.append("legend")
    if not lines[-1].rstrip().endswith("Q Quit"):
        found.append("keys")
    for pane in app.screen.query(Picture):
        drawn = pane.text.split("\n")
        wide, high = max(map(len, drawn)), len(drawn)
        if pane.display and pane.text and (wide > pane.size.width or high > pane.size.height):
            found.append(pane)
    return found


def test_words_numbers_and_pictures_at_every_size():
    engine, meter = made("--source", "demo")

    async def look(app, pilot):
        await until(app, lambda _: meter.readings.measured_s > 1.0)
        await press(app, "s")  # as a busy machine is too slow for a measurement at times
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            found = ["not drawn yet"]

            def settled(text, size=(width, height), found=found):
                found[:] = faults_of(app, text, *size)
                return not found

            try:
                await until(app, settled)
            except AssertionError as error:
                raise AssertionError((width, height, found)) from error

    drive(engine, meter, look)


BRIGHT = 8
RED = 1


def ansi(color):
    """The number of a color on a terminal with 16 of them."""
    return color.downgrade(ColorSystem.STANDARD).number % BRIGHT


@pytest.mark.parametrize("theme", [LIGHT + FEW, DARK + FEW])
def test_in_few_colors_only_limits_are_red(theme):
    colors = COLORS[theme]
    for role in colors._fields[:-1]:
        assert (ansi(colors.style(role).color) == RED) == (role == "red"), role
    kinds = {role: ansi(colors.style(role).color) for role in ("left", "right", "ink", "amber")}
    assert len({*kinds.values()}) == 4
    for name, sign in SIGNS.items():
        style = colors.style(f"{sign.color} reverse" if sign.filled else sign.color)
        assert ansi(style.color) != ansi(style.bgcolor), name
        assert (RED in (ansi(style.color), ansi(style.bgcolor))) == ("limit" in name), name
    slow = colors.style("amber reverse")
    assert slow.color.triplet.hex == "#000000", "black on yellow"


@pytest.mark.parametrize(("system", "few"), [("standard", True), ("256", False), (None, False)])
@pytest.mark.parametrize(("behind", "first"), [("0;15", LIGHT), ("15;0", DARK), ("", DARK)])
def test_the_theme_is_that_of_the_terminal(monkeypatch, system, few, behind, first):
    monkeypatch.setenv("COLORFGBG", behind)
    theme = theme_of_terminal(system)
    assert theme == (first + FEW if few else first)
    assert {theme, other_theme(theme)} == {LIGHT + FEW * few, DARK + FEW * few}
    assert COLORS[theme].theme(theme).dark == (first == DARK)


@pytest.mark.cases(2)
@pytest.mark.parametrize("size", SIZES)
def test_no_line_below_large_numbers_is_empty(size):
    """Levels have one unit and no maximum: the room is for the history."""
    engine, meter = made("--source", "demo", "--model", "spl")

    async def look(app, pilot):
        await until(app, lambda text: re.search(r"LAF \d", text))
        numbers = app.query_one("#numbers")
        lines = [one.text.rstrip().split("\n") for one in app.query("NumberPane")]
        await until(app, lambda _: numbers.size.height == max(map(len, lines)))
        assert all(len(one) <= numbers.size.height for one in lines)

    drive(engine, meter, look, size)


def test_keys_do_what_they_do_in_the_window():
    engine, meter = made("--source", "demo", "--model", "spl")
    readings = meter.readings

    async def work(app, pilot):
        await until(app, lambda text: "Fast" in text or "LAF" in text)
        await until(app, lambda _: readings.measured_s > 0.5)
        await press(app, "space")
        await until(app, lambda text: "aused" in text and ink(app) == "second")
        await asyncio.sleep(0.3)
        kept = readings.measured_s
        await asyncio.sleep(0.4)
        assert readings.measured_s == kept
        await press(app, "space")
        await until(app, lambda text: "aused" not in text and readings.measured_s > kept + 0.3)
        await press(app, "u")
        await until(app, lambda text: "nothing to undo" in text)
        before = readings.measured_s
        await press(app, "r")
        await until(app, lambda text: "U restores them within 10 s" in text)
        assert readings.measured_s < before
        await press(app, "u")
        await until(app, lambda _: readings.measured_s > before)
        await press(app, "m", *"dooor", "backspace", "r", "enter")
        await until(app, lambda text: "marked: dooor" in text)
        await press(app, "m", "escape", "m", "enter")
        await until(app, lambda text: "marked: mark 2" in text)
        assert [e.text for e in engine.events if e.kind == "mark"][:1] == ["dooor"]
        await press(app, "f")
        await until(app, lambda text: "Frozen" in text)
        await until(app, lambda _: ink(app) == "second")
        await press(app, "f", "question_mark")
        await until(app, lambda text: "Shift+R" in text and "reset filters" in text)
        assert isinstance(app.screen, HelpScreen)
        await press(app, "escape")
        await press(app, "h")
        await until(app, lambda text: "last 10 minutes" in text)
        dark = app.theme
        await press(app, "t")
        assert app.theme != dark
        ears = app.query_one("EarMeters")
        await until(app, lambda _: "█" in ears.text)
        await press(app, "s")
        await until(app, lambda text: "Stopped" in text)
        await until(app, lambda _: "█" not in ears.text)
        assert re.search(r"\d\d +\d\d", ears.text.splitlines()[-2]), "the last levels stay"
        await press(app, "space")
        assert not meter.paused

    drive(engine, meter, work)


def test_the_mouse_presses_the_words_of_keys():
    engine, meter = made("--source", "demo", "--model", "spl")

    async def click(app, pilot):
        await until(app, lambda _: meter.readings.measured_s > 0.0)
        at = text_of(app).split("\n")[-1].index("Pause")
        await pilot.click(offset=(at + 1, 23))
        await until(app, lambda text: "aused" in text)

    drive(engine, meter, click)


def pushed(**settings):
    """An engine of sound levels that a test feeds, and its meter."""
    source = PushSource(FS, 2, name="field microphone", **settings)
    engine = Engine(source, SoundLevel(fs=FS))
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    return source, engine, TerminalMeter(engine, readings, lambda: None)


def test_doubts_are_told_in_words_and_a_lost_microphone_shows_no_numbers():
    source, engine, meter = pushed()
    tone = np.repeat(0.1 * np.sin(np.arange(FS // 10) * 0.13)[:, None], 2, axis=1)

    async def lose(app, pilot):
        async def play():
            for k in itertools.count():
                source.push((12.0 * tone).clip(-1, 1) if k % 10 == 9 else tone)
                await asyncio.sleep(0.1)

        playing = asyncio.create_task(play())
        await until(app, lambda text: "uncalibrated" in text and "CLIP" in text)
        playing.cancel()
        number = app.query("NumberPane").first()
        assert "█" in number.text
        shown = number.text
        await until(app, lambda text: "Microphone lost 00:02, waiting for field micro" in text)
        assert "last " in number.text
        assert number.text != shown
        assert "--" in app.query_one("EarMeters").text
        assert "█" not in app.query_one("EarMeters").text

    drive(engine, meter, lose)


def test_a_muted_microphone_shows_no_numbers_and_says_since_when():
    sound = SignalSource([Tone(1000.0, level_db=60.0)], FS)
    source = FaultSource(sound, [Injection("mute", 2.0, 60.0)])
    limit = Limit("laf_db", 80.0, name="loud")
    readings = FollowedReadings(JoinedRows(readings_of(["spl"], 2), 100, FS, limits=[limit]))
    engine = Engine(source, {"spl": SoundLevel(fs=FS)}, [readings], calibration=Calibration(130.0))
    meter = TerminalMeter(engine, readings, lambda: None)

    async def look(app, pilot):
        await until(app, lambda text: "Within the limit" in text)
        await until(app, lambda text: "Microphone silent 00:0" in text)
        await until(app, lambda text: "Not known: silent" in text)
        assert "gives exact zeros: it is muted" in app.query_one("#banner").text
        assert app.query_one("#header").text.startswith(" ⊖ Silent")
        number = app.query("NumberPane").first()
        await until(app, lambda _: "last " in number.text)
        assert "█" not in app.query_one("EarMeters").text

    drive(engine, meter, look, (120, 30))


@pytest.mark.cases(2)
@pytest.mark.parametrize("width", [60, 66, 80, 120])
def test_words_beside_large_digits_are_whole(tmp_path, width):
    noise = 0.03 * np.random.default_rng(1).standard_normal((20 * FS, 2))
    soundfile.write(tmp_path / "noise.wav", noise, FS)
    words = "--source", tmp_path / "noise.wav", "--model", "moore2016,spl"
    engine, meter = made(*words)

    async def look(app, pilot):
        numbers = [*app.query("NumberPane")][:2]
        await until(app, lambda _: all(re.search(r"max \d\d\.", one.text) for one in numbers))
        for number in numbers:
            assert max(map(len, number.text.split("\n"))) <= number.size.width
            above = number.text.partition("phon")[0]
            assert re.search(r"\bsone\b", above)
            assert {*re.findall(r"\bunc?\w*", above)} <= {"uncal", "uncalibrated"}
            assert "uncal" in above

    drive(engine, meter, look, (width, 24))


@pytest.mark.cases(2)
@pytest.mark.parametrize("width", [20, 24, 32, 40])
def test_no_large_number_is_cropped(sound_file, tone, width):
    path = sound_file(tone(70.0, 30.0))
    engine, meter = made("--source", path, "--model", "moore2016,spl", "--full-scale-db", 100)

    async def look(app, pilot):
        numbers = [*app.query("NumberPane")][:2]
        await until(app, lambda _: all(one.text.count("\n") for one in numbers))
        for number in numbers:
            for line in number._lines[1:-1]:
                assert sum(len(text) for text, _ in line) <= number.size.width

    drive(engine, meter, look, (width, 20))


@pytest.mark.cases(2)
@pytest.mark.parametrize("width", [10, 20, 26, 27, 28, 29, 30, 31, 32])
def test_a_table_with_hardly_any_room_is_drawn(width):
    engine, meter = made("--source", "demo", "--model", "moore2016,spl,bs1770")

    async def look(app, pilot):
        await until(app, lambda _: app.query_one("TablePane")._lines)
        await pilot.resize_terminal(width, 24)
        await until(app, lambda _: app.size.width == width)
        await asyncio.sleep(0.5)
        assert not app.return_code

    drive(engine, meter, look)


def test_the_state_at_the_top_is_the_worst():
    sound = SignalSource([Tone(1000.0, level_db=60.0)], FS)
    faults = [
        Injection("clip", 1.0, 1.4),
        Injection("late", 2.6, 2.0),
        Injection("unplug", 5.6, 60),
    ]
    engine = Engine(FaultSource(sound, faults), SoundLevel(fs=FS), calibration=Calibration(100.0))
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)

    async def look(app, pilot):
        for words in ("◐ Settling", "┳ Clipped", "⋈ Too slow", "✕ Lost"):
            await until(app, lambda text, words=words: f" {words}" in text.split("\n")[0])

    drive(engine, TerminalMeter(engine, readings, lambda: None), look)


def test_a_measurement_of_more_than_a_day_shows_its_hours(monkeypatch):
    engine, meter = made("--source", "demo", "--model", "spl")
    monkeypatch.setattr(type(meter.readings), "measured_s", 90061.0)

    async def look(app, pilot):
        await until(app, lambda text: " 25:01:01 " in text.split("\n")[0])

    drive(engine, meter, look)


def test_a_limit_that_is_exceeded_has_a_shape_and_a_word(sound_file, tone):
    path = sound_file(tone(80.0, 30.0))
    limits = ("--limit", "laf_db>79", "--limit", "laf_db>120", "--full-scale-db", 100)
    engine, meter = made("--source", path, "--model", "spl", *limits)

    async def look(app, pilot):
        text = await until(app, lambda text: "80.0 dB, limit 79 dB" in text)
        assert "■ Over the limit" in text
        await until(app, lambda text: text.startswith(" ■ Over limit"))
        assert "● Within the limit" in text
        (over,) = (line for line in app.query_one("LimitPane")._lines if "■" in line[0][0])
        assert over[0][1] == "red reverse bold"

    drive(engine, meter, look)


def look_at_history(path, shown, check, *options):
    """Check the picture of the history once it has these words."""
    engine, meter = made("--source", path, "--full-scale-db", 100, *options)

    async def look(app, pilot):
        pane = app.query_one("HistoryPicture")
        await until(app, lambda _: shown in pane.text)
        check(pane)

    drive(engine, meter, look)


def test_the_history_shows_the_reading_of_a_limit_and_the_limit(sound_file, tone):
    def check(pane):
        (line,) = (line for line in pane._lines if "limit 85" in "".join(text for text, _ in line))
        drawn, role = line[-1]
        assert drawn.startswith(" limit 85 ╌╌╌")
        assert role == "red"
        assert len(drawn) > 50

    asked = "--model", "moore2016,spl", "--limit", "laeq_15min_db>85"
    shown = "LAeq,15min 70.0   ─ LAF 70.0 dB"
    look_at_history(sound_file(tone(70.0, 30.0)), shown, check, *asked)


def test_a_limit_below_the_scale_is_not_in_the_picture(sound_file, tone):
    def check(pane):
        assert "limit 5" not in pane.text

    asked = "--model", "spl", "--limit", "laf_db>5"
    look_at_history(sound_file(tone(70.0, 30.0)), "LAF 70.0", check, *asked)


def test_a_screen_that_fails_ends_with_a_status(sound_file, tone, monkeypatch):
    engine, meter = made("--source", sound_file(tone(70.0, 30.0)), "--model", "spl")
    monkeypatch.setattr("amt_stream.cli.terminal.driver.driver_class", lambda _: HeadlessDriver)
    monkeypatch.setattr("amt_stream.cli.terminal.panes.HistoryPicture.draw", lambda *_: 1 / 0)
    with engine, pytest.raises(SystemExit) as ended:
        run_app(meter, sys.stdout, Watch(engine), None)
    assert ended.value.code == 1


def test_the_modulation_of_both_ears_is_drawn():
    engine, meter = made("--source", "am-tone", "--model", "king2019")

    async def look(app, pilot):
        pane = app.query_one("ModulationPane")
        await until(app, lambda text: "strongest: 5.2 Hz" in text and "█" in pane.text, 60)
        for words in ("Modulation spectrum, king2019", "left ear", "right ear", "5.2 Hz │", "1k"):
            assert words in pane.text
        strong = next(line for line in pane.text.split("\n") if "5.2 Hz │" in line)
        assert "█" in strong

    drive(engine, meter, look)


def test_many_readings_stand_in_a_table_that_scrolls(sound_file, tone):
    path = sound_file(tone(70.0, 30.0))
    models = ("--model", "moore2016,bs1770,spl", "--full-scale-db", 100)
    engine, meter = made("--source", path, *models)

    async def look(app, pilot):
        text = await until(app, lambda text: re.search(r" \d+ more below ↓", text))
        assert "laeq" not in text
        table = app.query_one("TablePane")
        table.on_mouse_scroll_down()
        await until(app, lambda _: table.first == 1)
        await press(app, "down", "down", "up")
        await until(app, lambda _: table.first == 2)
        await press(app, *["down"] * 40)
        await until(app, lambda text: re.search(r" \d+ more above ↑", text))
        await pilot.resize_terminal(200, 60)
        await until(app, lambda text: "more below" not in text and "more above" not in text)

    drive(engine, meter, look)


def test_the_legend_of_the_history_has_both_numbers_as_they_are():
    engine, meter = made("--source", "demo")

    async def look(app, pilot):
        pane = app.query_one("HistoryPicture")
        pane.span = 2  # of an hour: a column takes a minute, and the legend must not wait for it
        await until(app, lambda text: "LTL 40.0" in text)
        legend = pane.text.split("\n")[0]
        assert re.fullmatch(r"History, last hour +━ LTL 40\.0 +─ STL 40\.0.*", legend)

    drive(engine, meter, look, (60, 20))


def test_an_uncertainty_stands_beside_phon(sound_file, tone):
    path = sound_file(tone(60.0, 30.0))
    known = ("--full-scale-db", 100, "--calibration-uncertainty", 0.6)
    engine, meter = made("--source", path, *known, "--microphone-uncertainty", 0.8)

    async def look(app, pilot):
        await until(app, lambda text: "60.0 ± 1.0 phon" in text)
        await until(app, lambda text: re.search(r"max 4\.\d+ sone  60\.\d ± 1\.0 phon", text))

    drive(engine, meter, look)


def test_plain_lines_where_it_is_no_terminal(run, sound_file, tone):
    path = sound_file(np.concatenate([tone(60.0, 1.2), tone(99.0, 1.0)]))
    done = run("meter", "--terminal", "--source", path, "--full-scale-db", 140)
    assert done.status == 0, done.err
    assert 2 <= len(done.out.splitlines()) <= 4
    assert "\x1b" not in done.out
    assert ">120 phon" in done.out.splitlines()[-1]
    assert "uncalibrated" not in done.out


ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def test_a_real_terminal_is_taken_and_given_back(typist, begin, tmp_path):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo", "--model", "spl"]
    home = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "TERM": "linux"}
    home.pop("COLORTERM", None)
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal, environment=home) as run:
        person.wait_for("Running", since=person.wait_for(ENTER))
        person.wait_for("Paused", since=person.press(" "))
        assert not re.search(r"\x1b\[(\d+;)*(31|91|41|101)[;m]", person.seen), "red is for limits"
        person.wait_for("Running", since=person.press(" "))
        person.press("\x1b[A\x1bOS")  # arrow keys and F4 type nothing, though an S is in there
        person.press("m")
        time.sleep(0.3)
        person.wait_for("marked: doör", since=person.press("doör\r"))
        person.wait_for("logged in", since=person.press("l"))
        person.wait_for("no longer logged", since=person.press("l"))
        person.wait_for("Frozen", since=person.press("f"))
        person.wait_for("Stopped", since=person.press("fs"))
        after = person.press("q")
        farewell = person.wait_for(LEAVE, since=after)
        person.wait_for("LAF 40.0 dB", since=farewell)
        person.wait_for("measured", since=farewell)
    assert run.returncode == 0
    assert len(list((tmp_path / "Documents").glob("amt-stream/*/session.json"))) == 1


def test_a_key_writes_the_last_of_the_sound_where_it_is_kept(typist, begin, tmp_path):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo", "--model", "spl"]
    call += ["--event-folder", tmp_path / "sounds", "--keep-sound", "1"]
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as run:
        person.wait_for("Running")
        time.sleep(2.0)
        after = person.press("i")
        person.wait_for("written", since=after)
        person.press("q")
        person.wait_for("1 sound file in ", since=person.wait_for(LEAVE, since=after))
    assert run.returncode == 0
    (path,) = (tmp_path / "sounds").iterdir()
    assert soundfile.info(path).frames == FS


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (["--source", "demo", "--duration", "3"], "amt-stream: marked: do"),
        (
            ["--source", "short.wav", "--full-scale-db", "100"],
            "the measurement has ended: mark 'do' comes too late",
        ),
    ],
)
def test_a_note_that_the_end_comes_before_is_kept_or_not_and_that_is_told(
    typist, begin, sound_file, tone, ends, said
):
    person, terminal = typist
    sound_file(tone(60.0, 3.0), name="short.wav")
    call = ["meter", "--terminal", "--model", "spl", *ends]
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as run:
        person.wait_for("Running", since=person.wait_for(ENTER))
        person.press("m")
        person.press("do")
        person.wait_for(said, since=person.wait_for(LEAVE))
    assert run.returncode == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_too_leaves_the_terminal_as_it_was(typist, begin, number, status):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo"]
    with begin(*call, stdin=terminal, stdout=terminal) as run:
        person.wait_for("LTL", since=person.wait_for(ENTER))
        run.send_signal(number)
        person.wait_for(LEAVE)
    assert run.returncode == status


def test_what_stays_after_the_screen_calls_no_limit_kept_while_its_microphone_is_away(
    virtual_mic, typist, begin
):
    person, terminal = typist
    call = ["meter", "--terminal", "-d", "virtual_mic", "--model", "spl", "--full-scale-db", "120"]
    call += ["--limit", "laf_db>110"]
    try:
        with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as run:
            person.wait_for("Within the limit", since=person.wait_for(ENTER))
            virtual_mic.unplug()
            person.wait_for("Not known: lost")
            farewell = person.wait_for(LEAVE, since=person.press("q"))
            person.wait_for("Not known: lost: LAF --- dB, limit 110 dB", since=farewell)
            person.wait_for("laf_110: laf_db is not known: for", since=farewell)
        assert run.returncode == 0
    finally:
        virtual_mic.plug()


@pytest.mark.parametrize(
    ("code", "environment", "said"),
    [
        ("sys.modules['textual'] = None", {}, "so the meter prints lines: pip install textual"),
        ("", {"PYTHONIOENCODING": "iso8859-1"}, "the terminal writes iso8859-1, not UTF-8"),
    ],
)
def test_a_terminal_that_cannot_show_the_screen_gets_lines(typist, begin, code, environment, said):
    person, terminal = typist
    program = f"import sys; {code}\nfrom amt_stream.cli import main\nmain()"
    call = ["meter", "--terminal", "--source", "demo", "--model", "spl", "--duration", "1.5"]
    given = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "options": ["code"]}
    with begin(program, *call, environment=os.environ | environment, **given) as run:
        person.wait_for(said)
        person.wait_for("LAF ")
        person.wait_for("measured")
    assert run.returncode == 0
    assert "\x1b" not in person.seen


def test_ctrl_c_interrupts(typist, begin):
    person, terminal = typist
    with begin(
        "meter", "--terminal", "--source", "demo", "--model", "spl", stdin=terminal, stdout=terminal
    ) as run:
        person.wait_for("Running", since=person.wait_for(ENTER))
        person.press("\x03")
        person.wait_for(LEAVE)
    assert run.returncode == 130


def test_the_note_takes_the_keys_until_it_is_entered():
    engine, meter = made("--source", "demo", "--model", "spl")

    async def write(app, pilot):
        await until(app, lambda text: "Running" in text)
        await press(app, "m", "q", "s")
        await pilot.press("space")
        note = app.query_one("#note", Input)
        assert (note.value, note.display) == ("qs ", True)
        assert not meter.stopped
        await press(app, "escape")
        assert not note.display

    drive(engine, meter, write)


def test_closing_lines_have_the_names_of_displays_and_of_models_where_needed():
    names = ("ltl_sone", "ltl_phon", "ltl_low_phon", "max_ltl_sone")
    groups = {"moore2016": names, "gm2002": ("gm2002_ltl_sone",), "spl": ("lcpeak_db", "laf_db")}
    values = {"ltl_sone": 4.0, "ltl_phon": 60.0, "max_ltl_sone": 5.0, "gm2002_ltl_sone": 4.2}
    values |= {"lcpeak_db": 147.0, "clipped_columns": "lcpeak_db", "laf_db": None}
    assert cell_lines(groups, values) == [
        "moore2016 LTL 4.00 sone  60.0 phon",
        "LTL max 5.00 sone",
        "gm2002 LTL 4.20 sone",
        "LCpeak \N{GREATER-THAN OR EQUAL TO} 147.0 dB",
    ]
