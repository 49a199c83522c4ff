"""The parts of the screen: each draws what a meter shows, in the room that it has."""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from amt_stream.cli.terminal.cells import Cell
from amt_stream.cli.terminal.meter import Spectrum
from amt_stream.cli.terminal.palette import COLORS, TerminalColors
from amt_stream.cli.terminal.pictures import (
    HATCH,
    SHADES,
    Line,
    Piece,
    bars,
    braille,
    cut,
    digits,
    digits_width,
    meter,
    nice_range,
    shade,
    shared_columns,
    tick_line,
    trace,
    with_limit,
)
from amt_stream.dsp.scales import erb_number_to_hz
from amt_stream.meters import catalog
from amt_stream.meters.frames import UNHEARD
from amt_stream.meters.level_ballistics import LevelBallistics
from amt_stream.meters.limits import Limit
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows import band_texts, below_db, hz_text
from amt_stream.meters.rows.block import unix_s
from amt_stream.meters.rows.captions import UNCALIBRATED, caption_of, row_text
from amt_stream.meters.rows.limit_words import forecast_words, state_of, state_words, value_words
from amt_stream.offline.output_track import axis_of
from amt_stream.views.reading_history import CAME, ReadingHistory
from amt_stream.views.view_state import ReadingStatus, ViewState

SHRINK_S = 5.0
NOTED_S = 1.0
"""Shortest time without a model that is worth a line."""
MOVE_S = 0.5
"""Time by which the history moves at least, as all of its lines are sent when it does."""
UNMEASURED = int(UNHEARD)
UNCAL = "uncal."
"""Where "uncalibrated" has no room."""
LOWEST_DB, HIGHEST_DB = 20.0, 130.0
SPANS_S = {"last minute": 60.0, "last 10 minutes": 600.0, "last hour": 3600.0}
TICKS_HZ = (125, 250, 500, 1000, 2000, 4000, 8000)
MORE = "88 more below ↓"
"""The widest text about lines of the table that have no room."""
MARKS = {"green": "●", "amber": "▲", "red": "■"}
"""The shape of each state of a limit; others have a ring."""

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
        large = digits(text, scale)
        words = [UNCALIBRATED, UNCAL] if status.uncalibrated else []
        doubt = ", switched off" if status.off else ", settling" if status.settling else ""
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


class EarMeters(Picture):
    """The input level of both ears as vertical meters with a scale between them."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._ears = LevelBallistics(), LevelBallistics()
        self._drawn: tuple[Any, ...] = ()

    def draw(
        self,
        time_s: float,
        level_db: Sequence[float] | None,
        clipped: bool,
        uncalibrated: bool,
        resting: bool = False,
    ) -> None:
        """Draw a moment.

        level_db: of left and right at a time of the sound; None where no sound comes
        resting: whether nothing is measured: the meters are empty, and the last levels grey
        """
        height = self.size.height - 3
        if height < 3:
            return
        columns = []
        for ear, one in enumerate(self._ears):
            if level_db is None:
                one.clear()
            elif not resting:
                one.follow(time_s, level_db[ear])
            shares = [
                0.0 if resting else float(np.clip((v - LOWEST_DB) / (HIGHEST_DB - LOWEST_DB), 0, 1))
                for v in (one.level, one.held)
            ]
            columns.append(meter(shares[0], shares[1], height))
        texts = ["--" if level_db is None else _level_text(one.level) for one in self._ears]
        drawn = columns, texts, clipped, uncalibrated, resting
        if drawn == self._drawn and self._lines:
            return
        self._drawn, scale = drawn, _scale(height)
        lines: list[Line] = [[(" L       R ", "second")]]
        for y in range(height):
            left, right = (
                _meter_piece(*column[y], ear, y == height - 1, uncalibrated)
                for ear, column in zip(SIDES, columns, strict=True)
            )
            lines.append([left, (f"{scale.get(y, ''):^5}", "second"), right])
        numbers = "     ".join(f"{text:^3}" for text in texts)
        lines.append([(f"{numbers:^11}", "second" if resting else "ink")])
        unit = "CLIP" if clipped else f"dB, {UNCAL}" if uncalibrated else "dB SPL"
        lines.append([(f"{unit:^11}", "ink reverse bold" if clipped else "second")])
        self.show(lines)


def _meter_piece(text: str, held: bool, ear: str, lowest: bool, hatched: bool) -> Piece:
    """A line of a meter, three characters wide; dots mark the lower end of an empty one."""
    if hatched and text == "█":
        text = HATCH
    return ("···" if lowest else "   ") if text == " " else text * 3, "ink" if held else ear


def _level_text(level_db: float) -> str:
    return f"<{LOWEST_DB:.0f}" if level_db < LOWEST_DB else f"{level_db:.0f}"


def _scale(height: int) -> dict[int, str]:
    """The labels of a meter by line."""
    step = 20 if height >= 11 else 40
    found = {}
    for level in range(int(LOWEST_DB), int(HIGHEST_DB) + 1, step):
        share = (level - LOWEST_DB) / (HIGHEST_DB - LOWEST_DB)
        found[min(height - 1, max(0, height - 1 - int(share * height)))] = str(level)
    return found


class HistoryPicture(Picture):
    """Two readings over time, in braille, and their limits; where no sound was, it is hatched."""

    span = 0
    """Which of SPANS_S is drawn."""

    _drawn: tuple[Any, ...] = ()

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._below: list[Line] = []  # than the legend

    def next_span(self) -> None:
        self.span = (self.span + 1) % len(SPANS_S)

    def on_click(self) -> None:
        self.next_span()

    def draw(
        self,
        history: ReadingHistory,
        names: Sequence[str],
        values: Any,
        lost_s: float,
        limits: Sequence[Limit] = (),
    ) -> None:
        width, height = self.size.width, self.size.height - 2
        if height < 2 or width < 20 or not names:
            self.show([])
            return
        title, span_s = [*SPANS_S.items()][self.span]
        room = width - 5
        end_s = history.now_s + lost_s
        step_s = span_s / (2 * room)
        level = history.level_for(max(0.0, end_s - span_s), end_s, 2 * room)
        each_s = history.step_s * 4**level
        # Columns keep their place in time, so that the picture moves by whole columns.
        moved = max(1, math.ceil(MOVE_S / step_s))
        last = int(end_s / step_s / moved) * moved
        drawn = last, room, height, names
        head = self._legend(title, names, values)
        if drawn == self._drawn and self._lines:
            self.show([head, *self._below])
            return
        self._drawn = drawn
        times = (np.arange(last - 2 * room + 1, last + 1) + 0.5) * step_s
        first = max(0, int(times[0] / each_s))
        found = history.cells(names, level, first, int(end_s / each_s) + 2)
        at = np.clip((times / each_s).astype(int) - first, 0, found.marks.size - 1)
        past = (times >= 0) & (times <= end_s)
        high = np.where(past & (times <= history.now_s + each_s), found.high[:, at], np.nan)
        missing = past & ((found.marks[at] & CAME == 0) | (times > history.now_s + each_s))
        # Rows come without values while samples are lost, or a model is switched off.
        missing |= past & (found.marks[at] & UNMEASURED > 0) & np.isnan(high).all(axis=0)
        gaps = missing.reshape(-1, 2).all(axis=1)
        unit = caption_of(names[0]).unit
        floor = LOWEST_DB if unit in ("phon", "dB") else None
        known = np.array([*high[np.isfinite(high)], *(one.threshold for one in limits)])
        ends = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
        low, top = nice_range(*ends, floor)
        roles = ("ltl", "stl")
        picture = braille([trace(row, low, top, height) for row in high], roles, gaps)
        for limit in limits:
            y = round((top - limit.threshold) / (top - low) * (height - 1))
            picture[y] = with_limit(picture[y], limit.threshold_words)
        labels = _value_labels(low, top, height)
        self._below = [
            [(f"{labels.get(y, ''):>4}", "second"), ("│", "grid"), *line]
            for y, line in enumerate(picture)
        ]
        self._below.append([("    └", "grid"), *_time_axis(history, end_s, span_s, room)])
        self.show([head, *self._below])

    def _legend(self, title: str, names: Sequence[str], values: Mapping[str, Any]) -> Line:
        """The span, and the newest value of each line; the span is shorter where room is short."""
        found = []
        for name in names:
            caption = caption_of(name)
            found.append(f"{caption.symbol or caption.words} {row_text(name, values)}")
        free = self.size.width - sum(len(text) + 5 for text in found)
        whole = f"History, {title}"
        head: Line = [(whole if len(whole) <= free else cut(title, max(0, free)), "second")]
        for text, role, mark in zip(found, ("ltl", "stl"), "━─", strict=False):
            head += [("   ", "second"), (mark, role), (f" {text}", "ink")]
        unit = f" {caption_of(names[0]).unit}"
        if sum(len(text) for text, _ in head) + len(unit) <= self.size.width:
            head.append((unit, "second"))
        return head


def _value_labels(low: float, top: float, height: int) -> dict[int, str]:
    """Labels by line: of tens, twenties or forties nearly equally far apart, or of both ends."""
    for step in (10.0, 20.0, 40.0, top - low):
        apart = (height - 1) * step / (top - low)
        if apart >= 2.5 or apart == 2:
            break
    return {
        round((top - value) / (top - low) * (height - 1)): f"{value:.0f}"
        for value in np.arange(low, top + 1, step)
    }


def _time_axis(history: ReadingHistory, end_s: float, span_s: float, room: int) -> Line:
    """The clock at the left and the right end, and elapsed time where no clock is known."""
    texts = []
    for at in (end_s - span_s, end_s):
        utc = history.utc(min(at, history.now_s)) if at >= 0 else np.datetime64("NaT")
        if np.isnat(utc):
            texts.append("" if at < 0 else f"{at:.0f} s")
        else:
            moment = datetime.fromtimestamp(float(unix_s(utc)) + max(0.0, at - history.now_s))
            texts.append(f"{moment:%H:%M:%S}")
    start, end = texts
    start = start or f"{span_s:.0f} s ago"
    middle = room - len(start) - len(end)
    return [(start, "second"), (" " * max(1, middle), "second"), (end, "second")]


class SpecificPane(Picture):
    """Specific loudness of both ears beside each other, as bars over frequency."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._top = LevelBallistics(SHRINK_S)

    def draw(self, specific: np.ndarray | None, lost: bool, stopped: bool = False) -> None:
        """Draw the newest frame; none of a lost microphone, and the last one grey when stopped."""
        width, height = self.size.width, self.size.height - 2
        if specific is None or height < 1 or width < 30:
            self.show([])
            return
        room = (width - 3) // 2
        newest = np.nan_to_num(specific[:, -1])
        firsts, axis = _columns_of(newest.shape[-1], room)
        loud = np.maximum.reduceat(newest, firsts, axis=1)
        self._top.follow(time.monotonic(), float(loud.max()))
        top = _nice_top(max(0.1, self._top.held))
        shares = np.zeros_like(loud) if lost else loud / top
        pictures = [bars(ear, height) for ear in shares]
        scale = f"left, to {top:g} sone/Cam"
        heads = f"Specific loudness, {scale}", f"Specific, {scale}", f"Left, to {top:g}"
        head = next((one for one in heads if len(one) <= room), heads[-1])
        wide = len(firsts)
        lines: list[Line] = [[(f"{head:<{wide}}   ", "second"), ("Right", "second")]]
        for y in range(height):
            left, right = (picture[y] for picture in pictures)
            inks = ("second", "second") if stopped else ("left", "right")
            lines.append([(left, inks[0]), (" │ ", "grid"), (right, inks[1])])
        lines.append([(f"{axis:<{wide}}   {axis}", "second")])
        self.show(lines)


@cache
def _columns_of(bands: int, room: int) -> tuple[list[int], str]:
    """The first band of each column of an image, and the line of frequencies below it."""
    columns = shared_columns(bands, room)
    erb = np.asarray(axis_of("erb_number", bands).values)
    centers = erb_number_to_hz(np.array([erb[one].mean() for one in columns]))
    axis = tick_line(centers, TICKS_HZ)
    return [int(one[0]) for one in columns], f"{axis} Hz" if len(axis) + 3 <= len(columns) else axis


def _nice_top(value: float) -> float:
    for power in range(-2, 3):
        for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8):
            if value <= step * 10.0**power:
                return float(f"{step * 10.0**power:.3g}")
    return value


class ModulationPane(Picture):
    """The modulation spectrum of both ears: modulation bands over auditory bands, in shades."""

    def draw(self, spectrum: Spectrum | None) -> None:
        width, height = self.size
        if spectrum is None or height < 4:
            self.show([])
            return
        room = max(8, (width - 15) // 2)
        columns = shared_columns(len(spectrum.fc), room)
        found = spectrum.strongest
        level = below_db(spectrum.rms, found.rms if found else 0.0)
        # (ear, column, modulation): the strongest of the bands that share a column.
        level = np.stack([level[:, bands].max(axis=1) for bands in columns], axis=1)
        count = len(spectrum.mfc)
        tall = min(4, max(1, (height - 5) // count))
        titles = "   ".join(f"{cut(f'{ear} ear', room):<{len(columns)}}" for ear in SIDES)
        lines: list[Line] = [
            [(cut(f"Modulation spectrum, {spectrum.model}", width), "second")],
            [(f"{'':11}{titles}", "second")],
        ]
        for m in reversed(range(count)):
            center = float(spectrum.mfc[m])
            strong = found is not None and m == found.modulation
            label = f"{hz_text(center) + ' Hz' if center else 'mean':>9} "
            for k in range(tall):
                line: Line = [(" " * 10 if k else label, "ink bold" if strong else "second")]
                for ear, role in zip(level, ("left", "right"), strict=True):
                    picture = "".join(map(shade, ear[:, m].tolist()))
                    line += [("│", "grid"), (picture, role), ("│ ", "grid")]
                lines.append(line)
        axis = tick_line([spectrum.fc[bands].mean() for bands in columns], TICKS_HZ)
        text = f"{'':11}{axis:<{len(columns)}}   {axis}"
        if len(text) + 3 <= width:
            text += " Hz"
        lines.append([(text, "second")])
        words = f"strongest: {found or 'none, silence'}"
        lines.append([(cut(words, width), "ink bold")])
        legend = ", ".join(f"{mark} to {-down:.0f}" for mark, down in SHADES.items())
        lines.append([(cut(f"{legend} dB below it", width), "second")])
        self.show(lines[:height])


class TablePane(Picture):
    """The other readings, each with its words; as many columns as fit."""

    first = 0
    """The line at the top, which the wheel and the arrow keys move."""

    most = 1
    """Lines at most."""

    def draw(
        self,
        groups: Mapping[str, Sequence[Cell]],
        view: ViewState,
        lost: bool,
    ) -> None:
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
        for width in (self.size.width, self.size.width - len(MORE) - 3):
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
