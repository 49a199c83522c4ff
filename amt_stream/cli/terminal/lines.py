"""The meter as lines of plain text, one each second."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, TextIO

from amt_stream.cli.ending import ending
from amt_stream.cli.terminal.cells import cell_lines
from amt_stream.cli.terminal.meter import Spectrum, TerminalMeter
from amt_stream.cli.watch import SILENT, Watch
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import NO_READING, band_texts, fault_words, phon_text
from amt_stream.meters.rows.captions import row_text, sign_in
from amt_stream.meters.rows.limit_words import state_words, value_words
from amt_stream.meters.rows.words import with_sign
from amt_stream.meters.state_signs import AWAY
from amt_stream.views.view_state import ViewState

TURN_S = 0.1
LINE_S = 1.0
LOUDNESS = (("LTL", "ltl"), ("STL", "stl"), ("max LTL", "max_ltl"))


class LinePrinter:
    """Writes the readings of a meter as lines.

    While `writing` is true, the stream may hang.
    """

    def __init__(self, meter: TerminalMeter, stream: TextIO) -> None:
        self.meter, self.stream, self.watch = meter, stream, Watch(meter.engine)
        self.writing = False
        self._printed_s = -math.inf

    @contextlib.contextmanager
    def written(self) -> Iterator[None]:
        """While the stream is written."""
        self.writing = True
        try:
            yield
        finally:
            self.writing = False

    def run(self, duration: float | None) -> None:
        """Print a line each second until the end of the sound, or a signal."""
        meter, next_s = self.meter, LINE_S
        while not (ending.asked or meter.has_ended):
            self.meter.view()  # sees each frame
            if self._time_s() >= next_s:
                next_s = math.floor(self.print_new() / LINE_S) * LINE_S + LINE_S
            self.watch.look()
            if meter.has_reached_end or self.watch.is_overdue(duration):
                return
            time.sleep(TURN_S)

    def print_new(self) -> float:
        """Print the newest reading unless it has been; returns its time."""
        view, spectrum = self.meter.view(), self.meter.spectrum()
        time_s = self._time_s(spectrum)
        if view is not None and time_s > self._printed_s:
            self._printed_s = time_s
            line = reading_line(self.meter, view, spectrum)
            with self.written():
                self.stream.write(line + "\n")
                self.stream.flush()
        return time_s

    def print_last(self) -> None:
        """Print the last reading, which stays after a screen is closed."""
        if self.meter.readings is not None:
            self.meter.readings.sum_up()
        self.print_new()

    def _time_s(self, spectrum: Spectrum | None = None) -> float:
        readings = self.meter.readings
        if readings is None:
            spectrum = spectrum or self.meter.spectrum()
            return -math.inf if spectrum is None else spectrum.time_s
        return -math.inf if readings.row is None else float(readings.row["time_s"])


LOUDNESS_FIRST = (("moore2016",), ("moore2016", "spl"))
"""Models whose line has loudness in sone and phon, and LAeq if it is measured: without and with a
log, by default."""


def reading_line(meter: TerminalMeter, view: ViewState, spectrum: Spectrum | None) -> str:
    """The readings in one line of plain text."""
    if spectrum is not None:
        found = f"strongest {spectrum.strongest or 'none: silence'}"
        words = [f"{spectrum.time_s:8.1f} s", found, level_words(view)]
    elif view.readings is None:
        words = []
    elif tuple(view.readings.models) in LOUDNESS_FIRST and not view.readings.limits:
        values = loudness_words({**view.values, **meter.highest_band.values})
        level_db = view.values.get("laeq_db")
        values += [] if level_db is None else [f"LAeq {row_text('laeq_db', view.values)} dB"]
        words = [f"{view.values['time_s']:8.1f} s", *values, level_words(view)]
    else:
        groups = {model: view.readings.of(model) for model in view.readings.models}
        limits = [limit_line(limit, meter, view) for limit in view.readings.limits]
        words = [f"{view.values['time_s']:8.1f} s", *cell_lines(groups, view.values), *limits]
    return "  ".join([*words, *warning_words(meter, view)])


def limit_line(limit: Limit, meter: TerminalMeter, view: ViewState) -> str:
    """The state of a limit and its value, as "Over the limit: LAF 80.0 dB, limit 79 dB"."""
    is_away = meter.engine.device_state in AWAY or meter.lost_s > 0
    held = (*meter.states, *([meter.away] if is_away else []))
    state, value = (words(limit, view.values, held) for words in (state_words, value_words))
    return f"{state}: {value}"


def warning_words(meter: TerminalMeter, view: ViewState) -> list[str]:
    """Warnings about a reading."""
    each = [view.reading_status(model) for model in view.frames]
    faults = fault_words(reduce(or_, (status.fault for status in each)))
    state = meter.engine.device_state
    return [
        *meter.states,
        *(["uncalibrated"] if any(status.uncalibrated for status in each) else []),
        *([f"device {state}"] if state in SILENT else []),
        *(["settling"] if any(status.settling for status in each) else []),
        *([f"faults: {' '.join(faults)}"] if faults else []),
    ]


def level_words(view: ViewState) -> str:
    """The input level of both ears."""
    left, right = view.levels_of_ears(view.newest)[:, -1].tolist()
    return f"in {left:6.1f} {right:6.1f} dB SPL"


def loudness_words(values: Mapping[str, Any]) -> list[str]:
    """Long-term, short-term and maximum loudness in sone and phon, with their bands if known."""
    words = []
    for label, name in LOUDNESS:
        sone = values.get(f"{name}_sone")
        if sone is None:  # as while its model is switched off
            words.append(f"{label} {NO_READING:>8} sone {NO_READING:>6} phon")
            continue
        low, high = (values.get(f"{name}_{edge}_sone") for edge in ("low", "high"))
        texts = ("", "") if low is None or high is None else band_texts(sone, low, high)
        percent, phon = (f" +- {text}" if text else "" for text in texts)
        sign = sign_in(f"{name}_sone", values)
        loudness, level = f"{sign}{sone:.3f}", with_sign(phon_text(sone), sign)
        words.append(f"{label} {loudness:>8} sone{percent} {level:>6}{phon} phon")
    return words
