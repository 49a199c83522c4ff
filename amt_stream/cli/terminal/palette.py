"""The colors of the terminal, light and dark."""

import os
from functools import cache
from typing import NamedTuple

from rich.style import Style
from textual.theme import Theme


class TerminalColors(NamedTuple):
    """One color for each meaning; green, amber and red are those of limits.

    over: of letters on amber
    """

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
    over: str

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
            dark=name.startswith(DARK),
        )

    @cache  # noqa: B019 (two palettes, as long as the program)
    def style(self, role: str) -> Style:
        """The style of a role, such as "red", "ink bold" or "ink reverse"."""
        name, *looks = role.split()
        color, paper = getattr(self, name), self.paper
        if "reverse" in looks:
            color, paper = self.over if name == "amber" else paper, color
        return Style(color=color, bgcolor=paper, bold="bold" in looks)


LIGHT, DARK, FEW = "amt-light", "amt-dark", "-16"
STANDARD = "standard"
"""The color system of terminals with 8 or 16 colors, in the words of Rich."""

COLORS = {
    LIGHT: TerminalColors(
        *("#ffffff", "#f4f5f7", "#14161a", "#545b67", "#c3c8d0", "#3b0a7a", "#8b5cf6"),
        *("#0a66c2", "#b3470a", "#1a7f37", "#8a5a00", "#c81e2b", "#ffffff"),
    ),
    DARK: TerminalColors(
        *("#15181d", "#1e2228", "#f1f3f6", "#a3abb8", "#3a414c", "#efe7ff", "#9370f5"),
        *("#5aa9f0", "#f59e55", "#3fb950", "#e3a52b", "#ff6b62", "#15181d"),
    ),
    # The colors of Rich's standard palette: the nearest of them to an orange would be red.
    LIGHT + FEW: TerminalColors(
        *("#ffffff", "#ffffff", "#000000", "#555555", "#aaaaaa", "#000000", "#aa00aa"),
        *("#0000aa", "#aa00aa", "#00aa00", "#aa5500", "#aa0000", "#000000"),
    ),
    DARK + FEW: TerminalColors(
        *("#000000", "#000000", "#ffffff", "#aaaaaa", "#555555", "#ffffff", "#ff55ff"),
        *("#55ffff", "#ff55ff", "#55ff55", "#ffff55", "#ff5555", "#000000"),
    ),
}


def theme_of_terminal(color_system: str | None) -> str:
    """The theme for the terminal's background, as far as it tells: COLORFGBG is "ink;paper".

    color_system: how many colors it has, in the words of Rich
    """
    paper = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    theme = LIGHT if paper in ("7", "15") else DARK
    return theme + FEW if color_system == STANDARD else theme


def other_theme(theme: str) -> str:
    """The dark theme for a light one, and the light one for a dark one."""
    few = FEW if theme.endswith(FEW) else ""
    return (DARK if theme.startswith(LIGHT) else LIGHT) + few
