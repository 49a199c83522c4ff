"""Asks for the fields of a report and writes it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.save_file_dialog import ask_save_path
from amt_monitor.base.theme import tint
from amt_monitor.base.widgets import DialogButtons, add_all, plain_label
from amt_monitor.dialogs.report_pdf import pdf_of
from amt_stream.core.files import whole_text_file
from amt_stream.core.formats import PAPERS
from amt_stream.core.safe_text import plain, sentence
from amt_stream.sessions.files import drafted
from amt_stream.sessions.report import About, LogoError, report_page
from amt_stream.sessions.report.content import integrity
from amt_stream.sessions.results import Results

FIELDS = {
    "title": ("&Title", "Sound measurement"),
    "place": ("&Place", "place of the measurement"),
    "client": ("&Client", "client"),
    "engineer": ("&Engineer", "engineer"),
    "company": ("Co&mpany", "company that measured"),
}
PAPER_NAMES = {"a4": "A4", "letter": "Letter"}
PAGES = {"PDF, one page": ".pdf", "HTML, one file": ".html"}


class ReportDialog(QtWidgets.QDialog):
    """Asks for place, client and so on, and writes the report [main-thread].

    known: the fields of the last report; `fields` has the present ones

    `written` has the path of the file.
    """

    written = QtCore.Signal(object)

    def __init__(
        self,
        results: Results,
        known: Mapping[str, str] | None = None,
        parent: QtWidgets.QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.results = results
        self.setObjectName("report_dialog")
        self.setWindowTitle(f"Report of {plain(results.name)}")
        self.setMinimumWidth(460)
        self._background = BackgroundTask(self, self._done, self._refused)
        known = known or {}
        form = QtWidgets.QFormLayout()
        self._edits: dict[str, QtWidgets.QLineEdit] = {}
        for name, (label, about) in FIELDS.items():
            edit = QtWidgets.QLineEdit(known.get(name, ""), objectName=name, placeholderText=about)
            self._edits[name] = edit
            form.addRow(label, edit)
        self._logo = QtWidgets.QLineEdit(known.get("logo", ""), objectName="logo")
        self._logo.setPlaceholderText("its logo: a PNG, JPEG or SVG file")
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self._logo, 1)
        choose = QtWidgets.QPushButton("Choose...", autoDefault=False, clicked=self._choose_logo)
        row.addWidget(choose)
        form.addRow("&Logo", row)
        form.labelForField(row).setBuddy(self._logo)
        self._paper = QtWidgets.QComboBox(objectName="paper")
        for paper in PAPERS:
            self._paper.addItem(PAPER_NAMES[paper], paper)
        self._paper.setCurrentIndex(max(0, self._paper.findData(known.get("paper"))))
        form.addRow("Pape&r", self._paper)
        self._note = QtWidgets.QPlainTextEdit(known.get("note", ""), objectName="note")
        self._note.setPlaceholderText("remarks: weather, position, instruments")
        self._note.setTabChangesFocus(True)
        self._note.setFixedHeight(5 * self.fontMetrics().lineSpacing())
        form.addRow("&Note", self._note)
        self.message = plain_label("message", wrap=True)
        doubts = [] if results.calibrated else ["This measurement is not calibrated."]
        if results.proof is not None and not results.proof.whole:
            doubts += [f"{name} {words}." for name, words in integrity(results)]
        if doubts:
            self.message.setText(plain(" ".join([*doubts, "The report says so."])))
            tint(self.message, "amber")
        column = QtWidgets.QVBoxLayout(self)
        column.addLayout(form)
        add_all(column, self.message, self._buttons())

    def _buttons(self) -> DialogButtons:
        box = DialogButtons(self)
        self.save = box.add("save", "&Save...", self._choose)
        self.save.setDefault(True)
        self.open_report = box.add("open_report", "&Open", self._open)
        self.open_report.setEnabled(False)
        return box

    @property
    def fields(self) -> dict[str, str]:
        found = {name: edit.text().strip() for name, edit in self._edits.items()}
        found |= {"logo": self._logo.text().strip(), "paper": self._paper.currentData()}
        return found | {"note": self._note.toPlainText().strip()}

    def _choose_logo(self) -> None:
        name, _ = QtWidgets.QFileDialog.getOpenFileName(
            self, "Choose a logo", self._logo.text(), "Logo (*.png *.jpg *.jpeg *.svg)"
        )
        if name:
            self._logo.setText(name)

    def _choose(self) -> None:
        save_page(self, f"{self.results.name}-report", self.write, self._refused)

    def write(self, path: Path) -> None:
        """Write the report to a file that ends in .html or .pdf, and replace an existing one."""
        fields = self.fields
        paper = fields.pop("paper")
        try:
            page = report_page(self.results, About(**fields), paper=paper)
            written = writing(path, page)
        except LogoError as refusal:
            self._refused(str(refusal))
            return
        self.save.setEnabled(False)
        self._background.run(written)

    def _done(self, path: Path) -> None:
        self.save.setEnabled(True)
        self.open_report.setEnabled(True)
        self._path = path
        self._tell(f"Written: {plain(path)}")
        self.written.emit(path)

    def _refused(self, why: str) -> None:
        self.save.setEnabled(True)
        self._tell(f"Not written: {sentence(why)}")

    def _tell(self, words: str) -> None:
        tint(self.message, None)
        self.message.setText(words)
        make_room(self)

    def _open(self) -> None:
        QtGui.QDesktopServices.openUrl(QtCore.QUrl.fromLocalFile(str(self._path)))


def make_room(dialog: QtWidgets.QDialog) -> None:
    """Grow for text that came later, which Qt would paint over other widgets."""
    layout = dialog.layout()
    if layout is not None:
        least = layout.totalHeightForWidth(dialog.width())
        dialog.resize(dialog.width(), max(dialog.height(), least))


def asked_page(over: QtWidgets.QWidget, stem: str) -> Path | None:
    """Ask for the file of a page; as `ask_save_path`."""
    return ask_save_path(over, "Save the page", stem, PAGES)


def save_page(
    over: QtWidgets.QWidget,
    stem: str,
    write: Callable[[Path], object],
    refused: Callable[[str], object],
) -> None:
    """Ask for a file and write the page in the background; show why if that fails."""
    try:
        path = asked_page(over, stem)
    except OSError as error:
        refused(str(error))
    else:
        if path is not None:
            write(path)


def writing(path: Path, page: str) -> Callable[[], Path]:
    """The part that may run in a thread: Qt lays out text only in the main one."""
    return partial(_written, path, pdf_of(page) if path.suffix.lower() == ".pdf" else page)


def _written(path: Path, made: str | bytes) -> Path:
    if isinstance(made, str):
        with whole_text_file(path) as stream:
            stream.write(made)
    else:
        with drafted(path.with_name(f".{path.name}.draft"), made) as draft:
            draft.replace(path)
    return path
