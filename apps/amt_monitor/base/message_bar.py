"""Messages above the panes: problems with their remedy, and what can be undone."""

from collections.abc import Iterable

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import colors_of, set_font, theme
from amt_monitor.base.widgets import plain_label, tool_button
from amt_stream.core.safe_text import plain

MARK = 4
"""Pixels of the stripe at the left."""
LETTERS = 18
"""Pixels of the letters of a banner."""
HIGH = 2.7
"""Its height relative to them."""


class Banner(QtWidgets.QLabel):
    """One sentence in inverse ink: the microphone is lost, or a limit is about to be exceeded."""

    def __init__(self) -> None:
        super().__init__(objectName="banner", textFormat=QtCore.Qt.TextFormat.PlainText, indent=12)
        self.setMinimumWidth(1)  # a long name must not widen the window
        self.setAutoFillBackground(True)
        self.set_letters(LETTERS)
        theme.changed.connect(self.color)
        self.color()
        self.hide()

    def set_letters(self, pixels: int) -> None:
        set_font(self, True, pixels)
        self.setFixedHeight(round(HIGH * pixels))

    def say(self, sentence: str) -> None:
        """Show this sentence, or nothing for ""."""
        self.setText(plain(sentence))
        self.setVisible(bool(sentence))

    def color(self) -> None:
        palette, colors = self.palette(), colors_of(self)
        palette.setColor(self.backgroundRole(), QtGui.QColor(colors.ink))
        palette.setColor(self.foregroundRole(), QtGui.QColor(colors.paper))
        self.setPalette(palette)


class MessageBar(QtWidgets.QWidget):
    """Messages below each other, a button that dismisses them, and one that undoes.

    A dismissed message returns once it has been absent, or after `say_again`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._dismissed: set[str] = set()
        self.label = plain_label("message", wrap=True)
        flag = QtCore.Qt.TextInteractionFlag
        self.label.setTextInteractionFlags(flag.TextSelectableByMouse)
        set_font(self.label, bold=True)
        self.button = tool_button("dismiss", "Dismiss", "dismiss these messages", self.dismiss)
        self.undo = tool_button("undo", "Undo", "undo it")
        self._undone, self._stale = "", True
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(MARK + 8, 4, 8, 4)
        row.addWidget(self.label, 1)
        for button in (self.undo, self.button):
            row.addWidget(button, 0, QtCore.Qt.AlignmentFlag.AlignTop)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        return self.label.text()

    def say(self, sentences: Iterable[str], undone: str = "") -> None:
        """Show all messages; the last one says what can be undone."""
        said = [*dict.fromkeys(plain(one) for one in (*sentences, undone) if one)]
        if (said, plain(undone)) != (self._said, self._undone) or self._stale:
            self._said, self._undone, self._stale = said, plain(undone), False
            self._dismissed &= set(said)
            self._show()

    def say_again(self, sentence: str) -> None:
        """Show this message although it was dismissed: it has happened again."""
        self._dismissed.discard(plain(sentence))
        self._stale = True

    def dismiss(self) -> None:
        self._dismissed |= set(self._said)
        self._show()

    def _show(self) -> None:
        text = "\n".join(begun(one) for one in self._said if one not in self._dismissed)
        if text != self.label.text():
            self.label.setText(text)
            self.setAccessibleName(text)
        self.undo.setVisible(bool(self._undone) and self._undone not in self._dismissed)
        self.setVisible(bool(text))

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        colors, painter = colors_of(self), QtGui.QPainter(self)
        painter.fillRect(self.rect(), QtGui.QColor(colors.paper))
        painter.fillRect(0, 0, MARK, self.height(), QtGui.QColor(colors.ink))


def begun(sentence: str) -> str:
    """With a capital letter, unless it begins with a name or a path."""
    word = sentence.partition(" ")[0].rstrip(",:")
    return sentence[:1].upper() + sentence[1:] if word.isalpha() else sentence
