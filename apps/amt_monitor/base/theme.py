"""The colors of the window: light, dark, high contrast, or those of the desktop."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

FRAMED = "QAbstractButton", "QAbstractSpinBox", "QComboBox", "QLineEdit", "QPlainTextEdit"
"""Controls with a background of their own; only their frame is on the window's."""

Choice = Literal["system", "light", "dark", "contrast"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
NAMES = dict(zip(CHOICES, ("Like the desktop", "Light", "Dark", "High contrast"), strict=True))


class Colors(NamedTuple):
    """One color for each meaning.

    The second ink is for less important text and for unreliable numbers; the accent is the left
    ear; the outline frames controls. Green, amber and red belong to limits; amber also frames
    uncalibrated readings. The STL is a color of lines: its labels are in ink. Level and average are
    those of other readings in plots over time. Left and right, long-term and short-term differ in
    dashes, weight or words too.
    """

    paper: str
    ground: str
    ink: str
    second: str
    outline: str
    grid: str
    accent: str
    right: str
    ltl: str
    stl: str
    level: str
    average: str
    green: str
    amber: str
    red: str

    @property
    def left(self) -> str:
        return self.accent

    @property
    def dark(self) -> bool:
        return QtGui.QColor(self.paper).lightness() < 128

    @property
    def framed(self) -> bool:
        """Whether panes need frames, as the ground between them has the color of the paper."""
        return self.paper == self.ground

    @property
    def band(self) -> QtGui.QColor:
        """The color behind a line of large text; the grid of high contrast is too strong for it."""
        grid = QtGui.QColor(self.grid)
        if not self.framed:
            return grid
        return grid.darker(200) if self.dark else grid.lighter(150)


Role = (
    Literal["paper", "ground", "ink", "second", "outline", "grid", "accent", "left", "right"]
    | Literal["ltl", "stl", "level", "average", "green", "amber", "red"]
)

LIGHT = Colors(
    *("#ffffff", "#f4f5f7", "#14161a", "#545b67", "#767d89", "#e3e6eb", "#0a66c2"),
    *("#b3470a", "#3b0f7a", "#8b5cf6", "#0b7a75", "#a3148c", "#1a7f37", "#8a5a00", "#c81e2b"),
)
DARK = Colors(
    *("#15181d", "#0c0e11", "#f1f3f6", "#a3abb8", "#6d7683", "#262b33", "#5aa9f0"),
    *("#f59e55", "#efe7ff", "#9370f5", "#35c7b8", "#f07fd6", "#3fb950", "#e3a52b", "#ff6b62"),
)
CONTRAST_LIGHT = Colors(
    *("#ffffff", "#ffffff", "#000000", "#333333", "#333333", "#8c8c8c", "#003b7a"),
    *("#6e2c00", "#000000", "#6b21c8", "#00453f", "#7a0a69", "#064d1a", "#553800", "#85000f"),
)
CONTRAST_DARK = Colors(
    *("#000000", "#000000", "#ffffff", "#d6d6d6", "#d6d6d6", "#737373", "#9fd2ff"),
    *("#ffbd85", "#ffffff", "#c4a5ff", "#5ff0df", "#ff9df0", "#7ee787", "#ffd54a", "#ffaaa3"),
)


class Theme(QtCore.QObject):
    """The current colors; `changed` is emitted when the application has new ones.

    "system" and "contrast" follow the desktop's light or dark setting [main-thread].
    """

    changed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.colors = LIGHT
        self._choice: Choice | None = None
        self._desktop_dark = False

    @property
    def choice(self) -> Choice:
        return self._choice or "system"

    def choose(self, choice: Choice) -> None:
        """Give the application these colors.

        There must be a QApplication. Raises ValueError for an unknown choice.
        """
        if choice not in CHOICES:
            raise ValueError(f"there is no theme {choice!r}: choose one of {', '.join(CHOICES)}")
        hints: Any = QtGui.QGuiApplication.styleHints()
        if self._choice is None:
            # A desktop without that setting has colors of its own, until these are set.
            self._desktop_dark = QtGui.QGuiApplication.palette().base().color().lightness() < 128
            if hasattr(hints, "colorSchemeChanged"):
                hints.colorSchemeChanged.connect(self._follow)
        self._choice = choice
        if hasattr(hints, "setColorScheme"):
            # For what the platform draws itself: window frames and file dialogs.
            scheme = QtCore.Qt.ColorScheme
            asked = {"light": scheme.Light, "dark": scheme.Dark}.get(choice, scheme.Unknown)
            hints.setColorScheme(asked)
        self._set(self._fitting())

    def _fitting(self) -> Colors:
        if self._choice in ("light", "dark"):
            return DARK if self._choice == "dark" else LIGHT
        hints: Any = QtGui.QGuiApplication.styleHints()
        dark = self._desktop_dark
        if hasattr(hints, "colorScheme"):
            scheme = QtCore.Qt.ColorScheme
            dark = {scheme.Dark: True, scheme.Light: False}.get(hints.colorScheme(), dark)
        if self._choice == "contrast":
            return CONTRAST_DARK if dark else CONTRAST_LIGHT
        return DARK if dark else LIGHT

    def _follow(self, _: object) -> None:
        self._set(self._fitting())

    def _set(self, colors: Colors) -> None:
        self.colors = colors
        QtWidgets.QApplication.setPalette(palette_of(colors))
        framed = palette_of(colors)
        # Fusion darkens their frames: on a dark background they would vanish.
        framed.setColor(QtGui.QPalette.ColorRole.Window, QtGui.QColor(colors.outline))
        for kind in FRAMED:
            QtWidgets.QApplication.setPalette(framed, kind)
        for widget in QtWidgets.QApplication.allWidgets():
            repaint(widget)
        self.changed.emit()


theme = Theme()


def colors_of(widget: QtWidgets.QWidget) -> Colors:
    own = getattr(widget.window(), "colors", None)
    return own if isinstance(own, Colors) else theme.colors


def palette_of(colors: Colors) -> QtGui.QPalette:
    color = QtGui.QColor
    palette = QtGui.QPalette(color(colors.paper), color(colors.ground))
    role = QtGui.QPalette.ColorRole
    for name, roles in {
        "ground": (role.Window, role.AlternateBase),
        "paper": (role.Base, role.HighlightedText, role.ToolTipBase),
        "ink": (role.WindowText, role.Text, role.ButtonText, role.ToolTipText, role.BrightText),
        "second": (role.PlaceholderText,),
        "accent": (role.Highlight, role.Link, role.LinkVisited),
    }.items():
        for each in roles:
            palette.setColor(each, color(getattr(colors, name)))
    for each in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QtGui.QPalette.ColorGroup.Disabled, each, color(colors.second))
    return palette


def tint(label: QtWidgets.QLabel, role: Role | None, hatched: bool = False) -> None:
    """Write in the color of a role, in every theme; None is the ink.

    hatched: on a hatched background, which shows without color
    """
    asked = f"{role or 'ink'}{' hatched' if hatched else ''}"
    if label.property("tint") != asked:
        label.setProperty("tint", asked)
        _paint_label(label)


def repaint(widget: QtWidgets.QWidget) -> None:
    """Paint a tinted label in its present colors."""
    if isinstance(widget, QtWidgets.QLabel) and widget.property("tint") is not None:
        _paint_label(widget)


def _paint_label(label: QtWidgets.QLabel) -> None:
    role, _, hatched = label.property("tint").partition(" ")
    colors = colors_of(label)
    palette = palette_of(colors)
    # The role that counts depends on the parent that it gets.
    for written_with in (QtGui.QPalette.ColorRole.WindowText, QtGui.QPalette.ColorRole.Text):
        palette.setColor(written_with, QtGui.QColor(getattr(colors, role)))
    if hatched:
        palette.setBrush(label.backgroundRole(), hatching(colors.grid))
    label.setPalette(palette)
    label.setAutoFillBackground(bool(hatched))


AXIS = 12
"""Pixels of axes, legends and the status line, where texts have 13."""


def axis_size(widget: QtWidgets.QWidget) -> int:
    return max(AXIS, QtGui.QFontInfo(widget.font()).pixelSize() - 1)


def set_font(widget: QtWidgets.QWidget, bold: bool, pixels: int | None = None) -> None:
    font = widget.font()
    font.setWeight(font.Weight.DemiBold if bold else font.Weight.Normal)
    if pixels is not None:
        font.setPixelSize(pixels)
    widget.setFont(font)


def hatching(color: str) -> QtGui.QBrush:
    return QtGui.QBrush(QtGui.QColor(color), QtCore.Qt.BrushStyle.BDiagPattern)


class ThemedLabel(QtWidgets.QLabel):
    """Rich text with colors: `write(colors)` returns it for each theme."""

    def __init__(self, write: Callable[[Colors], str]) -> None:
        super().__init__()
        self._write = write
        self.rewrite()
        theme.changed.connect(self.rewrite)

    def rewrite(self) -> None:
        text = self._write(theme.colors)
        if text != self.text():
            self.setText(text)
