"""A part of the screen of the terminal."""

import re
from typing import Any

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from amt_stream.cli.terminal.palette import COLORS, TerminalColors
from amt_stream.cli.terminal.pictures import Line

UNCAL = "uncal."
"""Where "uncalibrated" has no room."""

_BLOCKS = re.compile("(█+)")


class Picture(Widget):
    """A part of the screen that is drawn by lines; only lines that change are sent."""

    DEFAULT_CSS = "Picture { height: 1fr; width: 1fr; }"

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._lines: list[Line] = []
        self._strips: list[Strip] = []

    def show(self, lines: list[Line]) -> None:
        """Draw these lines from the top."""
        changed, width, colors = [], self.size.width, COLORS[self.app.theme]
        base = colors.style("ink")
        for y in range(max(len(lines), len(self._lines))):
            new = lines[y] if y < len(lines) else []
            if y >= len(self._lines):
                self._lines.append([])
                self._strips.append(Strip.blank(0))
            elif self._lines[y] == new:
                continue
            self._lines[y] = new
            self._strips[y] = _strip(new, colors).adjust_cell_length(width, base)
            changed.append(Region(0, y, width, 1))
        if changed:
            self.refresh(*changed)

    def forget(self) -> None:
        """Draw all lines again, as in other colors."""
        self._lines, self._strips = [], []

    def on_resize(self) -> None:
        self.forget()

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, COLORS[self.app.theme].style("ink"))

    @property
    def text(self) -> str:
        """What is drawn, as text."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)


def _strip(line: Line, colors: TerminalColors) -> Strip:
    """A line in color; full blocks are drawn as background, which leaves no seams."""
    parts = []
    for text, role in line:
        for part in _BLOCKS.split(text) if "█" in text else (text,):
            if part[:1] == "█":
                parts.append(Segment(" " * len(part), colors.style(f"{role} reverse")))
            elif part:
                parts.append(Segment(part, colors.style(role)))
    return Strip(parts)
