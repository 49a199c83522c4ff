"""The meter in a terminal: a screen drawn in place, or a line a second where it is no terminal."""

import contextlib
import math
import os
import select
import shutil
import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

import numpy as np

from amt_stream.calibration import in_words
from amt_stream.outputs.words import HIGHEST_PHON, fault_words, phon_text
from amt_stream.scales import sone_to_phon

if TYPE_CHECKING:
    from amt_stream.engine.health import Health
    from amt_stream.engine.runner import Engine

DRAW_S = 0.1
LINE_S = 1.0
FAULTS_S = 1.0
# After a reset, rows of before are still on their way for a block or two.
RESET_S = 0.25
LEVELS_DB = (20.0, 130.0)
LABEL = 9

BOLD, ALARM, PLAIN = "\x1b[1m", "\x1b[1;7m", "\x1b[0m"
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@dataclass(frozen=True)
class Reading:
    """What is on the screen: loudness in sone, levels in dB SPL, and how far to trust them."""

    time_s: float
    stl: float
    ltl: float
    max_ltl: float
    level_db: tuple[float, float]
    calibration: str
    calibrated: bool
    settling: bool
    faults: str
    source: str
    health: "Health"


def line(reading: Reading) -> str:
    """A reading in one line of plain text."""
    left, right = reading.level_db
    warnings = warning_words(reading)
    return (
        f"{reading.time_s:8.1f} s  LTL {reading.ltl:8.3f} sone {phon_text(reading.ltl):>6} phon  "
        f"STL {reading.stl:8.3f} sone {phon_text(reading.stl):>6} phon  "
        f"max LTL {reading.max_ltl:8.3f} sone {phon_text(reading.max_ltl):>6} phon  "
        f"in {left:6.1f} {right:6.1f} dB SPL" + "".join(f"  {word}" for word in warnings)
    )


def warning_words(reading: Reading) -> list[str]:
    """What a reader must know before believing the numbers."""
    words = [] if reading.calibrated else ["uncalibrated"]
    if reading.settling:
        words.append("settling")
    if reading.faults:
        words.append(f"faults: {reading.faults}")
    return words


def screen(reading: Reading, width: int, block: str = "█") -> list[str]:
    """A reading as lines for a terminal `width` characters wide."""
    health = reading.health

    def loudness(name: str, sone: float) -> str:
        numbers = f"{sone:9.3f} sone  {phon_text(sone):>6} phon"
        bar = _bar(sone_to_phon(sone) / HIGHEST_PHON, width - LABEL - len(numbers) - 2, block)
        return f"{BOLD}{name:<{LABEL}}{numbers}{PLAIN}  {bar}"

    def level(name: str, db: float) -> str:
        low, high = LEVELS_DB
        number = f"{db:9.1f} dB SPL"
        bar = _bar((db - low) / (high - low), width - LABEL - len(number) - 2, block)
        return f"{name:<{LABEL}}{number}  {bar}"

    share = 100.0 * health.block_share_p99
    status = [
        f"{health.device_state}, load {100.0 * health.load:.0f} %, block p99 {share:.0f} %, "
        f"latency {1000.0 * health.latency_s:.0f} ms",
        f"overruns {health.overruns}, lost {health.lost_samples} samples, "
        f"faults {reading.faults or 'none'}",
        reading.calibration,
        *([health.note] if health.note else []),
        "space freeze, r reset, q quit",
    ]
    warnings = "".join(f" {ALARM} {word} {PLAIN}" for word in warning_words(reading))
    return [
        f"{_cut(reading.source, max(8, width - 40))}  {reading.time_s:.1f} s {warnings}",
        "",
        loudness("LTL", reading.ltl),
        loudness("STL", reading.stl),
        loudness("max LTL", reading.max_ltl),
        "",
        level("in left", reading.level_db[0]),
        level("in right", reading.level_db[1]),
        "",
        *(_cut(text, width) for text in status),
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "~"


def _bar(share: float, width: int, block: str) -> str:
    return block * round(max(0, width) * min(1.0, max(0.0, share)))


class TerminalMeter:
    """Shows what an engine measures until it ends; takes the keys q, space and r.

    As a context manager it leaves the terminal as it was, whatever happens.
    """

    def __init__(self, engine: "Engine", stream: TextIO) -> None:
        self._engine, self._stream = engine, stream
        self._drawn = stream.isatty()
        self._keys = _Keys()
        self._seen = 0
        self._max_ltl = 0.0
        self._max_from_s = -math.inf
        self._frozen = False
        self._printed_s = -math.inf
        self._end_s = math.inf
        unicode = (stream.encoding or "").lower().startswith("utf")
        self._block = "█" if unicode else "#"

    def __enter__(self) -> Self:
        if self._drawn:
            if os.name == "nt":
                os.system("")  # switches the console to ANSI sequences
            self._keys.take()
            self._stream.write(ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._keys.give_back()
            self._stream.write(LEAVE)
            self._stream.flush()

    def run(self, duration: float | None = None) -> None:
        """Show readings for `duration` seconds of sound, or until the sound or the user ends."""
        end = math.inf if duration is None else duration
        self._end_s = end
        next_line_s = LINE_S
        while not self._engine.wait(0.0) and self._engine.error is None:
            reading = self.reading()
            if reading is not None:
                if self._drawn:
                    self._draw(reading)
                elif reading.time_s >= next_line_s:
                    self._print(reading)
                    next_line_s = math.floor(reading.time_s / LINE_S) * LINE_S + LINE_S
            if self._reached(end):
                return
            if not self._wait_for_key():
                return

    def _reached(self, end: float) -> bool:
        latest = self._engine.history.latest
        return latest is not None and float(latest.time_s[-1]) >= end

    def print_last(self) -> None:
        """The last reading as a line, so that it stays when the screen is gone."""
        reading = self.reading()
        if reading is not None and reading.time_s > self._printed_s:
            self._print(reading)

    def reading(self) -> Reading | None:
        """The latest reading; None before the first frame."""
        history = self._engine.history
        count = history.count
        rows = history.since(self._seen)
        self._seen = count
        counted = rows.ltl[(rows.time_s > self._max_from_s) & (rows.time_s <= self._end_s)]
        self._max_ltl = max(self._max_ltl, float(counted.max(initial=0.0)))
        latest, kept = history.latest, history.read()
        stop = np.searchsorted(kept.time_s, self._end_s, side="right")
        if latest is None or stop == 0:
            return None
        last = kept[stop - 1]
        first = np.searchsorted(kept.time_s, last.time_s - FAULTS_S, side="right")
        faults = int(np.bitwise_or.reduce(kept.fault[first:stop]))
        left, right = latest.level_db[:, -1].tolist()
        return Reading(
            time_s=float(last.time_s),
            stl=float(last.stl),
            ltl=float(last.ltl),
            max_ltl=self._max_ltl,
            level_db=(left, right),
            calibration=in_words(self._engine.calibration),
            calibrated=latest.calibrated,
            settling=bool(last.settling),
            faults=" ".join(fault_words(faults)),
            source=f"{self._engine.source.name}, {self._engine.source.fs} Hz",
            health=self._engine.health,
        )

    def reset(self) -> None:
        """The model back to silence, the maximum forgotten."""
        self._engine.reset()
        latest = self._engine.history.latest
        self._max_ltl = 0.0
        if latest is not None:
            self._max_from_s = float(latest.time_s[-1]) + RESET_S

    def _wait_for_key(self) -> bool:
        """Take one turn; False when the user quits."""
        key = self._keys.wait(DRAW_S)
        if key == " ":
            self._frozen = not self._frozen
        elif key == "r":
            self.reset()
        return key not in ("q", "Q")

    def _draw(self, reading: Reading) -> None:
        if self._frozen:
            return
        size = shutil.get_terminal_size()
        lines = screen(reading, size.columns, self._block)[: size.lines - 1]
        text = "".join(f"{line}{CLEAR_LINE}\r\n" for line in lines)
        self._stream.write(HOME + text + CLEAR_BELOW)
        self._stream.flush()

    def _print(self, reading: Reading) -> None:
        self._printed_s = reading.time_s
        self._stream.write(line(reading) + "\n")
        self._stream.flush()


class _Keys:
    """Single keys from a POSIX terminal; elsewhere there are none, and waiting is all it does."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def take(self) -> None:
        with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
            import termios
            import tty

            if os.isatty(sys.stdin.fileno()):
                self._before = termios.tcgetattr(sys.stdin)
                tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def give_back(self) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The key pressed within that time, or ""."""
        if self._before is None:
            time.sleep(seconds)
            return ""
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        return os.read(sys.stdin.fileno(), 1).decode(errors="replace")
