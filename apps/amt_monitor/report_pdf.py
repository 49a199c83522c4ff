"""The report as PDF, laid out by Qt, with vector graphics."""

import re
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtSvg

MARGINS_MM = (13.0, 8.0, 13.0, 8.0)
DOTS = 1200
STYLE = """
h1 { font-size: 18pt; margin: 0; }
p { margin: 0; }
.head { font-size: 10pt; font-weight: bold; margin-top: 7px; margin-bottom: 2px; }
body, td, th { font-size: 8pt; }
td, th { padding-right: 7px; padding-bottom: 1px; text-align: left; font-weight: normal; }
th, .second, .foot { color: #5b616e; }
.lines td, .lines th { border-bottom: 1px solid #d9dce2; }
.tight td, .tight td span { font-size: 7pt; }
.number { text-align: right; }
.numbers td { padding-top: 6px; padding-bottom: 3px; }
.large { font-size: 22pt; font-weight: bold; }
.doubt, .badge { color: #9a6700; font-weight: bold; }
.hatched { background-color: #f7ecd3; }
.exceeded { color: #cf222e; font-weight: bold; }
.kept { color: #1a7f37; font-weight: bold; }
.foot { font-size: 6pt; margin-top: 5px; }
"""
"""The subset of the page's style that Qt's documents support."""

_PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)
_INSTEAD = {
    "<table": '<table width="100%" cellspacing="0"',
    "<h2>": '<p class="head">',
    "</h2>": "</p>",
}
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def pdf_of(page: str) -> bytes:
    """The page of `amt_stream.sessions.report.report_page` as one A4 page of PDF.

    A text that is too long is made smaller. Without an application one is made; with
    QT_QPA_PLATFORM=offscreen it needs no screen.
    """
    own = None if QtGui.QGuiApplication.instance() else QtGui.QGuiApplication([])
    held = QtCore.QBuffer()
    held.open(QtCore.QIODevice.OpenModeFlag.WriteOnly)
    writer = _writer(held)
    area = QtCore.QRectF(writer.pageLayout().paintRectPixels(DOTS))
    area.moveTo(0, 0)
    page = _STYLE.sub("", page)
    for ours, theirs in _INSTEAD.items():
        page = page.replace(ours, theirs)
    pictures = [QtSvg.QSvgRenderer(one.encode()) for one in _PICTURE.findall(page)]
    places = iter(range(len(pictures)))
    text = _PICTURE.sub(lambda _: f"<p>{_name(next(places))}</p>", page)
    document, share = _fitting(text, pictures, writer, area)
    writer.setTitle(document.metaInformation(QtGui.QTextDocument.MetaInformation.DocumentTitle))
    painter = QtGui.QPainter(writer)
    painter.scale(share, share)
    document.drawContents(painter)
    for number, picture in enumerate(pictures):
        place = _place(document, number)
        place.setHeight(_height(picture, place.width()))
        picture.render(painter, place)
    painter.end()
    made = bytes(held.data().data())
    del own
    return made


def _writer(held: Any) -> Any:
    writer = QtGui.QPdfWriter(held)
    writer.setResolution(DOTS)
    writer.setCreator("amt_stream")
    writer.setPageSize(QtGui.QPageSize(QtGui.QPageSize.PageSizeId.A4))
    margins = QtCore.QMarginsF(*MARGINS_MM)
    writer.setPageMargins(margins, QtGui.QPageLayout.Unit.Millimeter)
    return writer


def _fitting(text: str, pictures: list[Any], writer: Any, area: Any) -> tuple[Any, float]:
    """A document, and the scale at which it fits on the page."""
    share = 1.0
    while True:
        document = _laid_out(text, pictures, writer, area.width() / share)
        over = document.size().height() * share / area.height()
        if over <= 1:
            return document, share
        share *= min(0.98, over**-0.5)


def _laid_out(text: str, pictures: list[Any], device: Any, wide: float) -> Any:
    document = QtGui.QTextDocument()
    document.documentLayout().setPaintDevice(device)
    document.setDocumentMargin(0)
    document.setDefaultFont(QtGui.QFont("Helvetica", 8))
    document.setDefaultStyleSheet(STYLE)
    document.setHtml(text)
    for number, picture in enumerate(pictures):
        _make_room(document, number, picture, wide)
    document.setTextWidth(wide)
    return document


def _name(number: int) -> str:
    return f"picture{number}"


def _make_room(document: Any, number: int, picture: Any, wide: float) -> None:
    """An empty line as high as the picture, to reserve its place."""
    cursor = document.find(f"{_name(number)}")
    cursor.removeSelectedText()
    form = cursor.blockFormat()
    fixed = QtGui.QTextBlockFormat.LineHeightTypes.FixedHeight
    # Lengths of a document are in screen pixels and scaled to finer devices.
    dots = QtGui.QGuiApplication.primaryScreen().logicalDotsPerInchY()
    form.setLineHeight(_height(picture, wide) * dots / DOTS, fixed.value)
    form.setProperty(NUMBER, number + 1)
    cursor.setBlockFormat(form)


def _height(picture: Any, wide: float) -> float:
    size = picture.defaultSize()
    return wide * size.height() / size.width()


NUMBER = QtGui.QTextFormat.Property.UserProperty.value + 1
"""The property of a line that names its picture."""


def _place(document: Any, number: int) -> Any:
    block = document.begin()
    while block.blockFormat().intProperty(NUMBER) != number + 1:
        block = block.next()
    return document.documentLayout().blockBoundingRect(block)
