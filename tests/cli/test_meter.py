import io
import itertools
import json
import signal
import time

import numpy as np
import pytest

from amt_stream.cli.command import build_parser
from amt_stream.cli.commands.meter import _ended
from amt_stream.cli.making import input_from_window
from amt_stream.cli.watch import Hanging, Watch
from amt_stream.dsp.models import Moore2016
from amt_stream.engine import Engine, FileSource, StdinSource
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.presets import load_preset
from tests.cli.conftest import COLUMNS

FS = 48000
ROWS = ["--format", "csv", "--step-ms", 1]


@pytest.fixture
def changing_sound():
    """Three seconds of noise, different in both ears, and a beating tone, with a step up."""
    time_s = np.arange(3 * FS) / FS
    x = 0.02 * np.random.default_rng(0).standard_normal((len(time_s), 2))
    beats = 0.03 * np.sin(2 * np.pi * 440 * time_s) * (1 + np.sin(2 * np.pi * 3 * time_s))
    x += beats[:, None]
    x[: FS // 2] *= 0.1
    return x.astype(np.float32)


def largest_difference(rows, reference, shift=0):
    """In LTL, phon, over what both have, apart from the onset."""
    count = min(len(rows) - shift, len(reference))
    return np.abs(rows[shift:][500:count] - reference[500:count]).max()


def test_files_and_pipes_give_what_analyze_gives(run, sound_file, changing_sound):
    path = sound_file(changing_sound)
    expected = run("analyze", path).rows
    assert len(expected["ltl_phon"]) == 3001
    assert expected["ltl_phon"].max() > 70
    raw = changing_sound.tobytes()
    pipe = run("meter", "--source", "-", "--pcm", "f32le", "-r", FS, "-c", 2, *ROWS, stdin=raw)
    assert "f32le, 48000 Hz, 2 channel" in pipe.err
    for done in (
        run("meter", "--source", path, *ROWS),
        run("meter", "--source", path, *ROWS, "--fast", "-b", 333),
        pipe,
    ):
        assert done.status == 0, done.err
        assert "0 overruns, 0 samples lost" in done.err
        np.testing.assert_array_equal(done.rows["time_s"], np.arange(3001) / 1000)
        assert largest_difference(done.rows["ltl_phon"], expected["ltl_phon"]) < 0.02


def test_a_microphone_gives_what_analyze_gives(run, begin, playing, sound_file, changing_sound):
    # Rows are whole milliseconds apart, and the sound begins anywhere between two of them:
    # the nearest reference is up to 4 samples off, which is worth 0.02 phon.
    files = [
        sound_file(np.concatenate([np.zeros((late, 2)), changing_sound]), name=f"{late}.wav")
        for late in range(0, FS // 1000, 8)
    ]
    references = [run("analyze", path).rows["ltl_phon"][:2800] for path in files]
    with begin("meter", "-d", "virtual_mic", "--duration", 5, *ROWS) as meter:
        head = iter(meter.stdout.readline, "")
        assert any(line.startswith("0.0,") for line in head)
        with playing(files[0]):
            heard = np.array(
                [float(line.split(",")[COLUMNS.index("ltl_phon")]) for line in meter.stdout]
            )
    assert meter.returncode == 0
    nearest = min(
        largest_difference(heard, expected, shift)
        for expected in references
        for shift in range(len(heard) - len(expected))
    )
    assert nearest < 0.04


def test_rows_say_what_they_are(run, sound_file, tone):
    path = sound_file(np.where(np.arange(FS)[:, None] == 30000, np.nan, tone(60.0, 1.0)))
    wanted = ["meter", "--source", path, "--fast", "--preset", "low-power", "--field", "diffuse"]
    done = run(*wanted, "--format", "csv")
    assert list(done.rows) == COLUMNS
    np.testing.assert_array_equal(done.rows["time_s"], [0.0, 0.5, 1.0])
    assert set(done.rows["calibrated"]) == {"false"}
    about = done.about
    assert {one["calibrated"] for one in about["calibration"]} == {False}
    assert (about["models"][0]["field"], about["step_ms"]) == ("diffuse", 500)
    assert "2 invalid" in done.err

    done = run(*wanted, "--format", "jsonl", "--step-ms", 25, "--full-scale-db", 100)
    header, *rows, summary = map(json.loads, done.out.splitlines())
    assert header["header"]["models"][0]["field"] == "diffuse"
    assert list(rows[0]) == COLUMNS
    assert summary["summary"]["max_ltl_sone"] > 0
    assert {row["calibrated"] for row in rows} == {True}
    faulty = [row["time_s"] for row in rows if row["fault"] == "non_finite"]
    assert 0.625 in faulty
    assert 0.5 not in faulty
    assert rows[30]["settling"] is True


def test_what_was_said_while_it_ran_is_not_said_again(capsys):
    sound = io.BytesIO(np.zeros(4801, "<f4").tobytes()[:-1])
    with Engine(StdinSource("f32le", FS, 1, sound), Moore2016(fs=FS)) as engine:
        assert engine.wait(60)
    assert "in the middle of a sample" in engine.health.note
    looking = Watch(engine)
    looking.look()
    assert len(capsys.readouterr().err.splitlines()) == 1
    for watch, lines in ((None, 2), (Watch(engine), 2), (looking, 1)):
        _ended(engine, None, watch)
        assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_fault_of_our_own_shows_where_it_happened(sound_file):
    """Only what is known of inputs becomes a sentence."""

    class Broken(Moore2016):
        def step(self, x, state):
            if x.abs().max() > 40:  # louder than what warms it up
                raise RuntimeError("a stage is broken")
            return super().step(x, state)

    loud = np.sin(2 * np.pi * 1000 * np.arange(4800) / FS)
    source = FileSource(sound_file(np.stack([loud, loud], 1)), paced=False)
    engine = Engine(source, Broken(fs=FS), calibration=Calibration(130.0))
    with engine:
        engine.wait()
    with pytest.raises(RuntimeError, match="a stage is broken"):
        _ended(engine, None)


@pytest.mark.parametrize("shown", [["--terminal"], ["--format", "csv", "--step-ms", 10]])
def test_it_ends_where_it_was_told_to(run, shown):
    done = run("meter", "--source", "demo", "--fast", "--duration", 0.01, *shown)
    assert done.status == 0
    last = done.out.splitlines()[-1].replace(",", " ").split()
    assert float(last[0]) == (0.01 if "csv" in shown else 0.0)
    assert "0.01 s measured" in done.err
    done = run("meter", "--source", "demo", "--duration", 1, *shown)
    assert float(done.out.splitlines()[-1].replace(",", " ").split()[0]) == 1.0
    assert "1 s measured" in done.lines[-1]


def test_a_device_chosen_in_the_window_has_its_own_settings(virtual_mic, capsys):
    typed = ["-c", "2", "-r", "44100", "-b", "44100", "--full-scale-db", "90"]
    args = build_parser().parse_args(["meter", "--source", "demo", *typed])
    given = input_from_window("virtual_mic", args, load_preset())
    assert (given.source.fs, given.channels) == (48000, (1, 2))
    assert given.calibration == [UNCALIBRATED]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "--channels, --samplerate, --blocksize, --full-scale-db on the command line" in said[0]
    input_from_window("virtual_mic", build_parser().parse_args(["meter"]), load_preset())
    assert capsys.readouterr().err == ""


@pytest.mark.quick
def test_rows_come_as_they_are_measured_until_interrupted(begin):
    with begin("meter", "--source", "demo", "--format", "csv") as meter:
        assert any(line.startswith("0.3,") for line in iter(meter.stdout.readline, ""))
        assert meter.poll() is None
        meter.send_signal(signal.SIGINT)
        meter.stdout.read()
        assert "Traceback" not in meter.stderr.read()
    assert meter.returncode == 130


def test_a_reader_that_leaves_ends_the_meter_quietly(begin):
    with begin("meter", "--source", "demo", "--format", "jsonl", "--step-ms", "1") as meter:
        meter.stdout.readline()
        meter.stdout.close()
        assert meter.stderr.read() == ""
    assert meter.returncode == 141


def test_a_lost_device_that_is_not_waited_for_has_its_own_status(begin, virtual_mic):
    try:
        with begin("meter", "-d", "virtual_mic", "--format", "csv", "--no-wait") as meter:
            assert any(line.startswith("0.3,") for line in iter(meter.stdout.readline, ""))
            virtual_mic.unplug()
            meter.stdout.read()
            errors = meter.stderr.read()
    finally:
        virtual_mic.plug()
    assert meter.returncode == 3
    assert "'virtual_mic' was lost" in errors.splitlines()[-1]
    assert errors.count("was lost") == 1
    assert "Traceback" not in errors


def test_rows_go_on_when_a_lost_device_is_back(begin, virtual_mic):
    """What happens to the device is said at once, and the rows count the time without it."""
    try:
        with begin("meter", "-d", "virtual_mic", "--format", "csv", "--duration", "4") as meter:
            assert any(line.startswith("0.3,") for line in iter(meter.stdout.readline, ""))
            virtual_mic.unplug()
            assert "the device 'virtual_mic' was lost" in meter.stderr.readline()
            virtual_mic.plug()
            assert "the device 'virtual_mic' is back after" in meter.stderr.readline()
            rows = meter.stdout.read().splitlines()
            errors = meter.stderr.read()
    finally:
        virtual_mic.plug()
    assert meter.returncode == 0, errors
    assert rows[-1].startswith("4.0,")
    assert any(",gap" in row for row in rows)
    assert "4 s measured" in errors


def test_a_measurement_ends_in_its_time_though_the_device_stays_away(begin, virtual_mic):
    try:
        with begin("meter", "-d", "virtual_mic", "--terminal", "--duration", "3") as meter:
            assert " s  LTL" in meter.stdout.readline()
            virtual_mic.unplug()
            meter.stdout.read()
            errors = meter.stderr.read()
    finally:
        virtual_mic.plug()
    assert meter.returncode == 0, errors
    assert errors.count("the device 'virtual_mic' was lost") == 1


def test_without_a_microphone_the_demo_sound_is_shown(run, nothing_to_hear):
    """No microphone, no screen: two lines say so, and no reading looks like a measurement."""
    done = run("meter", "--duration", 1, **nothing_to_hear)
    assert done.status == 0, done.err
    assert "there is no display: the meter runs in the terminal" in done.lines[0]
    assert "no microphone, so the built-in demo sound is measured:" in done.err
    assert "sone" in done.out
    assert "uncalibrated" in done.out


def test_without_a_microphone_there_are_no_rows(run, nothing_to_hear):
    done = run("meter", "--format", "csv", "--duration", 1, **nothing_to_hear)
    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert "there is no microphone" in done.err
    assert "--source demo measures the built-in sound" in done.err


def test_a_microphone_that_comes_later_is_waited_for(run, begin, virtual_mic):
    call = ["meter", "-d", "virtual_mic", "--format", "csv", "--duration", "0.5"]
    virtual_mic.unplug()
    try:
        assert run(*call).status == 1
        with begin(*call, "--wait") as meter:
            assert "waiting for the microphone:" in meter.stderr.readline()
            virtual_mic.plug()
            rows = meter.stdout.read().splitlines()
    finally:
        virtual_mic.plug()
    assert meter.returncode == 0
    assert rows[-1].startswith("0.5,")


def test_the_window_opens_on_a_screen(begin, xvfb):
    pytest.importorskip("pyqtgraph.Qt", reason="the window is not installed")
    with begin("meter", "--source", "demo", "--duration", "1") as meter:
        out, errors = meter.communicate()
    assert (meter.returncode, out) == (0, ""), errors
    assert "terminal" not in errors


def test_rows_that_are_late_are_no_output_that_hangs(monkeypatch):
    """On a computer that is too slow the end is reached long before its last row."""
    monkeypatch.setattr("amt_stream.cli.watch.OVERDUE_S", 0.05)
    reached = itertools.count()
    late, stuck = Hanging(lambda: True, lambda: next(reached)), Hanging(lambda: True)
    assert not stuck()
    for _ in range(20):
        assert not late()
        time.sleep(0.01)
    assert stuck()


def test_an_output_that_waits_for_a_reading_does_not_hang(monkeypatch):
    """As while the meter, past the end, waits for an engine that still compiles."""
    monkeypatch.setattr("amt_stream.cli.watch.OVERDUE_S", 0.05)
    is_written = iter([True, False, True, True])
    hangs = Hanging(lambda: next(is_written))
    for expected in (False, False, False, True):
        assert hangs() is expected
        time.sleep(0.1)
