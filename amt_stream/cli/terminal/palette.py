"""The colors of the terminal, light and dark."""

import os
from functools import cache
from typing import NamedTuple

from rich.style import Style
from textual.theme import Theme


class TerminalColors(NamedTuple):
    """One color for each meaning; green, amber and red are those of limits."""

    paper: str
    ground: str
    ink: str
    second: str
    grid: str
    ltl: str
    stl: str
    left: str
    right: str
    green: str
    amber: str
    red: str

    def theme(self, name: str) -> Theme:
        return Theme(
            name,
            primary=self.left,
            foreground=self.ink,
            background=self.paper,
            surface=self.ground,
            panel=self.ground,
            warning=self.amber,
            error=self.red,
            success=self.green,
            dark=name.endswith("dark"),
        )

    @cache  # noqa: B019 (two palettes, as long as the program)
    def style(self, role: str) -> Style:
        """The style of a role, such as "red", "ink bold" or "ink reverse"."""
        name, *looks = role.split()
        color, paper = getattr(self, name), self.paper
        if "reverse" in looks:
            color, paper = paper, color
        return Style(color=color, bgcolor=paper, bold="bold" in looks)


COLORS = {
    "amt-light": TerminalColors(
        *("#ffffff", "#f4f5f7", "#14161a", "#545b67", "#c3c8d0", "#3b0a7a", "#8b5cf6"),
        *("#0a66c2", "#b3470a", "#1a7f37", "#8a5a00", "#c81e2b"),
    ),
    "amt-dark": TerminalColors(
        *("#15181d", "#1e2228", "#f1f3f6", "#a3abb8", "#3a414c", "#efe7ff", "#9370f5"),
        *("#5aa9f0", "#f59e55", "#3fb950", "#e3a52b", "#ff6b62"),
    ),
}


def theme_of_terminal() -> str:
    """The theme for the terminal's background, as far as it tells: COLORFGBG is "ink;paper"."""
    paper = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "amt-light" if paper in ("7", "15") else "amt-dark"
