"""What was kept is opened again, reported, compared; a file is analyzed, or not after all."""

import math
import re
import shutil
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QT_LIB, QtCore, QtGui, QtWidgets

from amt_monitor.actions.file_actions import FileActions
from amt_monitor.actions.recent_menu import RecentMenu
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.file_drop_filter import KEPT, SOUND, FileDropFilter
from amt_monitor.base.settings import Settings
from amt_monitor.dialogs.comparison_dialog import ComparisonDialog, cells_of
from amt_monitor.dialogs.open_sound_dialog import OpenSoundDialog
from amt_monitor.dialogs.report_dialog import ReportDialog, asked_page
from amt_monitor.dialogs.results_dialog import ResultsDialog, stored_results
from amt_stream.cli.command import run_command
from amt_stream.sessions.compare import Difference
from amt_stream.sessions.results import read_results
from tests.sessions.report.conftest import FS, MARK, NAMELESS, measure_into

WAIT_MS = 60_000
NOISE = 0.01 * np.random.default_rng(5).standard_normal((2 * FS, 2))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return measure_into(tmp_path_factory.mktemp("logs") / "night")


@pytest.fixture
def shown(qtbot):
    """Shows a dialog."""

    def show(dialog):
        qtbot.addWidget(dialog)
        dialog.show()
        qtbot.waitExposed(dialog)
        return dialog

    return show


def texts(table):
    rows, columns = range(table.rowCount()), range(table.columnCount())
    return [[table.item(row, column).text() for column in columns] for row in rows]


def test_a_session_that_is_opened_again_has_all_that_was_read(qtbot, shown, log):
    results = stored_results(log)
    window = shown(ResultsDialog(results, log))
    table = {row[0]: row for row in texts(window.table)}
    assert table["LAeq"][1:3] == [f"{results.summary['laeq_db']:.1f}", "dB"]
    history = window.history.history
    rows = history.rows(["laf_db"], 0.0, 10.0)
    kept = results.rows
    np.testing.assert_allclose(rows["laf_db"][3:], kept["laf_db"][3:], rtol=1e-6)
    assert not window.history.plot.follows
    assert [event.text for event in window.history.layers.events if event.kind == "mark"] == [MARK]
    assert [limit.threshold for limit in window.history.layers.limits] == [70.0, 200.0]
    told = window.findChild(QtWidgets.QPlainTextEdit, "events").toPlainText()
    assert "LAF not above 70 dB, exceeded" in told
    assert "gap 1 time" in told
    assert '"preset"' in window.findChild(QtWidgets.QPlainTextEdit, "settings").toPlainText()
    assert window.history.head_of_export()["calibration"] == results.header["calibration"]
    asked = []
    window.asked.connect(asked.append)
    window.findChild(QtWidgets.QPushButton, "report").click()
    assert asked == ["report"]


def test_what_is_no_session_is_said(qtbot, tmp_path):
    opened = BackgroundTask(QtWidgets.QApplication.instance())
    with qtbot.waitSignal(opened.refused, timeout=WAIT_MS) as found:
        opened.run(lambda: stored_results(tmp_path))
    assert "is not a session" in found.args[0]


def test_a_report_is_written_with_what_people_know(qtbot, shown, log, tmp_path):
    dialog = shown(ReportDialog(read_results(log), {"place": "hall"}))
    dialog.findChild(QtWidgets.QLineEdit, "client").setText("<Client>")
    for name in ("a.html", "a.pdf"):
        with qtbot.waitSignal(dialog.written, timeout=WAIT_MS):
            dialog.write(tmp_path / name)
    page = (tmp_path / "a.html").read_text()
    assert "hall" in page
    assert "&lt;Client&gt;" in page
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    assert dialog.fields["client"] == "<Client>"
    dialog._paper.setCurrentIndex(1)
    dialog._logo.setText(str(tmp_path / "gone.png"))
    dialog.write(tmp_path / "b.html")
    assert dialog.message.text().startswith("Not written: the logo")
    assert not (tmp_path / "b.html").exists()
    dialog._logo.setText("")
    assert (dialog.fields["paper"], dialog.fields["logo"]) == ("letter", "")
    with qtbot.waitSignal(dialog.written, timeout=WAIT_MS):
        dialog.write(tmp_path / "b.html")
    assert "size: letter" in (tmp_path / "b.html").read_text()
    dialog.write(tmp_path / "none" / "b" / "\0.html")
    qtbot.waitUntil(lambda: dialog.message.text().startswith("Not written"), timeout=WAIT_MS)
    note = dialog.findChild(QtWidgets.QPlainTextEdit, "note")
    qtbot.waitUntil(
        lambda: dialog.message.geometry().top() > note.geometry().bottom(), timeout=WAIT_MS
    )


@pytest.mark.parametrize("kind", [ReportDialog, lambda results: ComparisonDialog(results, results)])
def test_no_page_overwrites_what_a_person_was_not_asked_about(
    qtbot, shown, log, tmp_path, monkeypatch, kind
):
    dialog = shown(kind(read_results(log)))
    precious = tmp_path / "hall.pdf"
    precious.write_text("precious")

    def choose(name):
        chosen = str(tmp_path / name), "PDF, one page in A4 (*.pdf)"
        monkeypatch.setattr(QtWidgets.QFileDialog, "getSaveFileName", lambda *_: chosen)
        dialog.findChild(QtWidgets.QPushButton, "save").click()

    said = lambda: " ".join(one.text() for one in dialog.findChildren(QtWidgets.QLabel))  # noqa: E731
    choose("hall")
    assert "hall.pdf exists" in said()
    choose("room")
    qtbot.waitUntil(lambda: "room.pdf" in said(), timeout=WAIT_MS)
    assert (tmp_path / "room.pdf").read_bytes().startswith(b"%PDF")
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("hall", "PDF", "hall.pdf"),
        ("hall", "HTML", "hall.html"),
        ("hall", "", "hall.pdf"),
        ("hall.pdf", "HTML", "hall.html"),
        ("hall.html", "PDF", "hall.html"),
        ("hall.PDF", "PDF", "hall.PDF"),
        ("hall.Html", "HTML", "hall.Html"),
        ("hall 1.5", "HTML", "hall 1.5.html"),
    ],
)
def test_a_page_is_what_was_chosen(tmp_path, monkeypatch, name, kind, wanted):
    def choose(over, title, usual, filters):
        assert usual == "night.pdf"
        told = next((one for one in filters.split(";;") if kind and one.startswith(kind)), "")
        return str(tmp_path / name), told

    monkeypatch.setattr(QtWidgets.QFileDialog, "getSaveFileName", choose)
    assert asked_page(None, "night") == tmp_path / wanted


def test_uncalibrated_is_said_where_a_report_is_asked_for(shown, tmp_path):
    bare = measure_into(tmp_path / "bare", calibration=NAMELESS)
    dialog = shown(ReportDialog(read_results(bare)))
    assert "not calibrated" in dialog.message.text()
    assert shown(ResultsDialog(read_results(bare))).badge.text == "uncalibrated"


def test_a_log_that_was_edited_is_told_where_a_report_is_asked_for(qtbot, shown, log, tmp_path):
    assert "Log" not in shown(ReportDialog(read_results(log))).message.text()
    copy = shutil.copytree(log, tmp_path / "copy")
    told = (copy / "session.json").read_text()
    (copy / "session.json").write_text(told.replace("100.0", "97.0", 1))
    results = read_results(copy)
    dialog, window = shown(ReportDialog(results)), shown(ResultsDialog(results))
    edited = "Log edited: session.json was edited"
    assert dialog.message.text().startswith(edited)
    assert dialog.message.text().endswith("The report says so.")
    assert edited.replace(" ", ": ", 1) in window.findChild(QtWidgets.QLabel, "facts").text()
    pdf = pytest.importorskip(f"{QT_LIB}.QtPdf")
    with qtbot.waitSignal(dialog.written, timeout=WAIT_MS):
        dialog.write(tmp_path / "a.pdf")
    document = pdf.QPdfDocument(dialog)
    document.load(str(tmp_path / "a.pdf"))
    assert "session.json was edited" in document.getAllText(0).text()


def test_no_two_controls_of_a_window_share_a_letter(shown, log):
    results = read_results(log)
    for window in (
        ResultsDialog(results),
        ComparisonDialog(results, results),
        ReportDialog(results),
    ):
        shown(window)
        texts = [one.text() for one in window.findChildren(QtWidgets.QAbstractButton)]
        texts += [label.text() for label in window.findChildren(QtWidgets.QLabel) if label.buddy()]
        for bar in window.findChildren(QtWidgets.QTabBar):
            texts += [bar.tabText(place) for place in range(bar.count())]
        letters = [text.partition("&")[2][:1].lower() for text in texts if "&" in text]
        assert len(set(letters)) == len(letters), texts


def test_two_are_compared_and_a_common_place_makes_it_sure(qtbot, shown, log, tmp_path):
    softer = read_results(measure_into(tmp_path / "softer", gain=0.0095))
    window = shown(ComparisonDialog(read_results(log), softer))
    (row,) = [row for row in texts(window.table) if row[0] == "LAeq"]
    assert row[3] == f"{20 * math.log10(0.95):+.2f}"
    assert row[5:] == ["0.57", "no significant difference"]
    window.place.click()
    (row,) = [row for row in texts(window.table) if row[0] == "LAeq"]
    assert row[5:] == ["0.00", "A is louder here, repeatability unknown"]
    window.choice.setCurrentIndex(window.choice.findData("laf_db"))
    window.choice.activated.emit(window.choice.currentIndex())
    assert len(window._difference.y) > 10
    window.both.zoom(0.5, 1.0)
    assert window.apart.span_s == window.both.span_s
    window.write(tmp_path / "page.pdf")
    qtbot.waitUntil(lambda: window.why.text().startswith("Written"), timeout=WAIT_MS)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "sound.wav"
    soundfile.write(path, NOISE, FS, subtype="FLOAT")
    return path


@pytest.fixture
def left_behind(tmp_path, monkeypatch):
    """Lists what is in a folder of temporary files that nobody else has."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return lambda: [path.name for path in folder.iterdir()]


def test_a_file_is_analyzed_with_progress_and_nothing_is_left(qtbot, shown, sound, left_behind):
    dialog = shown(OpenSoundDialog(sound, ["spl"]))
    with qtbot.waitSignal(dialog.analyzed, timeout=WAIT_MS) as found:
        dialog.begin()
    results = found.args[0]
    assert results.name == "sound.wav"
    assert len(results.rows) == 21
    assert not dialog.isVisible()
    assert left_behind() == []
    file = sound.with_suffix(".jsonl")
    options = ["--model", "spl", "--step-ms", "100", "--format", "jsonl", "--out", str(file)]
    assert run_command(["analyze", str(sound), *options]) == 0
    analyzed = read_results(file)
    assert results.header == analyzed.header
    assert {**results.summary, "date": None} == {**analyzed.summary, "date": None}
    assert results.rows.columns == analyzed.rows.columns
    for name in results.rows.columns:
        np.testing.assert_array_equal(results.rows[name], analyzed.rows[name])


def test_an_analysis_that_is_cancelled_leaves_no_process_and_no_file(
    qtbot, shown, tmp_path, left_behind
):
    path = tmp_path / "long.wav"
    soundfile.write(path, np.tile(NOISE, (120, 1)), FS, subtype="FLOAT")
    dialog = shown(OpenSoundDialog(path))
    dialog.begin()
    with qtbot.waitSignal(dialog.analysis.came, timeout=WAIT_MS):
        pass
    worker = dialog.analysis.worker
    assert worker.running
    dialog.reject()
    assert not worker.running
    assert not dialog.analysis.running
    assert left_behind() == []


def test_a_file_that_is_no_sound_is_said_and_may_be_tried_again(qtbot, shown, tmp_path):
    path = tmp_path / "text.wav"
    path.write_text("nothing to hear")
    dialog = shown(OpenSoundDialog(path, ["spl"]))
    with qtbot.waitSignal(dialog.analysis.refused, timeout=WAIT_MS):
        dialog.begin()
    assert "text.wav" in dialog.message.text()
    assert dialog.analyze.isEnabled()
    played = []
    dialog.played.connect(played.append)
    dialog.play.click()
    assert played == [path]


def drop(widget, *paths):
    """What a desktop sends when files are dropped; whether they were taken."""
    data = QtCore.QMimeData()
    data.setUrls([QtCore.QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left = QtCore.Qt.DropAction.CopyAction, QtCore.Qt.MouseButton.LeftButton
    none = QtCore.Qt.KeyboardModifier.NoModifier
    place = QtCore.QPointF(5, 5)
    enter = QtGui.QDragEnterEvent(place.toPoint(), copy, data, left, none)
    QtWidgets.QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False
    event = QtGui.QDropEvent(place, copy, data, left, none)
    QtWidgets.QApplication.sendEvent(widget, event)
    return event.isAccepted()


def test_one_file_or_session_may_be_dropped(shown, log, sound, tmp_path):
    widget = shown(QtWidgets.QWidget())
    drops, found = FileDropFilter(widget), []
    drops.dropped.connect(lambda path, kind: found.append((path, kind)))
    assert drop(widget, sound)
    assert drop(widget, log)
    assert not drop(widget, sound, log)
    assert not drop(widget, tmp_path / "gone.wav")
    assert not drop(widget, tmp_path)
    assert found == [(sound, SOUND), (log, KEPT)]


def test_recent_sessions_are_offered_and_those_that_are_gone_are_not(qtbot, log, tmp_path):
    settings = Settings(tmp_path / "monitor.json")
    menu = RecentMenu(settings)
    qtbot.addWidget(menu)
    assert [action.isEnabled() for action in menu.actions()] == [False]
    settings.add_recent(tmp_path / "gone")
    settings.add_recent(log)
    menu.fill()
    assert [action.isEnabled() for action in menu.actions()] == [True, False]
    chosen = []
    menu.chosen.connect(chosen.append)
    menu.actions()[0].trigger()
    assert chosen == [log]


@pytest.fixture
def desk(qtbot, tmp_path):
    """A desk over a plain window; what it says and has played is listed."""
    window = QtWidgets.QMainWindow()
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    made = SimpleNamespace(said=[], played=[], now=None, log=None, window=window)
    made.settings = Settings(tmp_path / "monitor.json")
    made.desk = FileActions(
        window,
        made.settings,
        front=lambda: window,
        play=made.played.append,
        now=lambda: made.now,
        logged=lambda: made.log,
        models=lambda: ["spl"],
        tell=made.said.append,
    )
    return made


def child(window, kind, qtbot):
    qtbot.waitUntil(lambda: window.findChild(kind) is not None, timeout=WAIT_MS)
    return window.findChild(kind)


def test_the_desk_opens_what_is_dropped_and_remembers_it(qtbot, desk, log, sound):
    assert drop(desk.window, log)
    shown = child(desk.window, ResultsDialog, qtbot)
    assert shown.path == log
    assert desk.settings.get("recent", []) == [str(log)]
    shown.close()
    assert drop(desk.window, sound)
    child(desk.window, OpenSoundDialog, qtbot).play.click()
    assert desk.played == [sound]
    desk.desk.open_path(sound.parent / "gone")
    assert "neither a sound nor a session" in desk.said[-1]


def test_the_desk_saves_what_is_in_no_log(qtbot, desk, log, tmp_path):
    desk.desk.save_session()
    assert "nothing was measured" in desk.said[-1]
    desk.log = log
    desk.desk.save_session()
    assert desk.said[-1].endswith(f"in the log {log}")
    results = read_results(log)
    desk.desk.save_to(tmp_path / "kept", results)
    qtbot.waitUntil(lambda: desk.said[-1] == f"saved: {tmp_path / 'kept'}", timeout=WAIT_MS)
    assert read_results(tmp_path / "kept").summary == results.summary
    desk.desk.save_to(tmp_path / "kept", results)
    qtbot.waitUntil(lambda: "is a session already" in desk.said[-1], timeout=WAIT_MS)


def test_the_desk_reports_and_remembers_what_was_said(qtbot, desk, log, tmp_path):
    desk.desk.report()
    assert "nothing was measured" in desk.said[-1]
    desk.now = read_results(log)
    desk.desk.report()
    dialog = child(desk.window, ReportDialog, qtbot)
    dialog.findChild(QtWidgets.QLineEdit, "engineer").setText("E. Noise")
    with qtbot.waitSignal(dialog.written, timeout=WAIT_MS):
        dialog.write(tmp_path / "a.html")
    assert desk.settings.get("report", {})["engineer"] == "E. Noise"


def test_the_desk_compares_with_a_stored_session(qtbot, desk, log, monkeypatch, tmp_path):
    chosen = iter(["", str(tmp_path), str(log)])
    monkeypatch.setattr(QtWidgets.QFileDialog, "getExistingDirectory", lambda *_: next(chosen))
    desk.now = read_results(log)
    desk.desk.compare()
    assert desk.said == []
    desk.desk.compare()
    qtbot.waitUntil(lambda: "is not a session" in " ".join(desk.said), timeout=WAIT_MS)
    desk.desk.compare()
    shown = child(desk.window, ComparisonDialog, qtbot)
    assert (shown.comparison.a.name, shown.comparison.b) == (log.name, desk.now)


def test_numbers_of_a_comparison_have_the_same_decimals():
    one = Difference("zwicker_n_phon", "zwicker N", "loudness", "phon", 81.004, 62.0149, 0.1)
    symbol, a, b, difference, *_ = cells_of(one)
    assert (symbol, a, b, difference) == ("N", "81.00", "62.01", "-18.99")
    assert cells_of(replace(one, name="gm2002_ltl_phon"))[0] == "gm2002 LTL"


def test_a_stored_history_has_no_live_button(qtbot, shown, log):
    window = shown(ResultsDialog(read_results(log)))
    assert window.history.isVisible()
    assert not window.history.live.isVisible()
