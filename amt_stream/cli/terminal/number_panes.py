"""The parts of the screen with numbers and words: one reading, the table, the limits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amt_stream.cli.terminal.cells import Cell
from amt_stream.cli.terminal.picture import UNCAL, Picture
from amt_stream.cli.terminal.pictures import Line, cut, digits, digits_width
from amt_stream.meters import catalog
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import band_texts
from amt_stream.meters.rows.captions import UNCALIBRATED, caption_of
from amt_stream.meters.rows.limit_words import forecast_words, state_of, state_words, value_words
from amt_stream.views.view_state import ReadingStatus, ViewState

NOTED_S = 1.0
"""Shortest time without a model that is worth a line."""
MORE = "88 more below ↓"
"""The widest text about lines of the table that have no room."""
MARKS = {"green": "●", "amber": "▲", "red": "■"}
"""The shape of each state of a limit; others have a ring."""


def covered_words(view: ViewState, model: str, names: Iterable[str]) -> str:
    """The time that statistics of a model cover, if that is less than the measurement's."""
    counted = [name for name in names if caption_of(name).counted]
    times = [view.measured_by(model, name) for name in counted] or [view.measured_by(model)]
    measured_s, offs_s = zip(*times, strict=True)
    least_s, most_s, off_s = min(measured_s), max(measured_s), max(offs_s)
    if view.measured_s - least_s < NOTED_S and off_s < NOTED_S:
        return ""
    off = f", off {off_s:.0f} s" if off_s >= NOTED_S else ""
    least, most = f"{least_s:.0f}", f"{most_s:.0f}"
    measured = least if least == most else f"{least} to {most}"
    return f"{measured} of {max(most_s, view.measured_s):.0f} s{off}"


class NumberPane(Picture):
    """One reading in large digits, with its caption, its unit, and the highest."""

    def draw(
        self,
        cell: Cell | None,
        values: Mapping[str, Any],
        status: ReadingStatus,
        lost: bool,
        role: str,
        height: int,
    ) -> int:
        """Draw it in at most `height` lines; returns how many it uses."""
        if cell is None:
            self.show([])
            return 0
        width = self.size.width
        (text, unit), *others = cell.values(values, lost)
        others = _with_band(others, cell, values)
        caption = f"{cell.words}  {cell.symbol}" if cell.symbol else cell.words
        if len(caption) > width:
            caption = cell.symbol or cell.words
        scale = 1
        widest = max(text, "88.8", key=len)
        while (5 * scale + 6) // 2 <= height - 2 and digits_width(widest, scale + 1) <= width - 6:
            scale += 1
        ink = "second" if status.grey or lost else role
        # Cropped digits would be another number.
        large = digits(text, scale) if digits_width(text, 1) <= width else (cut(text, width),)
        words = [UNCALIBRATED, UNCAL] if status.uncalibrated else []
        doubt = "switched off" if status.off else "settling" if status.settling else status.old
        doubt = f", {doubt}" if doubt else ""
        room = width - len(large[-1]) - 1
        if room < max(map(len, (unit, *words[-1:]))):
            # Beside digits that take all of the width nothing is read: it stands above them.
            spare = 1 + len(words[-1]) if words else 0
            whole = f"{caption}{doubt}  {unit}"
            caption = whole if len(whole) + spare <= width else f"{caption}  {unit}"
            room = width - len(caption) - 1
            lines: list[Line] = [[(cut(caption, width), "second")]]
            lines += [[(line, ink)] for line in large]
            beside = lines[0]
        else:
            caption = caption + doubt if len(caption + doubt) <= width else caption
            lines = [[(cut(caption, width), "second")], *([(line, ink)] for line in large)]
            lines[-1].append((f" {unit}", "second"))
            beside = lines[-2]
        beside += [(f" {word}", "amber") for word in words if len(word) <= room][:1]
        below = _joined("last" if lost else "", cell.values(values) if lost else others, width)
        if below:
            lines.append([(below, "second" if lost or status.held else "ink")])
        high = Cell("", "", tuple(n for one in cell.names if (n := f"max_{one}") in values))
        if high.names and height > len(lines):
            highest = _with_band(high.values(values), high, values)
            lines.append([(_joined("max", highest, width), "second")])
        self.show(lines[:height])
        return len(lines[:height])


def _with_band(
    numbers: Sequence[tuple[str, str]], cell: Cell, values: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """The numbers, those in phon with their uncertainty if it is known."""
    name = cell.names[0]
    bounds = [values[one] for one in values if caption_of(one).bound_of == name]
    sone = values.get(name) if caption_of(name).unit == "sone" else None
    if sone is None or len(bounds) < 2 or None in bounds:
        return [*numbers]
    wide = band_texts(sone, *bounds)[1]
    return [(f"{text} ± {wide}" if unit == "phon" else text, unit) for text, unit in numbers]


def _joined(word: str, values: Sequence[tuple[str, str]], width: int) -> str:
    """A word and as many values with their units as fit."""
    parts = [word] if word else []
    for value in values:
        if len("  ".join([*parts, " ".join(value)])) <= width:
            parts.append(" ".join(value))
    return " ".join(parts[:2]) + "".join(f"  {part}" for part in parts[2:])


class TablePane(Picture):
    """The other readings, each with its words; as many columns as fit."""

    first = 0
    """The line at the top, which the wheel and the arrow keys move."""

    most = 1
    """Lines at most."""

    def draw(self, groups: Mapping[str, Sequence[Cell]], view: ViewState, lost: bool) -> None:
        """Draw the readings; grey where they stand still or are not reliable."""
        height = self.most
        if not self.size.width:
            return
        cells = [cell for group in groups.values() for cell in group]
        inks = [
            "second" if view.number_status(cell.names[0], model).grey else "ink"
            for model, group in groups.items()
            for cell in group
        ]
        texts = [
            "  ".join(" ".join(one) for one in cell.values(view.values, lost)) for cell in cells
        ]
        for model, group in groups.items():
            if words := covered_words(view, model, (name for one in group for name in one.names)):
                entry = catalog.entries().get(model)
                of = f", {entry.title}" if entry is not None else ""
                cells.append(Cell(f"Measured{of}", "", ()))
                texts.append(words)
                inks.append("second")
        right = max(map(len, texts), default=0)
        whole = [f"{cell.words}  {cell.symbol}".rstrip() for cell in cells]
        for width in (self.size.width, max(1, self.size.width - len(MORE) - 3)):
            names = whole
            if max(map(len, names), default=0) + right + 2 > width:
                names = [cell.symbol or cell.words for cell in cells]
            wide = min(width, max(map(len, names), default=0) + right + 2)
            across = max(1, (width + 3) // (wide + 3))
            wide = (width + 3) // across - 3
            down = -(-len(cells) // across)
            if down <= height:
                break
        self.first = max(0, min(self.first, down - height))
        self.styles.height = min(down, height)
        lines: list[Line] = []
        for y in range(self.first, min(down, self.first + height)):
            line: Line = []
            for k in range(y, len(cells), down):
                room = max(0, wide - len(texts[k]))
                line += [
                    (f"{cut(names[k], max(0, room - 1)):<{room}}", "second"),
                    (texts[k], inks[k]),
                    ("   ", "ink"),
                ]
            lines.append(line[:-1])
        if down > height and lines:
            below = down - self.first - height
            words = f"{below} more below ↓" if below else f"{self.first} more above ↑"
            gap = self.size.width - sum(len(text) for text, _ in lines[-1]) - len(words)
            lines[-1] += [(" " * max(0, gap), "ink"), (words, "second")]
        self.show(lines)

    def move(self, lines: int) -> None:
        self.first += lines

    def on_mouse_scroll_down(self) -> None:
        self.move(1)

    def on_mouse_scroll_up(self) -> None:
        self.move(-1)


class LimitPane(Picture):
    """The limits, each with a shape and a word; one that is exceeded in inverse letters."""

    def draw(self, limits: Sequence[Limit], view: ViewState) -> None:
        (width, height), held = self.size, view.held
        lines: list[Line] = []
        for limit in limits:
            state = state_of(limit, view.values, held)
            words = state_words(limit, view.values, held)
            parts = [
                value_words(limit, view.values, held),
                forecast_words(limit, view.values, held),
            ]
            text = f" {MARKS.get(state, '○')} {words}"
            for part in filter(None, parts):
                if len(text) + len(part) + 3 <= width:
                    text += f"   {part}"
            role = state if state in MARKS else "second"
            over = " reverse bold" if state == "red" else ""
            lines.append([(f"{cut(text, width):<{width}}", role + over)])
        if len(lines) > height > 0:
            order = {"red": 0, "amber": 1}
            states = [order.get(state_of(one, view.values, held), 2) for one in limits]
            lines = [
                line for _, line in sorted(zip(states, lines, strict=True), key=lambda p: p[0])
            ]
            lines = lines[:height]
        self.show(lines)
