"""The report as PDF/A, laid out by Qt, with vector graphics."""

import base64
import re
from html import unescape
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtSvg

from amt_monitor.base.qt_messages import hear_qt
from amt_stream.sessions.report import LogoError
from amt_stream.sessions.report.page import NEXT

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
.company { font-size: 10pt; font-weight: bold; }
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
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_LOGO = re.compile(r'<img [^>]*src="data:image/(?P<kind>png|svg)[^,]*,(?P<data>[^"]*)">')
_OPACITY = re.compile(r'fill="(?P<color>#\w+)" fill-opacity="(?P<opacity>[^"]+)"')
LOGO_SIZE = (227, 42)
"""Largest width and height of a logo in pixels of 96 dpi: 60 mm and 11 mm."""

LOGO_DOTS = 400
PAGE_SIZES = QtGui.QPageSize.PageSizeId
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def pdf_of(page: str) -> bytes:
    """A page of `amt_stream.sessions.report`, or of `sessions.compare`, as PDF/A-1b.

    The paper is that of the page. Each of its sheets is one page of PDF: a text that is too long is
    made smaller. Without an application one is made; with QT_QPA_PLATFORM=offscreen it needs no
    screen.

    Raises LogoError for a logo that Qt cannot draw.
    """
    hear_qt()
    own = None if QtGui.QGuiApplication.instance() else QtGui.QGuiApplication([])
    held = QtCore.QBuffer()
    held.open(QtCore.QIODevice.OpenModeFlag.WriteOnly)
    letter = "size: letter" in page
    writer = _writer(held, PAGE_SIZES.Letter if letter else PAGE_SIZES.A4)
    writer.setTitle(unescape(_TITLE.findall(page)[0]))
    painter = QtGui.QPainter(writer)
    for number, sheet in enumerate(_STYLE.sub("", page).split(NEXT)):
        if number:
            writer.newPage()
        _draw(sheet, writer, painter)
    painter.end()
    made = bytes(held.data().data())
    del own
    return made


def _draw(sheet: str, writer: Any, painter: Any) -> None:
    area = QtCore.QRectF(writer.pageLayout().paintRectPixels(DOTS))
    area.moveTo(0, 0)
    for ours, theirs in _INSTEAD.items():
        sheet = sheet.replace(ours, theirs)
    sheet = _OPACITY.sub(_opaque, sheet)
    sheet = _LOGO.sub(_logo, sheet)
    pictures = [QtSvg.QSvgRenderer(one.encode()) for one in _PICTURE.findall(sheet)]
    places = iter(range(len(pictures)))
    text = _PICTURE.sub(lambda _: f"<p>{_name(next(places))}</p>", sheet)
    document, share = _fitting(text, pictures, writer, area)
    painter.save()
    painter.scale(share, share)
    document.drawContents(painter)
    for number, picture in enumerate(pictures):
        place = _place(document, number)
        place.setHeight(_height(picture, place.width()))
        picture.render(painter, place)
    painter.restore()


def _opaque(found: re.Match[str]) -> str:
    """A fill mixed with the white of the paper; PDF/A-1b has no transparency."""
    color, share = QtGui.QColor(found["color"]), float(found["opacity"])
    parts = [round(255 + share * (part - 255)) for part in color.getRgb()[:3]]
    return f'fill="{QtGui.QColor(*parts).name()}"'


def _logo(found: re.Match[str]) -> str:
    """The logo as PNG on white, in its size on the page. Raises LogoError."""
    data = base64.b64decode(found["data"])
    if found["kind"] == "png":
        drawing = QtGui.QImage.fromData(data)
        size = drawing.size()
    else:
        renderer = QtSvg.QSvgRenderer(data)
        size = renderer.defaultSize() if renderer.isValid() else QtCore.QSize()
        size.scale(2000, LOGO_DOTS, QtCore.Qt.AspectRatioMode.KeepAspectRatio)
    if size.isEmpty():
        raise LogoError("the logo cannot be drawn in a PDF: save it as a plain PNG file")
    image = QtGui.QImage(size, QtGui.QImage.Format.Format_RGB32)
    image.fill(QtCore.Qt.GlobalColor.white)
    painter = QtGui.QPainter(image)
    if found["kind"] == "png":
        painter.drawImage(0, 0, drawing)
    else:
        renderer.render(painter)
    painter.end()
    held = QtCore.QBuffer()
    image.save(held, "PNG")
    shown = size.scaled(*LOGO_SIZE, QtCore.Qt.AspectRatioMode.KeepAspectRatio)
    content = base64.b64encode(held.data().data()).decode()
    return (
        f'<img width="{shown.width()}" height="{shown.height()}" '
        f'src="data:image/png;base64,{content}">'
    )


def _writer(held: Any, size: Any) -> Any:
    writer = QtGui.QPdfWriter(held)
    writer.setPdfVersion(QtGui.QPagedPaintDevice.PdfVersion.PdfVersion_A1b)
    writer.setResolution(DOTS)
    writer.setCreator("amt_stream")
    writer.setPageSize(QtGui.QPageSize(size))
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
