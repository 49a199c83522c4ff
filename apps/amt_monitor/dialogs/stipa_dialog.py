"""The dialog that measures the STI at several positions."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base import widgets
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.message_bar import begun
from amt_monitor.base.save_file_dialog import ask_save_path
from amt_monitor.dialogs.report_dialog import save_page, writing
from amt_stream.core.errors import Refusal
from amt_stream.meters.accumulators.sti import category
from amt_stream.meters.accumulators.stipa import VALID_S, reason_words
from amt_stream.sessions.report.stipa import stipa_page
from amt_stream.sessions.results.stipa_positions import StiPosition, save_position, with_position
from amt_stream.views import stipa

if TYPE_CHECKING:
    from amt_stream.engine.devices.player import Player
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.measurement_control import MeasurementControl

LOOK_MS = 200
HEADS = ("Position", "STI", "±", "Category", "Not valid, as")

ABOUT = (
    "Play the STIPA test signal where a person would speak, or through the announcement system, "
    "and measure for 25 s where people listen; then at the next position. Be quiet meanwhile."
)
FILE_ABOUT = "for another player: it repeats the file without a pause"
STARTING = "The measurement begins..."
ENDED = "the measurement has stopped: start it, and measure this position again"
UNMEASURED_NOISE = "No noise is added."
CALIBRATED = "Calibrated: masking by level and the threshold of hearing count."
UNCALIBRATED = "Not calibrated: the level does not count, and noise cannot be added."


class SignalChoice(QtWidgets.QGroupBox):
    """Whether this computer plays the test signal, at which level and on which output."""

    def __init__(self) -> None:
        super().__init__("Test signal")
        self.here = QtWidgets.QRadioButton("&Play here on")
        self.elsewhere = QtWidgets.QRadioButton("&Another device plays it")
        self.here.setChecked(True)
        self.output = QtWidgets.QLineEdit()
        self.output.setPlaceholderText("the default output, or a part of its name")
        self.output.setAccessibleName("output that plays")
        self.level = QtWidgets.QDoubleSpinBox(decimals=0)
        self.level.setRange(-80.0, stipa.LOUDEST_DBFS)
        self.level.setValue(stipa.USUAL_DBFS)
        widgets.set_up_spin(self.level, "dBFS", "RMS level of the test signal")
        self.write = widgets.push_button("write_signal", "&Write it to a file...", self._write)
        self.write.setToolTip(FILE_ABOUT)
        self.problem = widgets.plain_label("signal_problem", wrap=True)
        grid = QtWidgets.QGridLayout(self)
        for column, part in enumerate((self.here, self.output, self.level)):
            grid.addWidget(part, 0, column)
        grid.addWidget(self.elsewhere, 1, 0)
        grid.addWidget(self.write, 1, 1, QtCore.Qt.AlignmentFlag.AlignLeft)
        grid.addWidget(self.problem, 2, 0, 1, 3)
        self.problem.hide()
        grid.setColumnStretch(1, 1)
        for part in (self.output, self.level):
            self.here.toggled.connect(part.setEnabled)

    def play(self) -> "Player":
        """Begin to play. Raises SourceError if the output does not."""
        return stipa.play_signal(
            level_dbfs=self.level.value(), device=self.output.text().strip() or None
        )

    def _write(self) -> None:
        try:
            path = ask_save_path(self, "Write the test signal", "stipa", {"Sound": ".wav"})
            if path is not None:
                stipa.write_signal(path, level_dbfs=self.level.value())
        except (Refusal, OSError) as error:
            self.problem.setText(begun(str(error)))
            self.problem.show()


class StipaDialog(QtWidgets.QDialog):
    """Measures positions and noise with the running measurement, one at a time [main-thread].

    measurement: runs the model `stipa`, now or soon
    seconds, noise_s: how long a position and the noise are measured
    """

    def __init__(
        self, measurement: "MeasurementControl", parent: QtWidgets.QWidget | None = None
    ) -> None:
        super().__init__(parent, objectName="stipa_dialog", windowTitle="Speech transmission")
        self.seconds, self.noise_s = stipa.USUAL_S, stipa.NOISE_S
        self.positions: list[StiPosition] = []
        self.noise_db: list[float] | None = None
        self._control = measurement
        self._step = MeasuringStep(measurement, self)
        self._step.failed.connect(self._tell)
        self._step.ended.connect(self._rest)
        self._writing = BackgroundTask(
            self, lambda path: self._tell(f"Written: {path}"), self._tell
        )
        self._build()
        self._timer = QtCore.QTimer(self, interval=LOOK_MS, timeout=self.look)
        self._timer.start()
        self._rest()
        self.look()

    def _build(self) -> None:
        self.signal = SignalChoice()
        self.measure = widgets.push_button("measure", "&Measure", self._measure)
        self.measure_noise = widgets.push_button(
            "measure_noise", "Measure the &noise", self._measure_noise
        )
        self.stop = widgets.push_button("stop_step", "&Finish now", self._step.finish)
        self.name = QtWidgets.QLineEdit(accessibleName="name of the position")
        self.noise = widgets.plain_label("noise", UNMEASURED_NOISE, role="second")
        self.level = widgets.plain_label("level", role="second")
        self.progress = widgets.plain_label("progress", wrap=True)
        font = self.progress.font()
        font.setPointSizeF(1.3 * font.pointSizeF())
        self.progress.setFont(font)
        self.table = widgets.read_only_table("positions with their STI", HEADS)
        self.overall = widgets.plain_label("overall")
        steps = QtWidgets.QGridLayout()
        steps.setColumnStretch(1, 1)
        steps.addWidget(self.measure_noise, 0, 0)
        steps.addWidget(self.noise, 0, 1, 1, 2)
        for column, part in enumerate((self.measure, self.name, self.stop)):
            steps.addWidget(part, 1, column)
        buttons = widgets.DialogButtons(self, widgets.Button.Close)
        self.report = buttons.add("report", "&Report...", self._report)
        self.save = buttons.add("save", "&Save the positions...", self._save)
        column = QtWidgets.QVBoxLayout(self)
        widgets.add_all(
            column, widgets.plain_label("about", ABOUT, wrap=True), self.signal, self.level, steps
        )
        widgets.add_all(column, self.progress, self.table, self.overall, buttons)
        self.resize(640, 560)

    def look(self) -> None:
        """Take what was measured since the last look."""
        if words := self._step.look():
            self.progress.setText(words)
        readings = self._step.readings
        ready, busy = readings is not None, self._step.busy
        self.measure.setEnabled(ready and not busy)
        calibrated = readings is not None and stipa.StiMeasurement(readings).calibrated
        self.measure_noise.setEnabled(ready and calibrated and not busy)
        self.stop.setEnabled(self._step.measurement is not None)
        if readings is not None:
            self.level.setText(CALIBRATED if calibrated else UNCALIBRATED)
        else:
            self.level.setText(STARTING if self._control.busy else begun(ENDED))

    def _rest(self) -> None:
        """Propose the next position."""
        self.name.setText(f"Position {len(self.positions) + 1}")
        self.report.setEnabled(bool(self.positions))
        self.save.setEnabled(bool(self.positions))

    def _measure(self) -> None:
        name, noise_db = self.name.text().strip(), self.noise_db
        play = self.signal.play if self.signal.here.isChecked() else None

        def keep(measurement: stipa.StiMeasurement) -> None:
            self._keep(measurement.position(name, noise_db))

        self._step.begin(self.seconds, keep, play)

    def _keep(self, position: StiPosition) -> None:
        self.positions = with_position(self.positions, position)
        self.table.setRowCount(len(self.positions))
        for row, one in enumerate(self.positions):
            shown = () if one.no_signal else (f"{one.sti:.2f}", f"{one.sd:.3f}", category(one.sti))
            texts = [one.name, *(shown or ("", "", "")), "; ".join(one.reasons)]
            for column, text in enumerate(texts):
                self.table.setItem(row, column, widgets.table_cell(text, text))
        self.overall.setText(stipa.overall_text(self.positions))
        self.progress.setText(f"{position.name}: {position.words}")

    def _measure_noise(self) -> None:
        def keep(measurement: stipa.StiMeasurement) -> None:
            self.noise_db = measurement.noise_db
            levels = ", ".join(f"{level:.0f}" for level in self.noise_db)
            self.noise.setText(f"Noise of {levels} dB from 125 Hz to 8 kHz is added.")
            self.progress.setText("")

        self.progress.setText("Be quiet, with the test signal off.")
        self._step.begin(self.noise_s, keep)

    def _report(self) -> None:
        page = stipa_page(self.positions)

        def write(path: Path) -> None:
            self._writing.run(writing(path, page))

        save_page(self, "speech-transmission", write, self._tell)

    def _save(self) -> None:
        try:
            path = ask_save_path(self, "Save the positions", "stipa", {"Positions": ".json"})
            if path is not None:
                for one in self.positions:
                    save_position(path, one)
        except (Refusal, OSError) as error:
            self._tell(str(error))

    def _tell(self, sentence: str) -> None:
        self.progress.setText(begun(sentence))

    def done(self, result: int) -> None:
        self._timer.stop()
        self._step.give_up()
        super().done(result)


class MeasuringStep(QtCore.QObject):
    """Measures one position, or the noise, from a reset of the readings on [main-thread].

    failed: why it ended without a result
    ended: it ended, with a result or without
    """

    failed = QtCore.Signal(str)
    ended = QtCore.Signal()

    def __init__(self, control: "MeasurementControl", parent: QtCore.QObject) -> None:
        super().__init__(parent)
        self._control = control
        self._playing = BackgroundTask(self, self._has_begun, self._fail)
        self._player: Player | None = None
        self._soon = QtCore.QTimer(self, singleShot=True, interval=round(1000 * stipa.BEGIN_S))
        self._soon.timeout.connect(self._measure)
        self._seconds = 0.0
        self._keep: Callable[[stipa.StiMeasurement], object] = lambda _: None
        self._reset: object = None
        self.busy = False
        self.measurement: stipa.StiMeasurement | None = None

    @property
    def readings(self) -> "FollowedReadings | None":
        """Those of the running measurement, if it has the model."""
        readings = self._control.readings if self._control.measuring else None
        busy = self._control.busy or readings is None or stipa.MODEL not in readings.models
        return None if busy else readings

    def begin(
        self,
        seconds: float,
        keep: Callable[[stipa.StiMeasurement], object],
        play: "Callable[[], Player] | None" = None,
    ) -> None:
        """Measure for so many seconds, and then keep the result.

        play: begins to play the signal
        """
        self.busy, self._seconds, self._keep = True, seconds, keep
        if play is None:
            self._measure()
        else:
            self._playing.run(play)

    def _has_begun(self, player: "Player") -> None:
        if self.busy:
            self._player = player
            self._soon.start()
        else:
            player.close()

    def _measure(self) -> None:
        readings, engine = self.readings, self._control.engine
        if not self.busy:
            return
        if readings is None or engine is None:
            self._fail(ENDED)
            return
        self._reset = _last_reset(readings)
        self.measurement = stipa.StiMeasurement(readings, self._player)
        engine.reset_readings()

    def look(self) -> str:
        """The progress in words, or "" if there is none; ends what is complete."""
        if self.measurement is None:
            return "The signal begins..." if self.busy else ""
        readings = self.readings
        if readings is None:
            self._fail(ENDED)
            return ""
        if _last_reset(readings) is self._reset or (result := self.measurement.result) is None:
            return ""
        if result.seconds >= self._seconds:
            self.finish()
            return ""
        soon = [] if result.seconds < VALID_S else reason_words(result.reasons)
        return "; ".join([stipa.progress_text(result), *soon])

    def finish(self) -> None:
        """Keep what was measured so far."""
        measurement = self.measurement
        if measurement is not None:
            try:
                self._keep(measurement)
            except Refusal as refusal:
                self.failed.emit(str(refusal))
            self.give_up()

    def _fail(self, why: str) -> None:
        self.failed.emit(why)
        self.give_up()

    def give_up(self) -> None:
        """End without a result, and the sound too."""
        player, self._player, self.measurement = self._player, None, None
        was_busy, self.busy = self.busy, False
        self._soon.stop()
        if player is not None:
            player.close()
        if was_busy:
            self.ended.emit()


def _last_reset(readings: "FollowedReadings") -> object:
    """The last event that reset the readings, or None."""
    return next((one for one in reversed(readings.events) if one.kind == "readings_reset"), None)
