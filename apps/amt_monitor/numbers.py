"""The big numbers."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.pane import Pane
from amt_monitor.theme import tint
from amt_stream.rows import band_texts, phon_text


def sone_text(sone: float) -> str:
    """Three digits or so: 0.052, 1.00, 12.3, 123."""
    decimals = 3 if sone < 0.0995 else 2 if sone < 9.995 else 1 if sone < 99.95 else 0
    return f"{sone:.{decimals}f}"


class NumberPane(Pane):
    """One loudness in sone and phon, as large as there is room."""

    def __init__(self, name: str, title: str, about: str) -> None:
        super().__init__(name, title, about)
        row = QtWidgets.QHBoxLayout()
        self._numbers = []
        self._bands = []
        for unit in ("sone", "phon"):
            number, caption = QtWidgets.QLabel("-"), QtWidgets.QLabel(unit)
            band = QtWidgets.QLabel()
            number.setObjectName(f"{name}_{unit}")
            band.setObjectName(f"{name}_{unit}_band")
            band.setToolTip("as far as the uncertainty of the level goes, k = 2")
            band.hide()
            ignored = QtWidgets.QSizePolicy.Policy.Ignored
            number.setSizePolicy(ignored, ignored)
            bottom = QtCore.Qt.AlignmentFlag.AlignBottom
            number.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight | bottom)
            caption.setAlignment(bottom)
            beside = QtWidgets.QVBoxLayout()
            beside.setSpacing(0)
            beside.addStretch(1)
            beside.addWidget(band)
            beside.addWidget(caption)
            row.addWidget(number, 1)
            row.addLayout(beside)
            self._numbers.append((number, caption))
            self._bands.append(band)
        self.body.addLayout(row, 1)
        # Below the numbers, where it is seen with them and has room for several words.
        self.head.removeWidget(self.badge)
        self.body.addWidget(self.badge, 0, QtCore.Qt.AlignmentFlag.AlignRight)
        self.setMinimumSize(310, 110)

    def show_sone(self, sone: float, band: tuple[float, float] | None = None) -> None:
        """Write a loudness, and how far off it is at most where it lies in a band."""
        for (number, _), text in zip(
            self._numbers, (sone_text(sone), phon_text(sone)), strict=True
        ):
            number.setText(text)
        widths = ("", "") if band is None else band_texts(sone, *band)
        for label, width in zip(self._bands, widths, strict=True):
            label.setText(width and f"± {width}")
            label.setVisible(bool(width))

    def texts(self) -> tuple[str, str]:
        """What is written there now: sone, phon."""
        sone, phon = (number.text() for number, _ in self._numbers)
        return sone, phon

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        """Grey numbers are not to be read off; hatched ones have no calibration."""
        for number, _ in self._numbers:
            tint(number, "second" if grey else None, hatched=uncalibrated)
        for band in self._bands:
            tint(band, "second" if grey else None)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        # "0.052" and its unit, twice, are nine times as wide as the digits are high.
        size = max(20, min(self.width() // 9, self.height() - 56))
        small = max(12, size // 4)
        for (number, caption), band in zip(self._numbers, self._bands, strict=True):
            for label, pixels in ((number, size), (caption, small), (band, max(12, size // 5))):
                font = label.font()
                font.setPixelSize(pixels)
                font.setBold(label is number)
                label.setFont(font)
