"""Commands that are told to end, in every way that a system knows, end: in order, or at once."""

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="signals and pseudo terminals are POSIX"
)

IN_TIME_S = 8.0  # 2 s, and the rest for a busy machine
METER = ["meter", "--source", "demo", "--format", "jsonl"]

# Runs commands, each in a fork of a process that has imported and compiled everything already.
FORKS = """
import fcntl, gc, json, os, signal, socket, sys, termios
from amt_stream.cli.command import run_command
from amt_stream.cli import main
import amt_stream.engine.runner

run_command(["meter", "--source", "demo", "--duration", "0.1", "--format", "csv"])
sys.stdout.flush()
gc.freeze()
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, fds, *_ = socket.recv_fds(asked, 65536, 3)
    if not request:
        sys.exit()
    arguments, options = json.loads(request)
    if child := os.fork():
        for fd in fds:
            os.close(fd)
        asked.send(str(child).encode())
        asked.recv(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        asked.send(str(status).encode())
        continue
    asked.close()
    for fd, place in zip(fds, (0, 1, 2)):
        os.dup2(fd, place)
        os.close(fd)
    if "session" in options:
        os.setsid()
    if "terminal" in options:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if "nohup" in options:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.stdout = open(1, "w", closefd=False)  # which knows that it is no file now
    sys.exit(main(arguments))
"""


class Forked:
    """A command that runs in a fork: what it writes, and its end."""

    def __init__(self, asked, arguments, options, stdin=None, stdout=None) -> None:
        self._asked = asked
        reading, writing = os.pipe()
        errors, its_errors = os.pipe()
        given = [os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin)]
        given += [writing if stdout is None else os.dup(stdout), its_errors]
        socket.send_fds(asked, [json.dumps([[*map(str, arguments)], options]).encode()], given)
        for fd in {*given, writing}:
            os.close(fd)
        self.out, self.err = os.fdopen(reading, "rb"), os.fdopen(errors, "rb")
        self.pid = int(asked.recv(16))

    def signal(self, number: int) -> None:
        self.told_at = time.monotonic()
        os.kill(self.pid, number)

    def end(self, read: bool = True) -> tuple[int, str, str]:
        """Status and what is still to be read, of a process that ends in time."""
        out = self.out.read().decode() if read else ""
        err = self.err.read().decode()
        self._asked.send(b".")
        status = int(self._asked.recv(16))
        assert time.monotonic() - self.told_at < IN_TIME_S
        assert "Traceback" not in err, err
        self.out.close()
        self.err.close()
        return status, out, err


@pytest.fixture(scope="module")
def asked():
    ours, theirs = socket.socketpair()
    call = [sys.executable, "-c", FORKS, str(theirs.fileno())]
    # OpenMP's pool of threads is not there in a fork, which would wait for it for ever.
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"pass_fds": [theirs.fileno()], "stdout": subprocess.DEVNULL, "env": alone}
    with subprocess.Popen(call, **pipes) as forks:
        theirs.close()
        yield ours
        ours.close()
        forks.wait(20)


@pytest.fixture
def forked(asked):
    """Begin a command in a fork."""

    def begin(*arguments, options=(), **files) -> Forked:
        return Forked(asked, arguments, list(options), **files)

    return begin


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
def test_a_measurement_that_is_told_to_end_sums_up(forked, number):
    meter = forked(*METER)
    begun = [meter.out.readline().decode() for _ in range(3)]
    meter.signal(number)
    status, out, err = meter.end()
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
        said = meter.communicate(timeout=20)[1].decode()
        took_s = time.monotonic() - told_at
    assert took_s < IN_TIME_S
    if meter.returncode == 130:
        assert "Traceback" not in said
    else:  # before there is anything to hear it, Python itself ends, and may say where it was
        assert meter.returncode == -signal.SIGINT or "amt_stream" not in said, said
    return took_s


def test_two_signals_at_any_moment_end_it(command):
    rng = random.Random(5)
    for _ in range(4):
        told_twice(command, rng, begin_s=2.0)


@pytest.mark.parametrize("again", [True, False])
def test_a_command_that_does_not_answer_is_ended_at_once_or_after_a_while(again):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", DEAF], **pipes) as deaf:
        assert deaf.stderr.readline() == b"deaf\n"
        told_at = time.monotonic()
        deaf.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert deaf.poll() is None
        if again:
            deaf.send_signal(signal.SIGINT)
        out, err = deaf.communicate(timeout=20)
    assert time.monotonic() - told_at < IN_TIME_S
    assert (deaf.returncode, out) == (130, b"undone")
    assert (b"could not end in order" in err) is not again


def test_what_was_ignored_from_the_start_stays_ignored(forked):
    meter = forked(*METER, options=["nohup"])
    meter.out.readline()
    meter.signal(signal.SIGHUP)
    for _ in range(5):
        assert "time_s" in json.loads(meter.out.readline())
    meter.signal(signal.SIGTERM)
    assert meter.end()[0] == 143


@pytest.mark.parametrize("shown", [["--format", "csv", "--step-ms", 1], ["--terminal"]])
def test_a_reader_that_stops_reading_does_not_keep_it(forked, shown):
    """The pipe is full from the start, and nobody takes anything out of it."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, bytes(4096))
    meter = forked("meter", "--source", "demo", "--duration", 1, *shown, stdout=writing)
    os.close(writing)
    meter.told_at = time.monotonic()
    status, _, errors = meter.end(read=False)
    os.close(reading)
    assert status == 1
    assert errors.splitlines()[-1] == (
        "amt-stream: standard output cannot be written: whoever reads it has stopped reading"
    )


def test_a_stopped_reader_does_not_keep_it_from_a_signal(forked):
    meter = forked(*METER, "--step-ms", 1)
    fcntl.fcntl(meter.out, fcntl.F_SETPIPE_SZ, 4096)
    meter.out.readline()
    time.sleep(0.5)
    meter.signal(signal.SIGINT)
    status, _, errors = meter.end(read=False)
    assert status == 130
    assert "stopped reading" in errors


@pytest.mark.parametrize("options", [["session", "terminal"], ["session"]])
def test_a_terminal_that_is_closed_ends_it(forked, options):
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    call = ["meter", "--terminal", "--source", "demo"]
    meter = forked(*call, options=options, stdin=theirs, stdout=theirs)
    os.close(theirs)
    seen = b""
    while b"LTL" not in seen:
        seen += os.read(ours, 4096)
    meter.told_at = time.monotonic()
    os.close(ours)
    status, _, errors = meter.end()
    assert status == 129, errors


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGHUP, 1), (signal.SIGTERM, 2)])
def test_an_analysis_that_is_broken_off_leaves_no_drafts(
    command, sound_file, tmp_path, number, jobs
):
    for name in ("a.wav", "b.wav"):
        sound_file(np.zeros((600 * 8000, 1)), 8000, subtype="PCM_16", name=name)
    folder = tmp_path / "rows"
    call = [*command, "analyze", "a.wav", "b.wav", "--full-scale-db", "100"]
    call += ["--jobs", str(jobs), "--out", str(folder)]
    with subprocess.Popen(call, stderr=subprocess.PIPE, cwd=tmp_path) as analysis:
        give_up = time.monotonic() + 40
        while len([f for f in folder.glob(".*") if f.stat().st_size]) < jobs:
            assert time.monotonic() < give_up
            time.sleep(0.02)
        told_at = time.monotonic()
        analysis.send_signal(number)
        errors = analysis.stderr.read().decode()  # until those that it began have ended too
        analysis.wait(20)
    assert time.monotonic() - told_at < IN_TIME_S
    assert (analysis.returncode, errors) == (128 + number, "")
    assert list(folder.iterdir()) == []


def test_a_window_that_is_told_to_end(command, xvfb):
    pytest.importorskip("pyqtgraph.Qt", reason="the window is not installed")
    with subprocess.Popen([*command, "meter", "--source", "demo"], stderr=subprocess.PIPE) as meter:
        time.sleep(2.0)
        told_at = time.monotonic()
        meter.send_signal(signal.SIGTERM)
        errors = meter.stderr.read().decode()
        meter.wait(20)
    assert time.monotonic() - told_at < IN_TIME_S
    assert meter.returncode == 143
    assert "Traceback" not in errors
