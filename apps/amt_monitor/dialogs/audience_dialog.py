"""The dialog for the correction from the microphone to the audience, typed or measured once."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.message_bar import begun
from amt_monitor.base.widgets import Button, DialogButtons, plain_label, push_button, set_up_spin
from amt_stream.dsp.scales import P0
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.audience import MOST_DB, Audience, AudienceError
from amt_stream.meters.calibration import utc_now
from amt_stream.meters.frames import Fault

if TYPE_CHECKING:
    from amt_stream.engine import Engine

MEASURE_S = 15.0
"""Seconds of sound for which a place is measured."""

LOOK_MS = 200
MODEL = "spl"
PLACES = "At the &microphone's place", "In the a&udience"
FAULTY = int(Fault.GAP | Fault.NON_FINITE | Fault.CLIP | Fault.OFF)

ABOUT = (
    "Play a steady sound, such as pink noise over the whole system, and measure it with the "
    "microphone at its place and then in the audience; or type how much louder it is there. Limits "
    "of levels are then of the audience. A new measurement begins."
)
NO_LEVELS = "To measure it here, sound levels have to run: choose the venue view (V) first."
ENDED = "no measurement is running: start it, and measure this place again"
SPOILED = "sound was missing or clipped: measure this place again"
UNMEASURED = "not measured"


class PlaceLevels:
    """LAeq and LCeq of the sound from now on, the higher of two channels.

    levels_db: both, once `seconds` were measured
    """

    def __init__(self, engine: "Engine", seconds: float) -> None:
        self._engine, self._seconds = engine, seconds
        before = engine.recent(MODEL)
        self._after_s = before[-1].end_s if before else -math.inf
        self._squares: np.ndarray | None = None
        self._count = 0
        self.is_spoiled = False

    @property
    def heard_s(self) -> float:
        return self._count * FRAME_S

    @property
    def levels_db(self) -> tuple[float, float] | None:
        if self._squares is None or self.heard_s < self._seconds:
            return None
        with np.errstate(divide="ignore"):
            of_channels = 10 * np.log10(self._squares / self._count / P0**2)
        a_db, c_db = of_channels.max(axis=0)[:2].tolist()
        return a_db, c_db

    def look(self) -> None:
        """Take the frames since the last look."""
        for frames in self._engine.recent(MODEL, self._after_s):
            self._after_s = frames.end_s
            self.is_spoiled |= bool((frames.fault & FAULTY).any()) or frames.skipped > 0
            squares = np.asarray(frames.values.mean_square, np.float64).sum(axis=-1)
            self._squares = squares if self._squares is None else self._squares + squares
            self._count += len(frames)


class AudienceDialog(QtWidgets.QDialog):
    """Asks for the correction; `chosen` has it, or None to remove it, if it was changed.

    present: the correction of the present measurement
    engine: returns the running engine, or None
    """

    chosen = QtCore.Signal(object)

    def __init__(
        self,
        present: Audience | None,
        engine: "Callable[[], Engine | None]",
        parent: QtWidgets.QWidget | None = None,
    ) -> None:
        super().__init__(parent, objectName="audience_dialog")
        self.setWindowTitle("Correction to the audience")
        self.seconds = MEASURE_S
        self._present, self._engine = present, engine
        self._levels: list[tuple[float, float] | None] = [None, None]
        self._now: tuple[int, PlaceLevels] | None = None
        self._measured: Audience | None = None
        column = QtWidgets.QVBoxLayout(self)
        column.addWidget(plain_label("about", ABOUT, wrap=True))
        column.addLayout(self._places())
        column.addLayout(self._numbers())
        self.problem = plain_label("problem", wrap=True)
        column.addWidget(self.problem)
        buttons = DialogButtons(self, Button.Ok | Button.Cancel)
        self.removing = buttons.add("remove", "&Remove", self._remove)
        self.removing.setEnabled(present is not None)
        column.addWidget(buttons)
        self._timer = QtCore.QTimer(self, interval=LOOK_MS, timeout=self._look)
        running = engine()
        if running is None or MODEL not in running.models:
            self.problem.setText(NO_LEVELS)
            for button in self.buttons:
                button.setEnabled(False)

    def _places(self) -> QtWidgets.QGridLayout:
        grid = QtWidgets.QGridLayout()
        grid.setColumnStretch(1, 1)
        self.buttons = [
            push_button(f"measure_{place}", words, partial(self._begin, place))
            for place, words in enumerate(PLACES)
        ]
        self.texts = [plain_label(f"levels_{place}", UNMEASURED, role="second") for place in (0, 1)]
        for row, (button, text) in enumerate(zip(self.buttons, self.texts, strict=True)):
            button.setAutoDefault(False)
            grid.addWidget(button, row, 0)
            grid.addWidget(text, row, 1)
        return grid

    def _numbers(self) -> QtWidgets.QFormLayout:
        form = QtWidgets.QFormLayout()
        present = self._present
        values = (0.0, 0.0) if present is None else (present.a_db, present.c_db)
        self.spins = [QtWidgets.QDoubleSpinBox(), QtWidgets.QDoubleSpinBox()]
        for letter, spin, value in zip("AC", self.spins, values, strict=True):
            spin.setRange(-MOST_DB, MOST_DB)
            spin.setDecimals(1)
            spin.setSingleStep(0.5)
            spin.setValue(value)
            set_up_spin(spin, "dB", f"{letter}-weighted levels, audience above microphone")
            form.addRow(f"&{letter}-weighted, louder by", spin)
        return form

    def _begin(self, place: int) -> None:
        """Measure a place from now on."""
        engine = self._engine()
        if engine is None or MODEL not in engine.models:
            self.problem.setText(begun(ENDED))
            return
        self._give_up("")
        self._levels[place] = None
        self._now = place, PlaceLevels(engine, self.seconds)
        self._timer.start()
        self._look()

    def _look(self) -> None:
        if self._now is None:
            return
        place, levels = self._now
        levels.look()
        if levels.is_spoiled or self._engine() is None:
            self._give_up(SPOILED if levels.is_spoiled else ENDED)
        elif levels.levels_db is None:
            self.texts[place].setText(f"{levels.heard_s:.0f} s of {self.seconds:.0f} s")
        else:
            self._levels[place] = a_db, c_db = levels.levels_db
            self.texts[place].setText(f"LAeq {a_db:.1f} dB, LCeq {c_db:.1f} dB")
            self._now = None
            self._timer.stop()
            self._compare()

    def _give_up(self, why: str) -> None:
        """End measuring a place, and say why."""
        if self._now is not None:
            self.texts[self._now[0]].setText(UNMEASURED)
        self._now = None
        self._timer.stop()
        self.problem.setText(begun(why))

    def _compare(self) -> None:
        """Show the difference of both places once they are measured."""
        here, there = self._levels
        if here is None or there is None:
            return
        try:
            self._measured = measured = Audience.measured(here, there, utc_now()[:10])
        except AudienceError as refusal:
            self.problem.setText(begun(str(refusal)))
            return
        for spin, value in zip(self.spins, (measured.a_db, measured.c_db), strict=True):
            spin.setValue(value)

    @property
    def audience(self) -> Audience:
        """The correction that is shown; a typed one does not say that it was measured."""
        values = tuple(round(spin.value(), 1) for spin in self.spins)
        for known in (self._measured, self._present):
            if known is not None and (known.a_db, known.c_db) == values:
                return known
        return Audience(*values)

    def accept(self) -> None:
        super().accept()
        if self.audience != self._present:
            self.chosen.emit(self.audience)

    def _remove(self) -> None:
        super().accept()
        self.chosen.emit(None)

    def done(self, result: int) -> None:
        self._timer.stop()
        super().done(result)
