"""The colors of the window: light, dark, high contrast, or those of the desktop."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

FRAMED = ("QAbstractSpinBox", "QCheckBox", "QLineEdit", "QPlainTextEdit", "QRadioButton")
"""Controls with a background of their own; only their frame is on the window's."""

Choice = Literal["system", "light", "dark", "contrast"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
NAMES = dict(zip(CHOICES, ("Like the desktop", "Light", "Dark", "High contrast"), strict=True))


class Colors(NamedTuple):
    """One color for each meaning.

    The second ink is for less important text and for unreliable numbers; the accent is the left
    ear. Green, amber and red belong to limits; amber also frames uncalibrated readings. Left and
    right, long-term and short-term differ in dashes, weight or words too.
    """

    paper: str
    ground: str
    ink: str
    second: str
    grid: str
    accent: str
    right: str
    ltl: str
    stl: str
    green: str
    amber: str
    red: str

    @property
    def left(self) -> str:
        return self.accent

    @property
    def dark(self) -> bool:
        return QtGui.QColor(self.paper).lightness() < 128


Role = (
    Literal["paper", "ground", "ink", "second", "grid", "accent", "left", "right"]
    | Literal["ltl", "stl", "green", "amber", "red"]
)

LIGHT = Colors(
    *("#ffffff", "#f2f3f5", "#16181d", "#525863", "#d9dce2", "#0a66c2"),
    *("#c2570a", "#6a2c91", "#8f52b8", "#1a7f37", "#9a6700", "#cf222e"),
)
DARK = Colors(
    *("#14161a", "#0d0f12", "#eceef2", "#9da4b0", "#2a2e36", "#5aa9f0"),
    *("#f0954d", "#d3b0f5", "#a47fd0", "#3fb950", "#d29922", "#f85149"),
)
CONTRAST_LIGHT = Colors(
    *("#ffffff", "#ffffff", "#000000", "#333333", "#8c8c8c", "#003b7a"),
    *("#6e2c00", "#3b0a5c", "#55247c", "#064d1a", "#553800", "#85000f"),
)
CONTRAST_DARK = Colors(
    *("#000000", "#000000", "#ffffff", "#d6d6d6", "#737373", "#9fd2ff"),
    *("#ffbd85", "#ecd6ff", "#cba6f0", "#7ee787", "#ffd54a", "#ffaaa3"),
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
        framed.setColor(QtGui.QPalette.ColorRole.Window, QtGui.QColor(colors.second))
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
