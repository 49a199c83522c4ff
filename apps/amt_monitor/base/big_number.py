"""A number that is read from afar, with its caption above and its unit beside it."""

from functools import cache
from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Role, theme, tint
from amt_stream.meters.rows import NO_READING
from amt_stream.meters.rows.captions import UNCALIBRATED, Caption
from amt_stream.meters.rows.column import UNCERTAIN
from amt_stream.meters.rows.words import SIGNS, widest_text
from amt_stream.views.settling_words import ABOUT, SETTLING, UNCOUNTED

WIDEST_SIGN = SIGNS[UNCERTAIN]
CLIPPED = {
    sign: f"The sound was clipped: the true value is {word} this one."
    for sign, word in zip(SIGNS.values(), ("at least", "at most", "not exactly"), strict=True)
}
"""What the sign before a number says, for its tooltip."""
SMALLEST, LARGEST = 14, 400
CAPTION, SMALLEST_CAPTION = 0.2, 13
UNIT, SMALLEST_UNIT = 0.28, 12
"""Sizes of captions and units, relative to the digits and in pixels."""
HEAVY = 60
"""Pixels of digits from which a dark window needs a lighter weight."""
REFERENCE = 200
"""Pixels of the font in which widths are measured."""
LINE = 1.2
"""Height of a line of text, and of digits with their margin, relative to their size."""
DIGITS = 0.95
EIGHTS = str.maketrans("0123456789", "8" * 10)
GAP = 0.12
"""Between digits and unit, relative to the digits."""


def caption_size(size: int) -> int:
    return max(SMALLEST_CAPTION, round(CAPTION * size))


def unit_size(size: int) -> int:
    return max(SMALLEST_UNIT, round(UNIT * size))


def note_size(size: int) -> int:
    return max(SMALLEST_UNIT, round(CAPTION * size))


GAP_NOTE = 6


class Extent(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class BigNumber(QtWidgets.QWidget):
    """One reading; its digits are as large as fits, or as `set_size` says.

    name: of the label that has the digits
    captioned: False for a number that shares the caption of the one beside it
    spare: the widest note, as "00:00:00", for which there must be room
    """

    def __init__(
        self, name: str, caption: Caption, captioned: bool = True, spare: str = ""
    ) -> None:
        super().__init__()
        self.caption, self.captioned, self._spare = caption, captioned, spare
        self._uncalibrated, self._settling = False, ""
        self._has_sign = False  # it has had one, so that there is room for it
        self.widest = widest_text(caption.unit)
        self.words, self.symbol, self.digits, self.unit, self.note, self.uncalibrated = (
            label_in(text, self)
            for text in (caption.words, caption.symbol, NO_READING, caption.unit, "", UNCALIBRATED)
        )
        self.uncalibrated.setToolTip(UNCALIBRATED)
        self.uncalibrated.hide()
        self.words.setVisible(captioned)
        self.symbol.setVisible(captioned)
        self.digits.setObjectName(name)
        self.note.setObjectName(f"{name}_note")
        align = QtCore.Qt.AlignmentFlag
        self.digits.setAlignment(align.AlignLeft | align.AlignVCenter)
        theme.changed.connect(self._arrange)
        for label in (self.symbol, self.unit, self.note):
            tint(label, "second")
        tint(self.uncalibrated, "amber")
        for widget in (self, self.digits):
            widget.setToolTip(caption.sentence)
            widget.setAccessibleDescription(caption.sentence)
        self._size: int | None = None
        self._last = ""
        self._speak()

    @property
    def baseline(self) -> int:
        size = self._size or self.size_in(self.width(), self.height())
        return self._top(size) + _foot(round(DIGITS * size), size, bold=True)

    @property
    def text(self) -> str:
        return self.digits.text()

    def show_text(self, text: str) -> bool:
        """Write the number; returns whether it needs more room now."""
        if text == self.text:
            return False
        moves = _shape(text) != _shape(self.text)
        signed = text.startswith(tuple(SIGNS.values()))
        wider = signed and not self._has_sign
        self._has_sign |= signed
        self.digits.setText(text)
        if moves:
            self._arrange()
            self._explain()
        self._speak()
        return wider

    def show_note(self, text: str, about: str = "") -> None:
        """Write a small note beside the number: its uncertainty, or the time it covers."""
        if text != self.note.text():
            self.note.setText(text)
            self.note.setToolTip(about)
            self._speak()

    def lose(self, last: str) -> None:
        """Write dashes while the microphone is lost, and the last reading beside the caption."""
        if last != self._last:
            self._last = last
            self._arrange()
        if last:
            self.show_text(NO_READING)

    def _captions(self) -> list[tuple[str, str]]:
        """What may stand above the number, from the longest on."""
        words, symbol, said = self.caption.words, self.caption.symbol, self._settling
        if self._last:
            return [(symbol or words, f"last {self._last}")]
        forms = [(words, symbol)]
        if said:
            forms.insert(0, (words, f"{symbol}, {SETTLING}" if symbol else SETTLING))
        if said in UNCOUNTED:
            forms[:0] = [(words, f"{symbol}, {said}" if symbol else said), (symbol or words, said)]
        return forms

    def doubt(self, role: Role | None, uncalibrated: bool, settling: str = "") -> bool:
        """Color the number by its role; hatch it and say so where it is not calibrated.

        settling: why it still remembers what was before, in words, or "": it says so beside its
            symbol, where there is room

        Returns whether it needs another room now.
        """
        tint(self.digits, role, hatched=uncalibrated)
        if settling != self._settling:
            self._settling = settling
            self._explain()
            self._arrange()
            self._speak()
        if uncalibrated == self._uncalibrated:
            return False
        self._uncalibrated = uncalibrated
        self.uncalibrated.setVisible(uncalibrated)
        self._arrange()
        self._speak()
        return True

    def extent(self, size: int) -> Extent:
        """The room that the number needs at this size."""
        width = self.body_width(size)
        if self.captioned:
            said = self.caption.words, self.caption.symbol
            width = max(width, _caption_width(caption_size(size), *said))
        high, small = round(DIGITS * size), unit_size(size)
        below = _foot(high, size, bold=True) - _ascent(small) + round(LINE * small)
        return Extent(width, self._top(size) + max(high, below))

    def body_width(self, size: int) -> int:
        unit = text_width(self.caption.unit, unit_size(size))
        notes = [text_width(text, note_size(size)) for _, text in self._notes]
        stacked = _is_stacked(size, len(notes))
        beside = max(unit, *notes, 0) if stacked else unit + sum(one + GAP_NOTE for one in notes)
        widest = f"{WIDEST_SIGN}{self.widest}" if self._has_sign else self.widest
        return text_width(widest, size, bold=True) + round(GAP * size) + beside

    def size_in(self, width: int, height: int, largest: int = LARGEST) -> int:
        """The largest size at which it fits into this room; or the smallest size."""
        low, high = SMALLEST, largest
        while low < high:
            middle = (low + high + 1) // 2
            needed = self.extent(middle)
            if needed.width <= width and needed.height <= height:
                low = middle
            else:
                high = middle - 1
        return low

    def set_size(self, size: int | None) -> None:
        """Fix the size of the digits; None for the largest that fits."""
        if size != self._size:
            self._size = size
            self._arrange()

    def sizeHint(self) -> QtCore.QSize:
        return QtCore.QSize(*self.extent(self._size or 3 * SMALLEST))

    def minimumSizeHint(self) -> QtCore.QSize:
        return QtCore.QSize(*self.extent(self._size or SMALLEST))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._arrange()

    def _arrange(self) -> None:
        size = self._size or self.size_in(self.width(), self.height())
        small = caption_size(size)
        line, top = round(LINE * small), self._top(size)
        for label in (self.words, self.symbol):
            resize_text(label, small)
        resize_text(self.unit, unit_size(size))
        resize_text(self.digits, size, bold=True)
        captions = self._captions()
        fitting = (one for one in captions if _caption_width(small, *one) <= self.width())
        said, symbol = next(fitting, captions[-1])
        self.words.setText(said)
        self.symbol.setText(symbol)
        words = text_width(said, small)
        self.words.setGeometry(0, 0, words, line)
        self.symbol.setGeometry(words + small // 2, 0, self.width() - words - small // 2, line)
        high = round(DIGITS * size)
        wide = text_width(_shape(self.text), size, bold=True)
        self.digits.setGeometry(0, top, wide, high)
        left = wide + round(GAP * size)
        foot = top + _foot(high, size, bold=True)
        small = unit_size(size)
        line, above = round(LINE * small), round(LINE * note_size(size))
        unit = text_width(self.caption.unit, small)
        x, y = left, foot - _ascent(small)
        self.unit.setGeometry(x, y, unit, line)
        notes = self._notes
        stacked = _is_stacked(size, len(notes))
        x += 0 if stacked else unit + GAP_NOTE
        for label, text in notes:
            resize_text(label, note_size(size))
            wide = text_width(text, note_size(size))
            if stacked:
                y -= above
                label.setGeometry(x, y, wide, above)
            else:
                label.setGeometry(x, y, wide, line)
                x += wide + GAP_NOTE

    @property
    def _notes(self) -> list[tuple[QtWidgets.QLabel, str]]:
        """The notes at the unit, the lowest first, with the text that each needs room for."""
        notes = [(self.uncalibrated, UNCALIBRATED)] if self._uncalibrated else []
        return [*notes, (self.note, self._spare)] if self._spare else notes

    def _top(self, size: int) -> int:
        return round(LINE * caption_size(size)) if self.captioned else 0

    def _explain(self) -> None:
        """Say in the tooltip of the digits what the number is, and why it is doubtful."""
        parts = [self.caption.sentence, CLIPPED.get(self.text[:2], "")]
        why = self._settling
        parts += [f"{why.capitalize()}: {ABOUT.get(why, '')}"] if why else []
        self.digits.setToolTip(" ".join(filter(None, parts)))

    def _speak(self) -> None:
        uncalibrated = UNCALIBRATED if self._uncalibrated else ""
        said = [self.caption.words, f"{self.text} {self.caption.unit}", self.note.text()]
        parts = [*said, uncalibrated, self._settling]
        self.digits.setAccessibleName(", ".join(part for part in parts if part))


def _shape(text: str) -> str:
    """The same with equal digits: all have one width."""
    return text.translate(EIGHTS)


def label_in(text: str, parent: QtWidgets.QWidget) -> QtWidgets.QLabel:
    return QtWidgets.QLabel(text, parent, textFormat=QtCore.Qt.TextFormat.PlainText)


def _weight(pixels: int, bold: bool) -> QtGui.QFont.Weight:
    if not bold:
        return QtGui.QFont.Weight.Normal
    light = theme.colors.dark and pixels > HEAVY
    return QtGui.QFont.Weight.Medium if light else QtGui.QFont.Weight.DemiBold


def _figures(font: QtGui.QFont, pixels: int, bold: bool = False) -> QtGui.QFont:
    font.setPixelSize(pixels)
    font.setWeight(_weight(pixels, bold))
    if hasattr(font, "setFeature"):
        font.setFeature(QtGui.QFont.Tag("tnum"), 1)
    return font


def resize_text(label: QtWidgets.QLabel, pixels: int, bold: bool = False) -> None:
    font = label.font()
    if (font.pixelSize(), font.weight()) != (pixels, _weight(pixels, bold)):
        label.setFont(_figures(font, pixels, bold))


@cache
def _metrics(family: str, bold: bool) -> QtGui.QFontMetricsF:
    return QtGui.QFontMetricsF(_figures(QtGui.QFont(family), REFERENCE, bold))


@cache
def _wide_at_reference(text: str, family: str, bold: bool) -> float:
    return _metrics(family, bold).horizontalAdvance(text)


def text_width(text: str, size: int, bold: bool = False) -> int:
    """Width of a text; a little more than the metrics say, as hinting widens small letters."""
    if not text:
        return 0
    family = QtWidgets.QApplication.font().family()
    return round(1.03 * _wide_at_reference(text, family, bold) * size / REFERENCE) + 2


def _caption_width(size: int, words: str, symbol: str) -> int:
    beside = text_width(symbol, size)
    return text_width(words, size) + (size // 2 + beside if beside else 0)


def _ascent(size: int) -> int:
    family = QtWidgets.QApplication.font().family()
    return round(_metrics(family, False).ascent() * size / REFERENCE)


def _is_stacked(size: int, notes: int) -> bool:
    """Whether so many notes fit above the unit; else they stand behind the unit."""
    foot = _foot(round(DIGITS * size), size, bold=True)
    return foot - _ascent(unit_size(size)) >= notes * round(LINE * note_size(size))


def _foot(height: int, size: int, bold: bool) -> int:
    """The y of the base line in a label of this height with centered text."""
    metrics = _metrics(QtWidgets.QApplication.font().family(), bold)
    line = metrics.height() * size / REFERENCE
    return round((height - line) / 2 + metrics.ascent() * size / REFERENCE)
