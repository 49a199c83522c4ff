"""Clipped sound, and every face that shows its numbers says that they are at least so high."""

import re

import numpy as np
import pytest
import soundfile

from amt_monitor.base.big_number import CLIPPED, BigNumber
from amt_monitor.panes.reading_pane import ReadingPane
from amt_stream.cli.terminal.cells import cell_lines
from amt_stream.engine import Engine, FileSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import limit_of
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import reading_text, readings_of
from amt_stream.meters.rows.block import is_named
from amt_stream.meters.rows.captions import caption_of, row_text
from amt_stream.meters.rows.limit_words import state_words, value_words, worst_words
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from amt_stream.sessions.compare import compare
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.sessions.report import report_page
from amt_stream.sessions.report.content import readings
from amt_stream.sessions.report.day_levels import day_levels, level_text
from amt_stream.sessions.results import read_results
from amt_stream.views.status_text import title_text

FS = 48000
LEVEL = Calibration(144.0, "calibrator", "2026-11-01", True, 0.3)
LIMITS = (
    limit_of({"column": "lcpeak_db", "above": 150.0}),
    limit_of({"column": "laf_db", "above": 100.0}),
)


def pulse():
    """Quiet noise of 3 s with 50 ms at full scale after one second."""
    sound = 1e-4 * np.random.default_rng(3).standard_normal((3 * FS, 2))
    sound[FS : FS + 2400, 0] = np.sign(np.sin(2 * np.pi * 500 * np.arange(2400) / FS))
    return sound


@pytest.fixture
def measured(qtbot, open_window, tmp_path):
    path, folder = tmp_path / "pulse.wav", tmp_path / "log"
    soundfile.write(path, pulse(), FS, subtype="PCM_16")
    preset = Preset(("moore2016", "spl", "bs1770"), limits=LIMITS)
    models = preset.models(FS, 2)

    def table():
        asked = RowSettings(100, interval=1)
        return Table(preset, models, Sound("pulse", FS, (1, 2), [LEVEL], None), asked)

    def make_engine(wanted):
        sinks = [FollowedReadings(table().rows), SessionLog(folder, table())]
        return Engine(FileSource(path, paced=False), models, sinks, calibration=LEVEL)

    window = open_window(make_engine, readings=False)
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=30000)
    window.updater.read()
    return window, read_results(folder)


def test_every_face_marks_what_the_pulse_raised_and_nothing_else(measured):
    window, results = measured
    view = window.updater.view
    logged = results.last | results.summary
    shown = {
        cell.name: label.text()
        for dock in window.area.docks.values()
        if isinstance(dock.pane, ReadingPane)
        for cell, label in dock.pane.numbers
        if cell.text is None
    }
    assert shown["lcpeak_db"] == f"\N{GREATER-THAN OR EQUAL TO} {logged['lcpeak_db']:.1f}"
    assert logged["lcpeak_db"] > 144
    signs = {name: text[0] for name, text in shown.items() if text[0] in "\u2264\u2265\u2248"}
    statistics = {n for n in shown if caption_of(n).counted and not n.endswith(("lufs", "lu", "p"))}
    named = {n for n in shown if is_named(n, results.last["clipped_columns"])}
    written = {n for n in shown if logged[n] is not None and not shown[n].startswith(">")}
    assert {*signs} == (statistics | named) & written
    assert "laeq_1s_db" in {*shown} - {*signs}, "the last second was not clipped"
    assert {*signs.values()} == {"\N{GREATER-THAN OR EQUAL TO}"}
    for name, text in shown.items():
        bare = reading_text(name, logged[name])
        assert text in (bare, f"\N{GREATER-THAN OR EQUAL TO} {bare}"), name
    for group in readings(results, 1000).values():
        for one in group:
            if one.name in shown:
                assert one.value == shown[one.name], one.name

    wall = window.wall_view
    wall.choose(["lafmax_db", "laf_db"])
    wall.read(view, None)
    texts = [number.text for number in wall.numbers.values()]
    assert texts == [shown["lafmax_db"], shown["laf_db"]]
    assert "LTL" in title_text(view.engine, "running", view)
    pane = window.area.docks["history"].pane
    pane.choose(["laf_db"])
    assert pane.legend.text().endswith(f"max {shown['lafmax_db']}")

    lines = "\n".join(cell_lines({"spl": view.readings.of("spl")}, view.values))
    assert f"LCpeak {shown['lcpeak_db']} dB" in lines
    assert f"LAF {shown['laf_db']} dB" in lines


def test_limits_report_and_intervals_say_so(measured):
    window, results = measured
    view = window.updater.view
    peak, level = LIMITS
    assert state_words(peak, view.values) == "Not known: the sound was clipped"
    assert value_words(peak, view.values).startswith("LCpeak \N{GREATER-THAN OR EQUAL TO} 1")
    told = {one["column"]: one for one in results.limits}
    assert worst_words(told["lcpeak_db"]).startswith("\N{GREATER-THAN OR EQUAL TO} 1")
    assert told["laf_db"]["verdict"] == "exceeded"
    assert told["laf_db"]["clipped_s"] > 0.05
    assert worst_words(told["laf_db"]).startswith("\N{GREATER-THAN OR EQUAL TO} 1")
    assert level.name != peak.name

    page = report_page(results, interval=1)
    table = re.search(r"<h2>Intervals.*?</table>", page, re.DOTALL)[0]
    lines = re.findall(r"<tr>(?:(?!<tr>).)*</tr>", table, re.DOTALL)[1:]
    assert {"clip" in line for line in lines} == {True, False}
    for line in lines:
        assert ("\N{GREATER-THAN OR EQUAL TO}" in line) == ("clip" in line), line
    assert "\N{GREATER-THAN OR EQUAL TO} stands before" in page


def test_a_part_and_the_levels_of_a_day_say_so(measured):
    from amt_stream.sessions.results.parts import Part, results_of_part

    _, results = measured
    for begin_s, end_s, marked in ((0.0, 0.9, False), (0.9, 1.5, True), (2.0, 3.0, False)):
        part = results_of_part(results, Part(begin_s, end_s))
        values = {one.name: one.value for group in readings(part, 99).values() for one in group}
        assert (values["laeq_db"][0] == "\N{GREATER-THAN OR EQUAL TO}") == marked, begin_s
    levels = day_levels([results])
    assert levels.clipped
    assert levels.to_dict()["clipped"]
    assert level_text(60.04, True) == "\N{GREATER-THAN OR EQUAL TO} 60.0"
    assert level_text(None, True) == "---"


SIGNED = {
    "\N{GREATER-THAN OR EQUAL TO}": ("lafmax_db", "lafmin_db", "l90_db", "ltl_sone", "ltl_n5_phon"),
    "\N{ALMOST EQUAL TO}": ("lceq_minus_laeq_db", "sharpness_acum", "ecma_tonality_tu"),
    "\N{LESS-THAN OR EQUAL TO}": ("laeq_15min_allowed_99_db", "laeq_15min_until_99_s"),
    "": ("integrated_lufs", "true_peak_dbtp"),
}


@pytest.mark.parametrize("sign", SIGNED)
def test_the_sign_is_that_of_the_reading(sign):
    for name in SIGNED[sign]:
        row = {name: 60.0, "clipped_columns": name}
        assert row_text(name, row)[:2].strip("60.:") == (f"{sign} " if sign else ""), name
        assert row_text(name, {**row, "clipped_columns": "all"}) == row_text(name, row)
        assert row_text(name, {**row, "clipped_columns": ""}) == reading_text(name, 60.0)
        assert row_text(name, {**row, name: None}) == "---"


def test_beyond_the_table_of_phon_there_is_one_sign():
    row = {"ltl_phon": 130.0, "clipped_columns": "ltl_phon"}
    assert row_text("ltl_phon", row) == ">120"


def test_every_column_says_in_the_header_what_clipping_makes_of_it():
    for column in readings_of(["spl"], 2)["spl"].offered:
        assert column.to_dict()["if_clipped"] in ("at least", "uncertain"), column.name
    assert "if_clipped" not in readings_of(["bs1770"], 2)["bs1770"].offered[0].to_dict()


@pytest.mark.parametrize("name", ["laf_db", "ltl_sone", "ltl_phon"])
def test_a_sign_has_room_beside_the_digits_and_is_explained(qtbot, name):
    number = BigNumber(name, caption_of(name))
    qtbot.addWidget(number)
    number.set_size(60)
    assert number.show_text("\N{GREATER-THAN OR EQUAL TO} 88.8"), "it needs more room"
    number.resize(number.minimumSizeHint())
    number.show()
    for text in ("\N{GREATER-THAN OR EQUAL TO} 88.8", "77.7", "\N{ALMOST EQUAL TO} 66.6"):
        assert not number.show_text(text), "there is room once it had one"
        assert number.digits.fontMetrics().horizontalAdvance(text) <= number.digits.width()
        assert number.rect().contains(number.unit.geometry())
    assert CLIPPED["\N{ALMOST EQUAL TO} "] in number.digits.toolTip()
    number.show_text("77.7")
    assert "clipped" not in number.digits.toolTip()


def test_a_comparison_says_which_sound_was_clipped(measured):
    _, results = measured
    notes = compare(results, results).notes
    assert "A is clipped: its levels and loudness are at least so high" in notes
