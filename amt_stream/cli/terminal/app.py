"""The meter as a screen of Textual's."""

import signal
import time
from dataclasses import replace
from typing import Any, ClassVar, TextIO

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import say
from amt_stream.cli.terminal.cells import first_numbers, number_cells
from amt_stream.cli.terminal.keys import KEYS, keys_that_fit
from amt_stream.cli.terminal.meter import CAN_UNDO, TerminalMeter, is_uncalibrated
from amt_stream.cli.terminal.number_panes import LimitPane, NumberPane, TablePane
from amt_stream.cli.terminal.palette import COLORS, other_theme, theme_of_terminal
from amt_stream.cli.terminal.panes import EarMeters, HistoryPicture, ModulationPane, SpecificPane
from amt_stream.cli.terminal.picture import Picture
from amt_stream.cli.terminal.pictures import Line, cut
from amt_stream.cli.watch import Watch
from amt_stream.core.compiling import compiling
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted, elapsed_text
from amt_stream.meters.calibration import calibration_words
from amt_stream.meters.catalog import DEFAULT
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows import Column
from amt_stream.meters.rows.column import LONG_TERM
from amt_stream.meters.state_signs import SIGNS, away_sentence, rank_states, states_text
from amt_stream.views.log_status import LogStatus
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import ViewState

DRAW_S = 0.1
SLOW = 3
"""Numbers change at every third picture, as nobody reads faster."""
MESSAGE_S = 10.0
NUMBER_ROWS = (50, 14), (34, 9), (0, 6)
"""Least height of the screen, and most lines of its large numbers; the rest is for the others."""


class HelpScreen(ModalScreen[None]):
    """The list of all keys."""

    BINDINGS: ClassVar[list[Any]] = [("escape,question_mark,q,space", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        lines = [f"{one.label:>7}  {one.about}" for one in KEYS]
        lines += ["      H  history: the last minute, 10 minutes, hour"]
        lines += ["      T  light or dark", "     ↑↓  readings that have no room"]
        yield Static("\n".join(["Keys", "", *lines, "", "? closes this list"]), id="help")

    def on_click(self) -> None:
        self.dismiss()


class MeterApp(App[None]):
    """Draws a meter ten times a second, and gives it the keys."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None  # the note has the keys only while it is shown
    CSS = """
    Screen { layout: vertical; overflow: hidden; }
    .line { height: 1; }
    #banner { display: none; }
    #body { height: 1fr; padding: 0 1; }
    #main { width: 1fr; }
    #levels { width: 11; margin-left: 2; }
    #numbers { margin-bottom: 1; }
    #hero { margin-right: 2; }
    #history { height: 2fr; min-height: 6; }
    #specific { height: 1fr; min-height: 4; margin-top: 1; }
    #table { margin-top: 1; }
    #limits { height: auto; max-height: 4; }
    #keys { link-style: none; link-color: $foreground 80%; link-background: $background; }
    #note { height: 1; border: none; padding: 0 1; display: none; }
    HelpScreen { align: center middle; }
    #help { width: auto; height: auto; padding: 1 2; background: $surface; max-width: 100%; }
    .low #numbers { margin-bottom: 0; }
    .tall #body, .high #body { padding: 1 2; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        *(
            Binding(
                {" ": "space", "?": "question_mark"}.get(one.key, one.key),
                {"quit": "leave"}.get(one.name, f"do('{one.name}')"),
                one.word,
            )
            for one in KEYS
            if one.name not in ("mark", "freeze", "keys")
        ),
        # Before any other key, so that what is typed right after it goes to the note.
        Binding("m", "note", "Marker", priority=True),
        Binding("f", "freeze", "Freeze"),
        Binding("question_mark", "help", "Help"),
        Binding("h", "span", "History"),
        Binding("down", "more(1)", "More readings"),
        Binding("up", "more(-1)", "More readings"),
        Binding("t", "light_or_dark", "Colors"),
        Binding("ctrl+c", "interrupt", "Interrupt", priority=True),
    ]

    def __init__(
        self,
        meter: TerminalMeter,
        watch: Watch | None = None,
        duration: float | None = None,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self.meter, self._watch, self._duration = meter, watch, duration
        self.frozen = False
        self._frozen_view: ViewState | None = None
        self._clipped = False
        self.farewell = ""
        """The message to print after the screen closes."""
        self._marked: Frames | None = None
        self._pictures = 0
        self._left = False
        self._message, self._said_at = "", 0.0
        self._log_status = LogStatus()
        readings = meter.readings
        columns = () if readings is None else readings.rows.columns
        self.history = ReadingHistory(columns, 0.1)
        names = {} if readings is None else {m: [*readings.of(m)] for m in readings.models}
        groups = {model: first_numbers(number_cells(found)) for model, found in names.items()}
        first = next(iter(groups.values()), [])
        self._large = first[:2]
        named = {name for cell in self._large for name in cell.names}
        shown = named | {f"max_{name}" for name in named}
        self._table = {
            model: [cell for cell in cells if not shown & set(cell.names)]
            for model, cells in groups.items()
        }
        self._traced = self._main_traces(named)

    def _main_traces(self, named: set[str]) -> list[str]:
        """Two readings of one unit: of the first limit, else of the large numbers first."""
        readings, columns = self.meter.readings, self.history.main_columns
        limits = () if readings is None else readings.limits
        there = [one for one in columns if one.statistic == "instantaneous"] or columns
        there.sort(key=lambda one: (one.name not in named, not _is_long_term(one)))
        limited = [one for limit in limits for one in columns if one.name == limit.column]
        there = [*limited[:1], *there]
        same = dict.fromkeys(one.name for one in there if one.unit == there[0].unit)
        return [*same][:2]

    def compose(self) -> ComposeResult:
        yield Picture(id="header", classes="line")
        yield Picture(id="banner", classes="line")
        with Horizontal(id="body"):
            with Vertical(id="main"):
                if self.meter.readings is None:
                    yield ModulationPane(id="modulation")
                else:
                    with Horizontal(id="numbers"):
                        yield NumberPane(id="hero")
                        yield NumberPane(id="second")
                    yield HistoryPicture(id="history")
                    yield SpecificPane(id="specific")
                    yield TablePane(id="table")
            yield EarMeters(id="levels")
        yield LimitPane(id="limits")
        yield Picture(id="status", classes="line")
        yield Input(id="note", compact=True)
        yield Static(id="keys", classes="line")

    def on_mount(self) -> None:
        for name, colors in COLORS.items():
            self.register_theme(colors.theme(name))
        self.theme = theme_of_terminal(self.console.color_system)
        if self.meter.readings is not None:
            limits = len(self.meter.readings.limits)
            self.query_one("#limits").styles.height = min(4, limits)
            self.query_one("#specific").display = False
            self.query_one("#table").display = any(self._table.values())
        self.set_interval(DRAW_S, self.draw)

    def on_resize(self, event: events.Resize) -> None:
        height = event.size.height
        self.screen.set_class(height < 23, "low")
        self.screen.set_class(34 <= height < 50, "tall")
        self.screen.set_class(height >= 50, "high")
        shown = keys_that_fit(event.size.width - 2)
        words = [
            f"[b]{one.label}[/b] [@click=app.press('{one.name}')]{one.word}[/]" for one in shown
        ]
        self.query_one("#keys", Static).update(" " + "  ".join(words))
        self._pictures = 0

    def draw(self) -> None:
        """Draw what has changed, and end at the end of the sound."""
        if self._left:
            return
        meter = self.meter
        overdue = self._watch is not None and self._watch.is_overdue(self._duration)
        if ending.asked or meter.has_ended or meter.has_reached_end or overdue:
            self.action_leave()
            return
        turn, self._pictures = self._pictures % SLOW, self._pictures + 1
        if turn:
            if not self.frozen:
                self._draw_levels()
            return
        if meter.readings is not None:
            for rows in meter.readings.take():
                self.history.add(rows)
        view, lost_s = meter.view(), meter.lost_s
        self._draw_lines(view, lost_s)
        if self.frozen:
            # Nothing moves, but a key or another size draws what stood there.
            view = self._frozen_view = self._frozen_view or view
            if self._pictures > 1:
                return
        else:
            self._frozen_view = None
        if view is not None:
            self._draw_panes(view, lost_s)

    def _draw_levels(self) -> None:
        """The meters, which alone move at each picture."""
        meter = self.meter
        if (newest := meter.newest) is None:
            return
        heard = newest.heard or newest.newest
        lost, stopped = meter.lost_s > 0, bool(meter.stopped)
        level = None if lost else newest.levels_of_ears(heard).max(axis=1).tolist()
        how = self._clipped, is_uncalibrated(meter.engine), stopped
        self.query_one(EarMeters).draw(heard.end_s, level, *how)

    def _draw_panes(self, view: ViewState, lost_s: float) -> None:
        meter, lost = self.meter, lost_s > 0
        held = {meter.away: lost, "frozen": self.frozen}
        view = replace(view, held=(*meter.states, *(word for word, so in held.items() if so)))
        self._clipped = bool(view.reading_status().fault & int(Fault.CLIP))
        self._draw_levels()
        if meter.readings is None:
            self.query_one(ModulationPane).draw(meter.spectrum())
            return
        values = {**view.values, **meter.highest_band.values}
        large = zip(
            self.query(NumberPane), [*self._large, None, None], ("ltl", "stl"), strict=False
        )
        most, used = next(rows for least, rows in NUMBER_ROWS if self.size.height >= least), 0
        for number, cell, role in large:
            status = view.reading_status() if cell is None else view.number_status(cell.names[0])
            used = max(used, number.draw(cell, values, status, lost, role, most))
        table, pane = self.query_one(TablePane), self.query_one(SpecificPane)
        specific = view.specific_loudness
        numbers = self.query_one("#numbers")
        numbers.styles.height = used
        free = self.query_one("#body").content_size.height - 6
        free -= numbers.outer_size.height + numbers.styles.margin.height
        pane.display = specific is not None and free >= (7 if table.display else 5)
        table.most = max(1, min((self.size.height - 12) // 3, free - 5 * pane.display - 1))
        table.draw(self._table, view, lost)
        if pane.display:
            pane.draw(specific, lost, bool(meter.stopped))
        self.query_one(LimitPane).draw(meter.readings.limits, view)
        picture = self.query_one(HistoryPicture)
        if not (self.frozen and picture.text):
            limits = [one for one in meter.readings.limits if one.column in self._traced]
            picture.draw(self.history, self._traced, view.values, lost_s, limits)

    def _draw_lines(self, view: ViewState | None, lost_s: float) -> None:
        meter, width = self.meter, self.size.width
        engine, health = meter.engine, meter.engine.health
        course = next(iter(meter.states), engine.device_state)
        if view is None:
            states = rank_states(course, frozen=self.frozen)
        else:
            states = view.states(course, self.frozen, health)
        sign = SIGNS[states[0]]
        measured = (
            meter.readings.measured_s
            if meter.readings is not None
            else health.samples / engine.source.fs
        )
        clock = elapsed_text(measured)
        chip = f" {sign.glyph} {states_text(states)} "
        logging = ""
        if (log := meter.log_now) is not None:
            clock_and_size = self._log_status.words(log).split(", ")[:2]
            logging = f" {', '.join(clock_and_size)} "
        taken = len(chip) + len(clock) + 3 + len(logging)
        name = cut(plain(engine.source.name), max(0, width - taken - 1))
        look = f"{sign.color} reverse bold" if sign.filled else f"{sign.color} bold"
        line: Line = [(chip, look), (f" {clock}  ", "ink bold"), (name, "second")]
        line += [(" " * max(0, width - taken - len(name)), "ink"), (logging, "left reverse")]
        self.query_one("#header", Picture).show([line])
        self._draw_banner(health.note, lost_s)
        fs = engine.source.fs / 1000
        words = [
            f"{fs:g} kHz",
            health.load_words,
            f"{counted(health.lost_samples, 'sample')} lost",
            f"latency {1000 * health.latency_s:.0f} ms",
            *([] if meter.keeper is None else [f"{meter.keeper.words}: i writes a file"]),
            calibration_words(engine.calibration),
        ]
        text = words[0]
        for word in words[1:]:
            if len(text) + len(word) + 4 <= width:
                text += f", {plain(word)}"
        self.query_one("#status", Picture).show([[(f" {text}", "second")]])

    def _draw_banner(self, note: str, lost_s: float) -> None:
        meter, now = self.meter, time.monotonic()
        if meter.message:
            self._message, self._said_at, meter.message = meter.message, now, ""
        if now - self._said_at > MESSAGE_S:
            self._message = ""
        role, text = "left", self._message
        if meter.readings is not None and text == CAN_UNDO and not meter.engine.can_undo_reset():
            text = ""
        if not text and (note := note or compiling.note):
            role, text = "ink", note
        if lost_s > 0:
            name = meter.engine.source.name
            role, text = "ink", away_sentence(meter.away, lost_s, name, note)
        banner = self.query_one("#banner", Picture)
        banner.display = bool(text)
        if text:
            width = self.size.width
            banner.show(
                [[(f" {cut(plain(text), width - 2):<{width - 1}}", f"{role} reverse bold")]]
            )

    def action_do(self, name: str) -> None:
        self.meter.act(name)
        self._pictures = 0

    def action_more(self, lines: int) -> None:
        """Show other lines of the table."""
        for table in self.query(TablePane):
            table.move(lines)
        self._pictures = 0

    def action_press(self, name: str) -> None:
        """Do what a key does, as a click on its word."""
        own = {"mark": self.action_note, "freeze": self.action_freeze, "keys": self.action_help}
        own["quit"] = self.action_leave
        own.get(name, lambda: self.action_do(name))()

    def action_leave(self) -> None:
        """End, and store an unfinished note; the engine may have ended."""
        self._left = True
        note = self.screen_stack[0].query_one("#note", Input)
        if note.display:
            note.display = False
            self.meter.mark(note.value or self.meter.next_mark(), self._marked)
            self.farewell = self.meter.message
        self.exit()

    def action_freeze(self) -> None:
        self.frozen = not self.frozen
        self._pictures = 0

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_span(self) -> None:
        for picture in self.query(HistoryPicture):
            picture.next_span()

    def action_light_or_dark(self) -> None:
        self.theme = other_theme(self.theme)
        for picture in self.query(Picture):
            picture.forget()
        self._pictures = 0

    def action_interrupt(self) -> None:
        ending.ask(signal.SIGINT)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key starts this; in a note, M is a letter."""
        return action != "note" or not self.screen_stack[0].query_one("#note").display

    def action_note(self) -> None:
        """Remember this moment and ask for a note; keys go to the note until it is entered."""
        if self.meter.stopped:
            return
        self._marked = self.meter.engine.history.latest
        note = self.query_one("#note", Input)
        note.placeholder = (
            f"{self.meter.next_mark()}, or type a note: Enter stores it, Escape discards it"
        )
        note.value, note.display = "", True
        self.screen.set_focus(note)

    @on(Input.Submitted, "#note")
    def store_note(self, submitted: Input.Submitted) -> None:
        self.meter.mark(submitted.value or self.meter.next_mark(), self._marked)
        self._close_note()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self.query_one("#note", Input).display:
            self._close_note()

    def _close_note(self) -> None:
        note = self.query_one("#note", Input)
        note.display = False
        self.set_focus(None)


def run_app(meter: TerminalMeter, stream: TextIO, watch: Watch, duration: float | None) -> None:
    """Show a meter on the terminal until its end, or until the user quits."""
    from amt_stream.cli.terminal.driver import driver_class

    app = MeterApp(meter, watch, duration, driver_class=driver_class(stream))
    app.run()
    if app.return_code:
        raise SystemExit(app.return_code)  # the screen has failed, and shown why
    if app.farewell:
        say(app.farewell)


def _is_long_term(column: Column) -> bool:
    """Whether it is long-term loudness of Moore2016, or a percentile of it."""
    return column.model == DEFAULT and column.of in LONG_TERM and column.kind != "max"
