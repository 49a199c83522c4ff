"""One sound, and all that shows its numbers writes them to the same last digit, maxima too."""

import numpy as np
import soundfile

from amt_monitor.panes.reading_pane import ReadingPane
from amt_stream.engine import Engine, FileSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import reading_text
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.sessions.report import report_page
from amt_stream.sessions.report.content import readings
from amt_stream.sessions.results import read_results

FS = 48000
LEVEL = Calibration(100.0, "calibrator", "2026-11-01", True, 0.3)
MAXIMA = {
    "stl_phon": "max_stl_phon",
    "ltl_phon": "max_ltl_phon",
    "stl_sone": "max_stl_sone",
    "laf_db": "lafmax_db",
    "momentary_lufs": "max_momentary_lufs",
}


def bursts():
    """Noise of 3 s with two bursts of 30 ms, neither of which is at the time of a row."""
    sound = 0.002 * np.random.default_rng(3).standard_normal((3 * FS, 2))
    for start_s in (1.647, 2.213):
        sound[round(start_s * FS) :][:1440] *= 40.0
    return sound


def test_panes_wall_history_log_and_report_have_the_same_digits(qtbot, open_window, tmp_path):
    path, folder = tmp_path / "bursts.wav", tmp_path / "log"
    soundfile.write(path, bursts(), FS, subtype="FLOAT")
    preset = Preset(("moore2016", "spl", "bs1770"))
    models = preset.models(FS, 2)

    def table():
        return Table(preset, models, Sound("bursts", FS, (1, 2), [LEVEL], None), RowSettings(100))

    def make_engine(wanted):
        sinks = [FollowedReadings(table().rows), SessionLog(folder, table())]
        return Engine(FileSource(path), models, sinks, calibration=LEVEL)

    window = open_window(make_engine, readings=False)
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=30000)
    window.updater.read()
    view, results = window.updater.view, read_results(folder)
    logged = results.last | results.summary

    shown = {}
    for dock in window.area.docks.values():
        if isinstance(dock.pane, ReadingPane):
            for cell, label in dock.pane.numbers:
                if cell.text is None:
                    shown[cell.name] = label.text()
    assert {"ltl_sone", "max_ltl_sone", "lafmax_db", "laeq_db", "integrated_lufs"} <= set(shown)
    for name, text in shown.items():
        assert text == reading_text(name, logged[name]), name

    page, reported = report_page(results), 0
    for group in readings(results, 1000).values():
        for one in group:
            if one.name in shown:
                assert one.value == shown[one.name], one.name
                assert f">{one.value}<" in page
                reported += 1
    assert reported >= 5

    wall = window.wall_view
    for names in (["laf_db", "lafmax_db", "max_stl_phon"], ["max_ltl_sone", "laeq_db"]):
        wall.choose(names)
        wall.read(view, None)
        for name, number in wall.numbers.items():
            assert number.digits.text() == reading_text(name, logged[name])

    pane = window.area.docks["history"].pane
    for name, most in MAXIMA.items():
        pane.choose([name])
        text = reading_text(most, logged[most])
        assert pane.legend.text().endswith(f"{reading_text(name, logged[name])}, max {text}")
        drawn = pane.history.cells([name], 0, 0, 31).high
        assert reading_text(name, np.nanmax(drawn)) == text
        if name in ("stl_phon", "laf_db"):
            assert reading_text(name, np.nanmax(results.rows[name])) != text, "no row has it"
