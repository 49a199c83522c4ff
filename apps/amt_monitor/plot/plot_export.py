"""Exports a plot: rows and pictures, with a header."""

import io
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtSvg, QtWidgets

from amt_monitor.base.save_file_dialog import ask_save_path
from amt_monitor.base.theme import LIGHT
from amt_monitor.plot.plot import Plot
from amt_stream.core.words import clock_text, counted
from amt_stream.meters.rows import Rows
from amt_stream.sessions.outputs import CsvWriter

Head = Mapping[str, Any]
"""The header of rows, as data for JSON."""

MakeRows = Callable[[], Rows]

FINE = 2.0
"""Resolution of a picture relative to the screen."""

SAVE_CSV, SAVE_PNG, SAVE_SVG = "Save rows as CSV...", "Save picture as PNG...", "Save as SVG..."
COPY_ROWS, COPY_PICTURE = "Copy rows", "Copy picture"
PICTURES = (SAVE_PNG, SAVE_SVG, COPY_PICTURE)
EXPORTS = (SAVE_CSV, *PICTURES, COPY_ROWS)
ENDINGS = {SAVE_CSV: "csv", SAVE_PNG: "png", SAVE_SVG: "svg"}


def copy(name: str, plot: Plot, about: Head, rows: MakeRows) -> str:
    """Copy rows or picture to the clipboard; returns a message."""
    clipboard = QtGui.QGuiApplication.clipboard()
    if name == COPY_PICTURE:
        clipboard.setImage(_image_of(plot, about))
        return "picture copied"
    found = rows()
    clipboard.setText(csv_of(found, about))
    return f"{counted(len(found), 'row')} copied"


def save(path: Path, plot: Plot, about: Head, rows: MakeRows) -> str:
    """Write a .csv, .png or .svg file; returns a message. Raises OSError."""
    ending = path.suffix.lower()
    if ending == ".csv":
        data = csv_of(rows(), about).encode()
    elif ending == ".svg":
        data = svg_of(plot, about)
    else:
        buffer = QtCore.QBuffer()
        _image_of(plot, about).save(buffer, "PNG")
        data = bytes(buffer.data())
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(data)
    draft.replace(path)
    return f"saved as {path}"


def asked(name: str, plot: Plot) -> Path | None:
    """Ask for a file; None if canceled.

    Raises FileExistsError if the name that was typed lacks an ending, and the complete name exists.
    """
    ending = ENDINGS[name]
    stem = plot.objectName().removesuffix("_plot")
    return ask_save_path(plot, name.rstrip("."), stem, {ending.upper(): f".{ending}"})


class PlotExporter(QtCore.QObject):
    """Runs one of EXPORTS; `message` has a message."""

    message = QtCore.Signal(str)

    def __init__(self, plot: Plot, about: Callable[[], Head], rows: MakeRows) -> None:
        super().__init__(plot)
        self._plot, self._about, self._rows = plot, about, rows
        self.message.connect(self._tell)

    def keep(self, name: str, *_: object) -> None:
        if name not in ENDINGS:
            self.message.emit(copy(name, self._plot, self._about(), self._rows))
            return
        try:
            path = asked(name, self._plot)
        except OSError as error:
            self.message.emit(f"not saved: {error}")
            return
        if path is None:
            return
        head, found = self._about(), self._rows() if name == SAVE_CSV else None
        write = partial(self._save, path, head, found)
        if found is None:
            write()
        else:
            # Hours of rows take seconds.
            threading.Thread(target=write, name="keep rows", daemon=True).start()

    def _save(self, path: Path, head: Head, found: Any) -> None:
        try:
            self.message.emit(save(path, self._plot, head, lambda: found))
        except OSError as error:
            self.message.emit(f"not saved: {error}")

    def _tell(self, sentence: str) -> None:
        QtWidgets.QToolTip.showText(QtGui.QCursor.pos(), sentence, self._plot)


def offer(
    menu: QtWidgets.QMenu,
    names: Sequence[str],
    plot: Plot,
    about: Callable[[], Head],
    rows: MakeRows,
) -> None:
    keeper = plot.findChild(PlotExporter) or PlotExporter(plot, about, rows)
    for name in names:
        menu.addAction(name, partial(keeper.keep, name))


def csv_of(rows: Rows, about: Head) -> str:
    text = io.StringIO()
    CsvWriter(text, about).write(rows)
    return text.getvalue()


def _image_of(plot: Plot, about: Head) -> QtGui.QImage:
    """The plot on white at double resolution, with a header."""
    size = _size(plot, about)
    image = QtGui.QImage(size * FINE, QtGui.QImage.Format.Format_RGB32)
    image.fill(QtGui.QColor(LIGHT.paper))
    painter = QtGui.QPainter(image)
    painter.scale(FINE, FINE)
    _paint(painter, plot, about)
    painter.end()
    image.setDotsPerMeterX(round(FINE * 96 / 0.0254))
    image.setDotsPerMeterY(round(FINE * 96 / 0.0254))
    return image


def svg_of(plot: Plot, about: Head) -> bytes:
    """The same as vector graphics."""
    buffer = QtCore.QBuffer()
    maker = QtSvg.QSvgGenerator()
    maker.setOutputDevice(buffer)
    maker.setSize(_size(plot, about))
    maker.setViewBox(QtCore.QRect(QtCore.QPoint(), _size(plot, about)))
    maker.setTitle("; ".join(lines_of(about)))
    maker.setDescription(json.dumps(dict(about), default=str))
    painter = QtGui.QPainter(maker)
    _paint(painter, plot, about)
    painter.end()
    return bytes(buffer.data())


def lines_of(about: Head) -> list[str]:
    lines = []
    if source := about.get("source"):
        models = ", ".join(model["name"] for model in about.get("models", ()))
        lines.append(f"{source['name']}, {source['fs']} Hz: {models}")
    if each := about.get("calibration"):
        lines.append("; ".join(dict.fromkeys(map(_calibration, each))))
    if seen := about.get("visible"):
        begun = f" since {about['start_utc']}" if about.get("start_utc") else ""
        lines.append(f"{clock_text(seen['from_s'])} to {clock_text(seen['to_s'])}{begun}")
    return lines


def _calibration(one: Mapping[str, Any]) -> str:
    if not one["calibrated"]:
        return "uncalibrated"
    date = f", calibrated {one['date']}" if one.get("date") else ""
    return f"full-scale sine = {one['full_scale_db_spl']:.2f} dB SPL{date}"


def _size(plot: Plot, about: Head) -> QtCore.QSize:
    head = plot.fontMetrics().height() * len(lines_of(about))
    return plot.size() + QtCore.QSize(0, head + (8 if head else 0))


def _paint(painter: QtGui.QPainter, plot: Plot, about: Head) -> None:
    painter.setFont(plot.font())
    painter.setPen(QtGui.QColor(LIGHT.ink))
    metrics, line = plot.fontMetrics(), plot.fontMetrics().height()
    for place, text in enumerate(lines_of(about)):
        mode = QtCore.Qt.TextElideMode.ElideRight
        shown = metrics.elidedText(text, mode, plot.width() - 16)
        painter.drawText(QtCore.QPointF(8, 4 + place * line + metrics.ascent()), shown)
    painter.translate(0, _size(plot, about).height() - plot.height())
    plot.render_on(painter, LIGHT)
