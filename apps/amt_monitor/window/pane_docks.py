"""Docks that hold the panes, and their layout."""

from collections.abc import Callable, Collection, Sequence
from itertools import combinations, pairwise
from weakref import WeakKeyDictionary

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import theme
from amt_monitor.panes.pane import Pane
from amt_monitor.window.pane_kinds import CURVES, HISTORY, NUMBERS, SHARES, PaneKind

VERSION = 1
"""Version of stored layouts."""

MOST_BESIDE = 4
"""Docks of the numbers of models in a row."""

OF_MODEL = 8
"""The share of such a dock; those with less are narrow."""

SPLIT = 6
"""Pixels between docks."""

SMALL = 900, 600
"""Width and height below which the numbers are behind tabs of each other."""

TABS = 28
"""Pixels of a tab bar."""

_handles: WeakKeyDictionary[QtWidgets.QWidget, QtGui.QWindow | None] = WeakKeyDictionary()
"""Those of windows: an object that nobody keeps is made anew for each call, which is slow."""

AREA = QtCore.Qt.DockWidgetArea.TopDockWidgetArea


class PaneDock(QtWidgets.QDockWidget):
    """A pane that can be moved, tabbed, closed, or opened in its own window.

    It does not float, as floating docks fail on Wayland. The pane is made when it is first visible.

    made: called with the pane then
    """

    def __init__(self, kind: PaneKind, made: Callable[[Pane], object] = lambda pane: None) -> None:
        # Qt takes a single & as the mark of a key.
        super().__init__(kind.title.replace("&", "&&"))
        self.kind, self._made = kind, made
        self.pane: Pane | None = None
        self.setObjectName(f"dock_{kind.name}")
        feature = QtWidgets.QDockWidget.DockWidgetFeature
        self.setFeatures(feature.DockWidgetMovable | feature.DockWidgetClosable)
        self._own: PaneWindow | None = None
        self._seen = False
        self._bar = QtWidgets.QWidget()
        self._bar.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self._bar.setAutoFillBackground(True)
        row = QtWidgets.QHBoxLayout(self._bar)
        row.setContentsMargins(8, 2, 4, 2)
        row.setSpacing(2)
        self._beside = QtWidgets.QHBoxLayout()
        row.addLayout(self._beside, 1)
        for icon, words, action in (
            ("SP_TitleBarNormalButton", "Open in its own window", self.open_alone),
            ("SP_TitleBarCloseButton", "Close this pane", self.close),
        ):
            row.addWidget(_DockButton(self, icon, f"{words}: {kind.title}", action))
        self.setTitleBarWidget(self._bar)
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_Hover)
        self.visibilityChanged.connect(self._set_seen)
        self.toggleViewAction().triggered.connect(self._come_up)

    @property
    def is_seen(self) -> bool:
        """Whether its pane is visible: not closed, behind a tab, minimized or covered."""
        return self.pane is not None and self.is_open and on_screen(self.pane.window())

    @property
    def is_open(self) -> bool:
        """Whether its pane is in front, in the main window or in its own."""
        return self._seen or self._own is not None

    @property
    def least_width(self) -> int:
        """Of the pane and its title bar."""
        return max(self.minimumSizeHint().width(), self._bar.minimumSizeHint().width())

    def fill(self) -> Pane:
        """Make the pane, unless it exists."""
        if self.pane is None:
            self.pane = self.kind.make()
            self._made(self.pane)
            self._beside.addWidget(self.pane.head_bar, 1)
            self.setWidget(self.pane)
            # A hidden pane asks for no width.
            self.pane.head_bar.show()
        return self.pane

    def open_alone(self) -> None:
        pane = self.fill()
        if self._own is None:
            self._own = PaneWindow(pane, self.kind.title, self._take_back)
            # The main window's keys work in it too.
            self._own.addActions(self.window().actions())
            self._own.resize(max(480, pane.width()), max(360, pane.height()))
            self._own.show()
            self.hide()

    def leave(self) -> None:
        if self.pane is not None:
            self.pane.leave()
        if self._own is not None:
            self._own.close()
        # A layout that is restored must not find it any more.
        self.setObjectName("")
        self.deleteLater()

    def _take_back(self) -> None:
        self._own = None
        if self.pane is not None:
            self._beside.addWidget(self.pane.head_bar, 1)
            self.setWidget(self.pane)
            self.show()

    def _come_up(self, shown: bool) -> None:
        """Raise it above the other tabs."""
        if shown:
            self.raise_()

    def _set_seen(self, seen: bool) -> None:
        self._seen = seen
        if seen:
            self.fill()


class PaneWindow(QtWidgets.QWidget):
    """A pane in its own window; `closed` is called when it closes."""

    def __init__(self, pane: Pane, title: str, closed: Callable[[], None]) -> None:
        super().__init__(objectName="own_window", windowTitle=f"{title} - amt-stream")
        self._pane, self._closed = pane, closed
        body = QtWidgets.QVBoxLayout(self)
        body.addWidget(pane.head_bar)
        body.addWidget(pane, 1)
        pane.show()
        QtGui.QShortcut(QtGui.QKeySequence("Esc"), self).activated.connect(self.close)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        event.accept()
        self._closed()
        self.deleteLater()


def on_screen(window: QtWidgets.QWidget) -> bool:
    """Whether a window is visible, on a screen that is on."""
    handle = _handles[window] = window.windowHandle()
    return not window.isMinimized() and handle is not None and handle.isExposed()


def lay_out(
    window: QtWidgets.QMainWindow, docks: Sequence[PaneDock], closed: Collection[str] | None = None
) -> None:
    """Numbers at the top, history below, curves at the bottom; others are tabs of these.

    Panes without room become tabs: curves of the history, then numbers of other numbers, and in
    the end the history of the numbers.

    closed: the panes that are closed; by default those without a row
    """
    if closed is None:
        closed = {dock.kind.name for dock in docks if dock.kind.row is None}
    shown = [dock for dock in docks if dock.kind.name not in closed]
    for dock in docks:
        window.removeDockWidget(dock)
    for dock in shown:
        dock.fill()
    for bar in _tab_bars(window):
        bar.hide()  # Qt leaves the places of removed docks above those of new ones
    lines = _lines([dock for dock in shown if dock.kind.row == NUMBERS], window.width())
    numbers = [dock for line in lines for dock in line]
    if numbers and (window.width() < SMALL[0] or window.height() < SMALL[1]):
        lines = [[numbers[0]]]
    below = [[dock for dock in shown if dock.kind.row == row] for row in (HISTORY, CURVES)]
    curves = below[1]
    if len(curves) > 1 and _least_width(curves) > window.width():
        below[1] = curves[:1]
    rows = [*lines, *filter(None, below)]
    seen = [dock for row_of in rows for dock in row_of]
    behind = [(row_of[0], dock) for row_of in (numbers, curves) for dock in row_of]
    behind = [pair for pair in behind if pair[1] not in seen]
    room = _room(window)

    def needed() -> int:
        """Height of all rows, each with the docks behind its tabs and with the bar of these."""
        backs = [[back for front, back in behind if front in row_of] for row_of in rows]
        pairs = zip(rows, backs, strict=True)
        return sum(_least_height([*row_of, *more]) + TABS * bool(more) for row_of, more in pairs)

    def drop(at: int) -> None:
        """Make a row, and the docks behind it, tabs of the row above."""
        last = rows.pop(at)
        more = [back for front, back in behind if front in last]
        rows[at - 1], tabs = _with_tabs(rows[at - 1], [*last, *more], window.width())
        behind[:] = [*tabs, *(pair for pair in behind if pair[0] not in last)]

    if needed() > room and all(below):
        drop(len(rows) - 1)
    for at in range(len(lines) - 1, 0, -1):
        if needed() > room:
            drop(at)
    if needed() > room and len(rows) > 1:
        drop(1)
    for row_of in rows:
        window.addDockWidget(AREA, row_of[0])
    for above, beneath in pairwise(rows):
        window.splitDockWidget(above[0], beneath[0], QtCore.Qt.Orientation.Vertical)
    for part in rows:
        for left, right in pairwise(part):
            window.splitDockWidget(left, right, QtCore.Qt.Orientation.Horizontal)
    for front, back in behind:
        window.tabifyDockWidget(front, back)
    for dock in docks:
        if dock not in shown or dock.kind.row is None:
            window.addDockWidget(AREA, dock)
            if rows:
                # The place where it opens.
                window.tabifyDockWidget(rows[-1][-1], dock)
        dock.setVisible(dock in shown)
    for front, _ in reversed(behind):
        front.raise_()
    for part in rows:
        shares = [100 * dock.kind.share for dock in part]
        window.resizeDocks(part, shares, QtCore.Qt.Orientation.Horizontal)
    heights = [100 * SHARES[part[0].kind.row or 0] for part in rows]
    firsts = [part[0] for part in rows]
    window.resizeDocks(firsts, heights, QtCore.Qt.Orientation.Vertical)
    _hide_left_tab_bars(window, docks)


def _tab_bars(window: QtWidgets.QMainWindow) -> list[QtWidgets.QTabBar]:
    direct = QtCore.Qt.FindChildOption.FindDirectChildrenOnly
    return window.findChildren(QtWidgets.QTabBar, options=direct)


def color_tabs(window: QtWidgets.QMainWindow) -> None:
    """Fill the tab in front: a frame alone is hard to tell in a dark theme."""
    colors = theme.colors
    style = (
        f"QTabBar::tab {{ padding: 5px 10px; border: 1px solid {colors.outline}; "
        f"color: {colors.ink}; background: {colors.paper}; }} "
        f"QTabBar::tab:selected {{ background: {colors.accent}; border-color: {colors.accent}; "
        f"color: {colors.paper}; }}"
    )
    for bar in _tab_bars(window):
        if bar.styleSheet() != style:
            bar.setStyleSheet(style)


def _hide_left_tab_bars(window: QtWidgets.QMainWindow, docks: Sequence[PaneDock]) -> None:
    """Hide tabs of docks that are beside each other now: Qt may leave them over a pane."""
    tabbed = {dock.windowTitle() for dock in docks if window.tabifiedDockWidgets(dock)}
    for bar in _tab_bars(window):
        if not tabbed.issuperset(map(bar.tabText, range(bar.count()))):
            bar.hide()


def _lines(docks: Sequence[PaneDock], width: int) -> list[list[PaneDock]]:
    """The fewest rows of docks that fit, in which docks of equal rank are about equally wide."""
    for count in range(1, len(docks) + 1):
        ways = [_cut(docks, ends) for ends in combinations(range(1, len(docks)), count - 1)]
        fitting = [lines for lines in ways if all(_is_row(line, width) for line in lines)]
        if fitting:
            return min(fitting, key=_inequality)
    return [[dock] for dock in docks]


def _cut(docks: Sequence[PaneDock], ends: Sequence[int]) -> list[list[PaneDock]]:
    return [[*docks[a:b]] for a, b in pairwise((0, *ends, len(docks)))]


def _is_row(line: Sequence[PaneDock], width: int) -> bool:
    many = sum(dock.kind.share >= OF_MODEL for dock in line)
    return many <= MOST_BESIDE and _least_width(line) <= width


def _inequality(lines: Sequence[Sequence[PaneDock]]) -> tuple[float, int]:
    """How unequal the widths of models are, as a ratio; then the share of the fullest row."""
    full = [sum(dock.kind.share for dock in line) for line in lines]
    of_models = [
        share
        for share, line in zip(full, lines, strict=True)
        if any(dock.kind.share >= OF_MODEL for dock in line)
    ]
    return max(of_models, default=1) / min(of_models, default=1), max(full)


def _with_tabs(
    line: Sequence[PaneDock], behind: Sequence[PaneDock], width: int
) -> tuple[list[PaneDock], list[tuple[PaneDock, PaneDock]]]:
    """The docks that stay beside each other, and each other one with that whose tab it becomes.

    That is the dock with the fewest tabs for which the row has room.
    """
    widths, tabs = {dock: _least_width([dock]) for dock in line}, dict.fromkeys(line, 1)
    pairs = []
    for dock in sorted(behind, key=lambda one: -_least_width([one])):
        least, spare = _least_width([dock]), width - sum(widths.values()) - SPLIT * len(line)
        wider = {one: max(least - widths[one], 0) for one in line}
        front = min(line, key=lambda one: (max(wider[one] - spare, 0), tabs[one], wider[one]))
        widths[front] += wider[front]
        tabs[front] += 1
        pairs.append((front, dock))
    if len(line) > 1 and sum(widths.values()) + SPLIT * (len(line) - 1) > width:
        return _with_tabs(line[:-1], [line[-1], *behind], width)
    return [*line], pairs


def _room(window: QtWidgets.QMainWindow) -> int:
    """Height for docks; what lies above them may not have been laid out yet since it changed."""
    high = [_bar_height(bar, window.width()) for bar in (window.menuWidget(), window.statusBar())]
    return window.height() - sum(high)


def _bar_height(bar: QtWidgets.QWidget | None, width: int) -> int:
    """What it asks for at a width."""
    if bar is None:
        return 0
    return bar.heightForWidth(width) if bar.hasHeightForWidth() else bar.sizeHint().height()


def _least_width(line: Sequence[PaneDock]) -> int:
    return sum(dock.least_width for dock in line) + SPLIT * (len(line) - 1)


def _least_height(line: Sequence[PaneDock]) -> int:
    return max(dock.minimumSizeHint().height() for dock in line) + SPLIT


class _DockButton(QtWidgets.QToolButton):
    """A button that is seen while the mouse is over its dock, or while it has the keyboard."""

    def __init__(
        self, dock: QtWidgets.QWidget, icon: str, words: str, action: Callable[[], object]
    ) -> None:
        super().__init__()
        self._dock = dock
        style = QtWidgets.QApplication.style()
        self.setIcon(style.standardIcon(getattr(QtWidgets.QStyle.StandardPixmap, icon)))
        self.setIconSize(QtCore.QSize(12, 12))
        self.setAutoRaise(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.TabFocus)
        self.setToolTip(words)
        self.setAccessibleName(words)
        self.clicked.connect(lambda _: action())

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if self.hasFocus() or self._dock.underMouse():
            super().paintEvent(event)
