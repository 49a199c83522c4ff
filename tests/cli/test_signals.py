"""Commands that are told to end, in every way that a system knows, end: in order, or at once."""

import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cli.forks import ROOT, Command
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="signals and pseudo terminals are POSIX"
)

METER = ["meter", "--source", "demo", "--format", "jsonl"]


def told(meter: Command, number: int = 0, read: bool = True) -> tuple[int, str, str]:
    """Tell a command to end, unless by 0; gives its status and what was still to be read."""
    if number:
        meter.send_signal(number)
    out = meter.stdout.read() if read else ""
    err = meter.stderr.read()
    with meter:
        status = meter.wait()
    assert "Traceback" not in err, err
    return status, out, err


# A command that has begun something, and then does not look whether it is asked to end.
DEAF = """
import os, signal, sys, time
from amt_stream.cli.ending import ending
ending.begin()
ending.hold()
with ending.undoing(lambda: os.write(1, b"undone")):
    os.write(2, b"deaf\\n")
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_measurement_that_is_told_to_end_sums_up(begin, number):
    meter = begin(*METER)
    begun = [meter.stdout.readline() for _ in range(3)]
    status, out, err = told(meter, number)
    assert status == 128 + number
    *rows, last = ("".join(begun) + out).splitlines()
    assert json.loads(last)["summary"]["models"]
    assert all(json.loads(row) for row in rows)
    assert "s measured" in err


def told_twice(command, rng: random.Random, begin_s: float) -> float:
    """Two signals within a millisecond, at any moment of the first seconds; gives how long."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, *METER], **pipes) as meter:
        time.sleep(rng.uniform(0.0, begin_s))
        told_at = time.monotonic()
        for _ in range(2):
            meter.send_signal(signal.SIGINT)
            time.sleep(rng.uniform(0.0, 0.001))
        said = meter.communicate(timeout=PATIENCE_S)[1].decode()
        took_s = time.monotonic() - told_at
    if meter.returncode == 130:
        assert "Traceback" not in said
    else:  # before there is anything to hear it, Python itself ends, and may say where it was
        assert meter.returncode == -signal.SIGINT or "amt_stream" not in said, said
    return took_s


def test_two_signals_at_any_moment_end_it(command):
    rng = random.Random(5)
    for _ in range(2):
        told_twice(command, rng, begin_s=2.0)


@pytest.mark.parametrize("again", [True, False])
def test_a_command_that_does_not_answer_is_ended_at_once_or_after_a_while(again):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", DEAF], **pipes) as deaf:
        assert deaf.stderr.readline() == b"deaf\n"
        deaf.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert deaf.poll() is None
        if again:
            deaf.send_signal(signal.SIGINT)
        out, err = deaf.communicate(timeout=PATIENCE_S)
    assert (deaf.returncode, out) == (130, b"undone")
    assert (b"did not end in time" in err) is not again


def test_what_was_ignored_from_the_start_stays_ignored(begin):
    meter = begin(*METER, options=["nohup"])
    meter.stdout.readline()
    meter.send_signal(signal.SIGHUP)
    for _ in range(5):
        assert "time_s" in json.loads(meter.stdout.readline())
    assert told(meter, signal.SIGTERM)[0] == 143


@pytest.mark.soak
def test_the_tests_run_in_the_background_of_a_shell_and_under_nohup():
    here = f"{__file__}::test_a_command_that_does_not_answer_is_ended_at_once_or_after_a_while"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n1", f"{here}[True]"]
    ignoring = ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *tests]
    done = subprocess.run(ignoring, check=False, capture_output=True, text=True, cwd=ROOT)
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("shown", [["--format", "csv", "--step-ms", 1], ["--terminal"]])
def test_a_reader_that_stops_reading_does_not_keep_it(begin, shown):
    """The pipe is full from the start, and nobody takes anything out of it."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, bytes(4096))
    meter = begin("meter", "--source", "demo", "--duration", 1, *shown, stdout=writing)
    os.close(writing)
    status, _, errors = told(meter, read=False)
    os.close(reading)
    assert status == 1
    assert errors.splitlines()[-1] == (
        "amt-stream: standard output cannot be written: its reader has stopped reading"
    )


def read_late(begin, *source):
    """A meter with a small pipe that nobody reads for 3 s: its status, its lines and its errors."""
    meter = begin("meter", *source, "--format", "jsonl", "--step-ms", 1, "--duration", 3.5)
    fcntl.fcntl(meter.stdout, fcntl.F_SETPIPE_SZ, 4096)
    meter.stdout.readline()
    time.sleep(3)
    status, out, errors = told(meter)
    return status, [*map(json.loads, out.splitlines())], errors.strip()


def test_a_slow_reader_misses_nothing_of_a_sound_that_waits(begin):
    status, lines, errors = read_late(begin, "--source", "demo")
    assert status == 0
    assert "missed" not in errors
    times = [line["time_s"] for line in lines if "time_s" in line]
    assert len(times) > 3400
    np.testing.assert_allclose(np.diff(times), 0.001, atol=1e-6)


def test_what_a_slow_reader_missed_of_a_microphone_is_told(begin, playing, sound_file):
    path = sound_file(0.1 * np.random.default_rng(0).standard_normal((30 * 48000, 2)))
    with playing(path):
        status, lines, errors = read_late(begin, "-d", "virtual_mic")
    assert status == 0
    assert re.search(r"clipped, [1-9]\d* frames missed by a slow output$", errors)
    assert len(lines) < 3500


def test_a_stopped_reader_does_not_keep_it_from_a_signal(begin):
    meter = begin(*METER, "--step-ms", 1)
    fcntl.fcntl(meter.stdout, fcntl.F_SETPIPE_SZ, 4096)
    meter.stdout.readline()
    time.sleep(0.5)
    status, _, errors = told(meter, signal.SIGINT, read=False)
    assert status == 130
    assert "stopped reading" in errors


@pytest.mark.parametrize("options", [["session", "terminal"], ["session"]])
def test_a_terminal_that_is_closed_ends_it(begin, options):
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    call = ["meter", "--terminal", "--source", "demo"]
    meter = begin(*call, options=options, stdin=theirs, stdout=theirs)
    os.close(theirs)
    seen = b""
    while b"LTL" not in seen:
        seen += os.read(ours, 4096)
    os.close(ours)
    status, _, errors = told(meter)
    assert status == 129, errors


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGHUP, 1), (signal.SIGTERM, 2)])
def test_an_analysis_that_is_broken_off_leaves_no_drafts(begin, sound_file, tmp_path, number, jobs):
    for name in ("a.wav", "b.wav"):
        sound_file(np.zeros((600 * 8000, 1)), 8000, subtype="PCM_16", name=name)
    folder = tmp_path / "rows"
    call = ["analyze", "a.wav", "b.wav", "--full-scale-db", 100, "--jobs", jobs, "--out", folder]
    with begin(*call) as analysis:
        give_up = time.monotonic() + 40
        while len([f for f in folder.glob(".*") if f.stat().st_size]) < jobs:
            assert time.monotonic() < give_up
            time.sleep(0.02)
        analysis.send_signal(number)
        errors = analysis.stderr.read()  # until those that it began have ended too
        analysis.wait(PATIENCE_S)
    assert (analysis.returncode, errors) == (128 + number, "")
    assert [path.name for path in folder.iterdir()] == ["_manifest.jsonl"]


def test_a_window_that_is_told_to_end(begin, xvfb):
    pytest.importorskip("pyqtgraph.Qt", reason="the window is not installed")
    with begin("meter", "--source", "demo") as meter:
        time.sleep(2.0)
        meter.send_signal(signal.SIGTERM)
        errors = meter.stderr.read()
        meter.wait(PATIENCE_S)
    assert meter.returncode == 143
    assert "Traceback" not in errors
