"""The meter on standard output: a screen in a terminal, otherwise a line per second."""

import contextlib
import math
import os
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TextIO, TypeVar

import numpy as np

from amt_stream.cli.ending import ending
from amt_stream.cli.keys import BY_KEY, ESCAPE, WHEN_STOPPED, Keys, keys_line, keys_screen
from amt_stream.cli.messages import say
from amt_stream.cli.output import draws
from amt_stream.cli.watch import SILENT, Watch
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import plain
from amt_stream.engine.run_state import EngineEnded
from amt_stream.meters.calibration import calibration_words
from amt_stream.meters.rows.words import fault_words
from amt_stream.sessions import SessionLog
from amt_stream.sessions.events import keeper_in

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.engine.health import Health
    from amt_stream.meters.frames import Frames

DRAW_S = 0.1
LINE_S = 1.0
FAULTS_S = 1.0

BOLD, ALARM, PLAIN = "\x1b[1m", "\x1b[1;7m", "\x1b[0m"
# The terminal cuts long lines itself, as it knows the widths of its characters.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Time, source, input level in dB SPL and reliability of a reading.

    counted_s: seconds of sound that the statistics cover, if known
    messages: results of the user's keys
    states: words such as "paused"
    """

    time_s: float
    level_db: tuple[float, float]
    calibration: str
    calibrated: bool
    settling: bool
    faults: str
    source: str
    health: "Health"
    counted_s: float | None = None
    messages: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def warning_words(reading: Condition) -> list[str]:
    """Warnings about a reading."""
    words = [*reading.states, *([] if reading.calibrated else ["uncalibrated"])]
    if reading.health.device_state in SILENT:
        words.append(f"device {reading.health.device_state}")
    if reading.settling:
        words.append("settling")
    if reading.faults:
        words.append(f"faults: {reading.faults}")
    return words


def level_words(reading: Condition) -> str:
    """The end of every line: the input level of both ears, and the warnings."""
    left, right = reading.level_db
    warnings = "".join(f"  {word}" for word in warning_words(reading))
    return f"in {left:6.1f} {right:6.1f} dB SPL{warnings}"


def heading(reading: Condition, width: int) -> str:
    """The first line of a screen: the source, the time, and the warnings."""
    warnings = "".join(f" {ALARM} {word} {PLAIN}" for word in warning_words(reading))
    counted = "" if reading.counted_s is None else f", {reading.counted_s:.1f} s counted"
    name = truncated(reading.source, max(8, width - 40))
    return f"{name}  {reading.time_s:.1f} s{counted} {warnings}"


def status(reading: Condition, width: int) -> list[str]:
    """The last lines of a screen: the state of the engine, the calibration, the keys."""
    health = reading.health
    share = 100.0 * health.block_share_p99
    lines = [
        f"{health.device_state}, load {100.0 * health.load:.0f} %, block p99 {share:.0f} %, "
        f"latency {1000.0 * health.latency_s:.0f} ms",
        f"overruns {health.overruns}, lost {health.lost_samples} samples, "
        f"faults {reading.faults or 'none'}",
        reading.calibration,
        *([plain(health.note)] if health.note else []),
        *map(plain, reading.messages),
        keys_line(width),
    ]
    return [truncated(text, width) for text in lines]


def truncated(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "~"


def shortened(lines: list[str], width: int, height: int) -> list[str]:
    """At most `height` lines of a screen, with the last line, the keys."""
    if len(lines) <= height or height < 3:
        return lines[:height]
    hidden = truncated(f"... {len(lines) - height + 1} more lines: make the window higher", width)
    return [*lines[: height - 2], hidden, lines[-1]]


def fitted(line: str, width: int) -> str:
    """At most `width` characters of a line, not counting escape sequences of style."""
    parts, left = [], width
    for part in _LOOK.split(line):
        shown = part if _LOOK.match(part) else part[:left]
        left -= 0 if _LOOK.match(part) else len(shown)
        parts.append(shown)
    return "".join(parts)


_LOOK = re.compile(r"(\x1b\[[0-9;]*m)")

Shown = TypeVar("Shown", bound=Condition)


class TerminalMeter(Generic[Shown]):
    """Shows what an engine measures, and handles the keys of `amt_stream.cli.keys`.

    A subclass defines the readings and their display. As a context manager it restores the
    terminal.
    """

    def __init__(self, engine: "Engine", stream: TextIO) -> None:
        self._engine, self._stream = engine, stream
        self._drawn = draws(stream)
        self._keys = Keys()
        self._undo = contextlib.ExitStack()
        self._paused = self._stopped = self._quit = self._listed = False
        self._frozen: Shown | None = None
        self._note: str | None = None
        self._unnamed = ""
        self._marks = 0
        self._marked: Frames | None = None
        self._keeper = keeper_in(engine.sinks)
        self._message = ""
        self.make_log: Callable[[], SessionLog] | None = None
        """Makes a log for the key `l`; without it the key does nothing."""
        self._printed_s = -math.inf
        self._end_s = math.inf
        self.watch: Watch | None = None
        """Reports events on standard error while lines are printed."""
        self._unicode = (stream.encoding or "").lower().startswith("utf")

    def read(self, row: np.record, condition: JsonDict) -> Shown | None:
        """Make the reading of a row of the engine's history, with the fields of `Condition`."""
        raise NotImplementedError

    def line(self, reading: Shown) -> str:
        """A reading in one line of plain text."""
        raise NotImplementedError

    def screen(self, reading: Shown, width: int, height: int) -> list[str]:
        """A reading as lines for a terminal of `width` characters and `height` lines."""
        raise NotImplementedError

    def reset_readings(self) -> None:
        """Restart the statistics."""
        self._engine.reset_readings()

    def undo_reset(self) -> None:
        """Undo the last reset of readings."""
        try:
            self._engine.undo_reset()
        except ValueError as error:
            self._message = str(error)
        else:
            self.restore_readings()
            self._message = "the reset of readings was undone"

    def restore_readings(self) -> None:
        """Restore statistics that are counted here and not by a sink."""

    def reset_filters(self) -> None:
        """Restart the models from silence."""
        self._engine.reset_filters()

    def pause(self) -> None:
        """Pause or continue."""
        (self._engine.unpause if self._paused else self._engine.pause)()
        self._paused = not self._paused

    def stop(self) -> None:
        """Close the input; the last screen stays until the user quits."""
        self._stopped = True
        self._engine.stop()

    def freeze(self) -> None:
        """Freeze or unfreeze the screen; the measurement continues."""
        self._frozen = self.reading() if self._frozen is None else None

    def mark(self) -> None:
        """Remember this moment and ask for a note; keys go to the note until it is entered."""
        self._marked = self._engine.history.latest
        reported = sum(event.kind == "mark" for event in self._engine.events)
        self._note, self._unnamed = "", f"mark {max(reported, self._marks) + 1}"

    def log(self) -> None:
        """Start or stop logging."""
        log = next((sink for sink in self._engine.sinks if isinstance(sink, SessionLog)), None)
        if log is not None:
            self._engine.detach(log)
            self._message = f"no longer logged in {log.path}"
        elif self.make_log is not None:
            try:
                log = self.make_log()
            except (Refusal, OSError) as error:
                self._message = str(error)
            else:
                self._engine.attach(log, log.table.rows.begin)
                self._message = f"logged in {log.path}"

    def keys(self) -> None:
        """Show or hide the list of keys."""
        self._listed = not self._listed

    def quit(self) -> None:
        self._quit = True

    def __enter__(self) -> Self:
        if self._drawn:
            if os.name == "nt":
                os.system("")  # switches the console to ANSI sequences
            self._keys.take()
            self._undo.enter_context(ending.undoing(self._leave))
            self._stream.write(ENTER)
        return self

    def _leave(self) -> None:
        """Restore the terminal, which may be closed."""
        self._keys.give_back()
        with contextlib.suppress(OSError):
            self._stream.write(LEAVE)
            self._stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._undo.close()
            self._leave()
            if self._note is not None:
                self._handle("\r")  # store the unfinished note; the engine may have ended
                say(self._message)

    def run(self, duration: float | None = None) -> None:
        """Show readings until `duration` seconds of sound, its end, or the user quits."""
        end = math.inf if duration is None else duration
        self._end_s = end
        next_line_s = LINE_S
        watch = self.watch = Watch(self._engine)
        while not (ending.asked or self._quit or self._has_ended):
            reading = self.reading()
            if reading is not None:
                if self._drawn:
                    self._draw(reading)
                elif reading.time_s >= next_line_s:
                    self._print(reading)
                    next_line_s = math.floor(reading.time_s / LINE_S) * LINE_S + LINE_S
            if not self._drawn:
                watch.look()
            if self._reached(end) or watch.is_overdue(duration):
                return
            for key in self._keys.wait(DRAW_S):
                self._handle(key)

    @property
    def _has_ended(self) -> bool:
        """Whether the engine has ended, other than by the user's stop."""
        engine = self._engine
        return engine.error is not None or (engine.wait(0.0) and not self._stopped)

    def _reached(self, end: float) -> bool:
        latest = self._engine.history.latest
        return latest is not None and float(latest.time_s[-1]) >= end

    def print_last(self) -> None:
        """Print the last reading as a line, which stays after the screen is closed."""
        reading = self.reading()
        if reading is not None and reading.time_s > self._printed_s:
            self._print(reading)

    def reading(self) -> Shown | None:
        """The latest reading until the end; None before the first frame."""
        latest, rows = self._engine.history.latest, self._engine.history.read()
        stop = np.searchsorted(rows.time_s, self._end_s, side="right")
        if latest is None or stop == 0:
            return None
        last = rows[stop - 1]
        first = np.searchsorted(rows.time_s, last.time_s - FAULTS_S, side="right")
        faults = int(np.bitwise_or.reduce(rows.fault[first:stop]))
        left, right = latest.level_db[:2, -1].tolist()
        condition = {
            "time_s": float(last.time_s),
            "level_db": (left, right),
            "calibration": plain(calibration_words(self._engine.calibration)),
            "calibrated": latest.calibrated,
            "settling": bool(last.settling),
            "faults": " ".join(fault_words(faults)),
            "source": plain(f"{self._engine.source.name}, {self._engine.source.fs} Hz"),
            "health": self._engine.health,
            "messages": self._messages(),
            "states": self._states(),
        }
        return self.read(last, condition)

    def _messages(self) -> tuple[str, ...]:
        sound = () if self._keeper is None else (f"{self._keeper.words}: i writes a file",)
        return (*sound, *((self._message,) if self._message else ()))

    def _states(self) -> tuple[str, ...]:
        states = {"stopped": self._stopped, "paused": self._paused and not self._stopped}
        return tuple(word for word, so in states.items() if so)

    def _handle(self, key: str) -> None:
        """Handle a typed character: part of a note, or a key."""
        try:
            if self._note is not None:
                self._write_note(key, self._note)
                return
            name = BY_KEY.get(key, BY_KEY.get(key.lower()))
            if name is not None and (not self._stopped or name in WHEN_STOPPED):
                getattr(self, name)()
        except EngineEnded as error:
            self._note, self._message = None, str(error)

    def _write_note(self, key: str, note: str) -> None:
        if key in "\r\n":
            text = note or self._unnamed
            if self._marked is None:
                self._engine.mark(text)
            else:
                self._engine.tell_event(self._marked.moment("mark", text))
            self._marks += 1  # the event is reported a moment later
            self._message = f"marked: {text}"
        if key in ("\r", "\n", ESCAPE):
            self._note = None
        elif key in "\b\x7f":
            self._note = note[:-1]
        elif key.isprintable():
            self._note = note + key

    def replay(self) -> None:
        """Write the last sound to a file, in a thread as the disk may be slow."""
        keeper = self._keeper
        if keeper is None:
            self._message = "no sound is held in memory: start with --event-folder"
            return

        def write() -> None:
            try:
                self._message = f"written: {keeper.replay().name}"
            except Refusal as refusal:
                self._message = str(refusal)

        threading.Thread(target=write, name="replay", daemon=True).start()

    def _draw(self, reading: Shown) -> None:
        size = shutil.get_terminal_size()
        if self._frozen is not None:
            states = ("frozen", *reading.states)
            reading = replace(self._frozen, messages=reading.messages, states=states)
        lines = self.screen(reading, size.columns, size.lines - 1)
        if self._listed:
            lines = keys_screen()
        if self._note is not None:
            text = plain(self._note) or f"{self._unnamed}, or type a note: "
            note = f"{BOLD}note{PLAIN} {text}_   (enter stores it, escape discards it)"
            lines = [*lines[: size.lines - 2], note]
        lines = shortened(lines, size.columns, size.lines - 1)
        text = "".join(f"{fitted(line, size.columns)}{CLEAR_LINE}\r\n" for line in lines)
        self._stream.write(HOME + text + CLEAR_BELOW)
        self._stream.flush()

    def _print(self, reading: Shown) -> None:
        self._printed_s = reading.time_s
        self._stream.write(self.line(reading) + "\n")
        self._stream.flush()
