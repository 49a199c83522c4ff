"""The window changed while it measures: no frame is lost to that."""

import time

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.actions.models_menu import swap_models
from amt_monitor.base.theme import theme
from amt_stream.dsp.models import Moore2016
from amt_stream.engine import Engine, FileSource, SignalSource, Tone
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from tests.apps.changes import Changes

Key = QtCore.Qt.Key
FS = 48000


class Heard:
    """A sink that remembers which samples its frames stand for."""

    def __init__(self):
        self.samples = []

    def __call__(self, frames):
        self.samples.append(frames.sample)

    def missing(self):
        steps = np.diff(np.concatenate(self.samples))
        return int((steps != steps[0]).sum())


@pytest.fixture
def heard(qapp):
    before = theme.choice
    yield Heard()
    theme.choose(before)


@pytest.fixture
def window(open_window, heard):
    model = Moore2016(fs=FS, specific_loudness=True)
    source = SignalSource([Tone(1000.0, level_db=60.0)], FS)
    return open_window(lambda wanted: Engine(source, model, [heard]))


def pass_some(qtbot, heard, blocks=5):
    count = len(heard.samples)
    qtbot.waitUntil(lambda: len(heard.samples) >= count + blocks, timeout=15000)


def test_panes_layouts_and_themes(qtbot, window, heard):
    engine = window.measurement.engine
    for choice in ("dark", "contrast", "light"):
        window.choose_theme(choice)
        pass_some(qtbot, heard)
    spectrum = window.area.docks["specific_loudness"]
    spectrum.close()
    pass_some(qtbot, heard)
    assert not spectrum.is_seen
    window.area.restore_default()
    qtbot.waitUntil(lambda: spectrum.is_seen, timeout=5000)
    spectrum.open_alone()
    qtbot.waitUntil(lambda: spectrum.pane.window() is not window, timeout=5000)
    qtbot.waitUntil(lambda: spectrum.is_seen, timeout=5000)
    shown = spectrum.pane.curves[0].y
    qtbot.waitUntil(lambda: spectrum.pane.curves[0].y is not shown, timeout=5000)
    spectrum.pane.window().close()
    qtbot.waitUntil(lambda: spectrum.pane.window() is window, timeout=5000)
    window.tabifyDockWidget(window.area.docks["history"], spectrum)
    window.area.docks["history"].raise_()
    qtbot.waitUntil(lambda: not spectrum.is_seen, timeout=5000)
    pass_some(qtbot, heard)
    assert heard.missing() == 0
    assert window.measurement.engine is engine
    assert engine.health.lost_samples == 0


def test_a_model_set_otherwise(qtbot, window, heard):
    engine = window.measurement.engine
    window.menus.models.fill()
    ticked = [one.objectName() for one in window.menus.models.actions() if one.isChecked()]
    assert ticked == ["model_moore2016"]
    window.menus.models.findChild(type(window.actions_by_name["pause"]), "field_diffuse").trigger()
    qtbot.waitUntil(lambda: engine.model.arguments()["field"] == "diffuse", timeout=30000)
    qtbot.waitUntil(lambda: any(one.kind == "swapped" for one in engine.events), timeout=15000)
    pass_some(qtbot, heard)
    assert heard.missing() == 0
    assert window.measurement.engine is engine
    assert window.measurement.request.settings == {"field": "diffuse"}


class Told(Heard):
    """A sink that hears of swaps, and notes what the header of a log says by then."""

    def __init__(self, log):
        super().__init__()
        self.fields, self._log = [], log

    def event(self, event):
        if event.kind == "swapped":
            self.fields.append([model["field"] for model in self._log.table.header()["models"]])


def test_a_log_says_how_models_were_set(qtbot, tmp_path):
    preset = Preset(("moore2016", "zwicker"))
    source = SignalSource([Tone(1000.0, level_db=60.0)], FS)
    models = preset.models(FS, 2)
    sound = Sound(source.name, FS, (1, 2), [source.calibration], None)
    with SessionLog(tmp_path / "log", Table(preset, models, sound, RowSettings(100))) as log:
        told = Told(log)
        assert log.table.header()["models"][0]["field"] == "free"
        with Engine(source, models, [log, told]) as engine:
            pass_some(qtbot, told)
            swap_models(engine, "field", "diffuse")
            qtbot.waitUntil(lambda: len(told.fields) == 2, timeout=15000)
    assert told.fields == [["diffuse"] * 2] * 2


def test_other_models_have_other_panes(qtbot, open_window, heard):
    asked = []

    def make(wanted):
        asked.append(wanted.models)
        names = wanted.models or ("moore2016",)
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)], FS), Preset(names).models(FS, 2))

    window = open_window(make)
    assert "spl" not in window.area.docks
    window.menus.models.fill()
    window.menus.models.findChild(type(window.actions_by_name["pause"]), "model_spl").trigger()
    qtbot.waitUntil(lambda: "spl" in window.area.docks, timeout=30000)
    assert asked == [None, ("moore2016", "spl")]
    qtbot.waitUntil(lambda: "spl" in window.updater.shown.texts, timeout=15000)


@pytest.mark.parametrize("channels", [(2, 1), pytest.param((1, 2), marks=pytest.mark.soak)])
def test_another_input_with_the_same_models_has_panes_of_its_own(
    qtbot, open_window, tmp_path, channels
):
    paths = [tmp_path / f"{name}.wav" for name in ("first", "second")]
    for path, count in zip(paths, channels, strict=True):
        soundfile.write(path, tone(20.0, count), FS)
    window = open_window(played(paths[0]))
    window.targets.measurement.play(paths[1])
    qtbot.waitUntil(lambda: window.measurement.begun == 2, timeout=15000)
    qtbot.waitUntil(lambda: window.measurement.measured_s > 0.5, timeout=15000)
    qtbot.waitUntil(lambda: window.area.docks["history"].pane.history.count > 5, timeout=5000)
    qtbot.waitUntil(
        lambda: window.updater.shown.view.engine is window.measurement.engine, timeout=5000
    )
    left = window.area.docks["spl"].pane.findChild(QtWidgets.QLabel, "laf_left_db")
    assert (left is not None) == (channels[1] == 2)
    names = [column.name for column in window.area.docks["history"].pane.history.columns]
    assert ("laf_left_db" in names) == (channels[1] == 2)


def test_third_octaves_alone_are_shown_and_have_a_history(qtbot, open_window, tmp_path):
    path = tmp_path / "tone.wav"
    soundfile.write(path, tone(20.0, 1), FS)
    window = open_window(played(path, ("third_octave",)))
    pane = window.area.docks["history"].pane
    qtbot.waitUntil(lambda: pane.history.count > 5, timeout=10000)
    assert pane.chosen == ["lzf_1000hz_db"]
    qtbot.waitUntil(lambda: window.updater.shown.view.values["lzf_1000hz_db"] > 60.0, timeout=5000)
    results = window.updater.results()
    assert len(results.rows) > 5
    assert np.nanmax(results.rows["lzf_1000hz_db"]) > 60.0


def test_what_is_asked_for_while_a_measurement_starts_is_measured(qtbot, open_window, tmp_path):
    first, second = files(tmp_path, ("first", "second"))
    window = open_window(played(first), readings=False)
    assert window.measurement.busy
    window.targets.measurement.play(second)
    heard_of = lambda: window.measurement.engine and window.measurement.engine.source.name  # noqa: E731
    qtbot.waitUntil(lambda: heard_of() == second.name, timeout=15000)
    qtbot.waitUntil(lambda: not window.measurement.busy, timeout=15000)
    assert window.measurement.measuring


def test_what_was_measured_goes_on_after_another_input_that_could_not_be_opened(
    qtbot, open_window, tmp_path
):
    (first,), broken = files(tmp_path, ("first",)), tmp_path / "broken.wav"
    broken.write_bytes(b"no sound")
    window = open_window(played(first))
    measurement = window.measurement
    qtbot.waitUntil(lambda: measurement.measured_s > 0.5, timeout=10000)
    window.targets.measurement.play(broken)
    qtbot.waitUntil(lambda: measurement.error is not None, timeout=10000)
    counted = measurement.measured_s
    assert measurement.can_go_on
    soundfile.write(broken, tone(5.0, 2), FS)
    window.targets.measurement.stop()
    qtbot.waitUntil(lambda: measurement.measured_s > counted + 0.3, timeout=10000)
    assert (measurement.engine.source.name, measurement.begun) == (first.name, 1)


def test_a_setting_that_never_ran_does_not_keep_a_measurement_from_going_on(
    qtbot, open_window, heard
):
    model = Moore2016(fs=FS)

    def make(wanted):
        assert not wanted.settings
        resumed = wanted.resumed
        sinks, restore = ([], None) if resumed is None else ([resumed], resumed.standing.state)
        source = SignalSource([Tone(1000.0, level_db=60.0)], FS)
        return Engine(source, model, sinks, restore=restore)

    window = open_window(make)
    measurement = window.measurement
    measurement.stop()
    # The window has not heard of the end yet, and still offers settings.
    while measurement.engine.device_state != "stopped":
        time.sleep(0.01)
    window.targets.measurement.set_models("field", "diffuse")
    qtbot.waitUntil(lambda: "is unchanged" in window.message.text, timeout=15000)
    counted = measurement.measured_s
    window.targets.measurement.stop()
    qtbot.waitUntil(lambda: measurement.measured_s > counted, timeout=15000)
    assert (measurement.error, measurement.begun) == (None, 1)


def test_another_input_keeps_the_models_and_the_same_one_changes_nothing(qtbot, open_window):
    asked = []

    def make(wanted):
        asked.append(wanted)
        models = Preset(wanted.models or ("bs1770",)).models(FS, 2)
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)], FS), models)

    window = open_window(make)
    window.targets.measurement.choose_models(("spl",))
    qtbot.waitUntil(lambda: window.measurement.begun == 2, timeout=15000)
    window.device.activated.emit(0)
    assert not window.measurement.busy
    window.device.addItem("another", "another")
    window.device.choose("another")
    window.device.activated.emit(1)
    qtbot.waitUntil(lambda: window.measurement.begun == 3, timeout=15000)
    assert [(one.device, one.models) for one in asked] == [
        (None, None),
        (None, ("spl",)),
        ("another", ("spl",)),
    ]


def test_what_the_program_was_started_with_keeps_its_name_while_a_file_is_played(
    qtbot, open_window, tmp_path
):
    first, second = files(tmp_path, ("first", "second"))
    window = open_window(played(first))
    window.targets.measurement.play(second)
    qtbot.waitUntil(lambda: window.measurement.begun == 2, timeout=15000)
    window.show_state()
    assert window.device.itemText(0) == "first.wav (as started)"


def test_an_input_is_calibrated_once_what_is_just_starting_has_let_it_go(
    qtbot, open_window, tmp_path
):
    (first,) = files(tmp_path, ("first",))
    window = open_window(played(first), readings=False)
    assert window.measurement.busy
    window.targets.calibration.calibrate()
    wizard = lambda: window.findChild(QtWidgets.QWizard, "calibration_wizard")  # noqa: E731
    qtbot.waitUntil(lambda: wizard() is not None, timeout=15000)
    assert window.measurement.state == "stopped"
    wizard().reject()
    qtbot.waitUntil(lambda: window.measurement.state == "running", timeout=15000)


def files(folder, names):
    """Sound files of a tone, by their names."""
    paths = [folder / f"{name}.wav" for name in names]
    for path in paths:
        soundfile.write(path, tone(20.0, 2), FS)
    return paths


def tone(seconds, channels):
    sound = 0.05 * np.sin(2 * np.pi * 1000.0 * np.arange(round(seconds * FS)) / FS)
    return np.repeat(sound[:, None], channels, axis=1)


def played(path, models=("spl",)):
    """Makes engines that play a file, or the one that is wanted, in its place."""

    def make(wanted):
        source = FileSource(wanted.file or path)
        made = Preset(wanted.models or models, wanted.settings).models(FS, source.channels)
        resumed = wanted.resumed
        sinks, restore = ([], None) if resumed is None else ([resumed], resumed.standing.state)
        return Engine(source, made, sinks, restore=restore)

    return make


def test_10_changes_lose_no_frame(qtbot, open_window, heard):
    changes = Changes(1)
    window = open_window(changes.engine)
    changes.make(qtbot, window, 10)
    changes.check()
    assert len(changes.done) == 5
