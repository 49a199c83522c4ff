"""A pane with the readings of one model."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.reading_grid import ReadingGrid
from amt_monitor.panes.pane import ElidedLabel, Pane
from amt_stream.meters import catalog
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.state_signs import is_away
from amt_stream.views.reading_cell import ReadingCell

if TYPE_CHECKING:
    from amt_stream.meters.plugin import MakesPane
    from amt_stream.views.view_state import ViewState


class ReadingPane(Pane):
    """Groups of large numbers, the first with the main one, and a table.

    about: a line beside the title
    large: cells of each group; the first one's caption is that of the group
    small: cells of each line of the table; other readings get lines of their own
    names: of all readings; cells without a reading are left out
    tiles: whether the groups are equal
    """

    def __init__(
        self,
        entry: Entry,
        about: str,
        large: Sequence[Sequence[ReadingCell]],
        small: Sequence[Sequence[ReadingCell]],
        names: Collection[str],
        tiles: bool = False,
    ) -> None:
        super().__init__(entry.name, escape(entry.title))
        self.head.insertWidget(1, ElidedLabel(about, *_shorter(about)), 100)
        self.head_bar.setToolTip(entry.method)
        self.model = entry.name
        """The name of its model in the engine."""
        groups, lines = _there(large, names), _there(small, names)
        named = {cell.name for line in (*groups, *lines) for cell in line}
        # A bound is shown beside its reading.
        others = [n for n in names if n not in named and not caption_of(n).bound_of]
        lines += [[ReadingCell(name)] for name in others]
        if large and not groups and lines:
            groups, lines = (
                [lines[0][:1]],
                [lines[0][1:], *lines[1:]] if lines[0][1:] else lines[1:],
            )
        self.grid = ReadingGrid(groups, lines, names, tiles)
        self.head.addWidget(self.grid.elapsed_box)
        self.body.addWidget(self.grid, 1)
        self._settling: Callable[[str], str] = lambda name: ""

    @property
    def numbers(self) -> list[tuple[ReadingCell, QtWidgets.QLabel]]:
        return self.grid.numbers

    def show_readings(self, found: Mapping[str, Any]) -> None:
        self.grid.show_readings(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Draw what moves."""

    def texts(self) -> tuple[str, ...]:
        return tuple(label.text() for _, label in self.numbers)

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        """Grey all numbers, or those that are settling; hatch them where uncalibrated."""

        def of(name: str) -> tuple[bool, bool, str]:
            settling = self._settling(name)
            return grey or bool(settling), uncalibrated, settling

        self.grid.doubt(of)

    def move(self, view: "ViewState") -> None:
        self.draw(view.values)

    def read(self, view: "ViewState") -> None:
        self.show_readings(view.values)
        self.grid.show_elapsed([view.measured_by(self.model, name) for name in self.grid.counted])

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        status = view.reading_status(self.model)

        def settling(name: str) -> str:
            status = view.number_status(name, self.model)
            return status.settling or status.old

        self._settling = settling
        self.doubt(status.off or bool(status.held), status.uncalibrated)
        self.grid.lose(view.values if is_away(view.held) else None)


def _shorter(about: str) -> list[str]:
    """Shorter forms: in fewer words, then without the last clauses, and nothing in the end."""
    words = about.replace("of both channels", "channel")
    places = [one.start() for one in re.finditer("[,;] ", about)]
    return [words, *(about[:place] for place in reversed(places)), ""]


def _there(
    lines: Sequence[Sequence[ReadingCell]], names: Collection[str]
) -> list[list[ReadingCell]]:
    """The cells whose readings exist, without empty lines."""
    found = ([cell for cell in line if cell.name in names] for line in lines)
    return [line for line in found if line]


def plain_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """The default pane: the first reading is large."""
    return ReadingPane(
        entry, entry.method, [[ReadingCell(name)] for name in [*names][:1]], (), names
    )


def pane_of(model: str, names: Collection[str]) -> ReadingPane:
    """The pane of a catalog model, for readings of these names."""
    entry = catalog.entry(model)
    make: MakesPane = plain_pane if entry.pane is None else entry.load("pane")
    pane: ReadingPane = make(entry, names)
    return pane
