"""The parts of the screen that draw: levels, history, specific loudness, modulation."""

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np

from amt_stream.cli.terminal.meter import Spectrum
from amt_stream.cli.terminal.picture import UNCAL, Picture
from amt_stream.cli.terminal.pictures import (
    HATCH,
    SHADES,
    Line,
    Piece,
    bars,
    braille,
    cut,
    meter,
    nice_range,
    shade,
    shared_columns,
    tick_line,
    trace,
    with_limit,
)
from amt_stream.dsp.scales import erb_number_to_hz
from amt_stream.meters.frames import UNHEARD
from amt_stream.meters.limits import Limit
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows import below_db, hz_text
from amt_stream.meters.rows.block import unix_s
from amt_stream.meters.rows.captions import caption_of, row_text
from amt_stream.offline.output_track import axis_of
from amt_stream.views.level_ballistics import LevelBallistics
from amt_stream.views.reading_history import CAME, ReadingHistory

SHRINK_S = 5.0
MOVE_S = 0.5
"""Time by which the history moves at least, as all of its lines are sent when it does."""
UNMEASURED = int(UNHEARD)
LOWEST_DB, HIGHEST_DB = 20.0, 130.0
SPANS_S = {"last minute": 60.0, "last 10 minutes": 600.0, "last hour": 3600.0}
TICKS_HZ = (125, 250, 500, 1000, 2000, 4000, 8000)


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
    labels = {}
    for level in range(int(LOWEST_DB), int(HIGHEST_DB) + 1, step):
        share = (level - LOWEST_DB) / (HIGHEST_DB - LOWEST_DB)
        labels[min(height - 1, max(0, height - 1 - int(share * height)))] = str(level)
    return labels


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
        # One below the floor of the scale is not in the picture.
        for limit in (one for one in limits if one.threshold >= low):
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
