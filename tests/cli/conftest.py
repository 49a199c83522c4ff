"""The command as a stranger runs it, and sounds in files for it."""

import contextlib
import csv
import json
import os
import re
import select
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import soundfile

from amt_stream.cli.command import build_parser, run_chosen, run_command
from amt_stream.core.compiling import WORDS

FULL_SCALE_DB = 100.0
LOUDNESS = ["stl_sone", "ltl_sone", "stl_phon", "ltl_phon", "max_ltl_sone", "ltl_n5_phon"]
COLUMNS = [
    "time_s",
    "utc",
    "sample",
    *LOUDNESS,
    "fault",
    "settling",
    "settling_columns",
    "clipped_columns",
    "calibrated",
]
"""Of rows as they are by default."""


COMPILES = re.compile(rf"^amt-stream: {re.escape(WORDS)}.*\n", re.MULTILINE)


class Done:
    """A command that has ended: its status, and what it wrote.

    But for what it says on the first start, where its kernels are not on the disk yet.
    """

    def __init__(self, process) -> None:
        self.status = process.returncode
        self.out, self.err = process.stdout.decode(), COMPILES.sub("", process.stderr.decode())
        self.lines = self.err.splitlines()
        assert "Traceback" not in self.err, self.err

    @property
    def rows(self):
        return Table(self.out).rows

    @property
    def about(self):
        return Table(self.out).about


class Table:
    """CSV as the package writes it: `about` its header, and `rows` by column, numbers as floats."""

    def __init__(self, text) -> None:
        lines = text.splitlines()
        comments = [line[2:] for line in lines if line.startswith("# ")]
        self.about = {k: json.loads(v) for k, v in (line.split(": ", 1) for line in comments)}
        table = csv.DictReader(lines[len(comments) :])
        rows = list(table)
        self.rows = {name: np.array([number(r[name]) for r in rows]) for name in table.fieldnames}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


COMMAND = [sys.executable, "-m", "amt_stream.cli"]


@pytest.fixture
def printed(capsys):
    """What a command prints that runs here, where everything is imported already."""

    def run(*arguments):
        args = build_parser().parse_args([*map(str, arguments)])
        assert run_chosen(args) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def said(capsys, monkeypatch, tmp_path):
    """What a command line gives that runs here, in an empty folder: its status, out and err."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            status = run_command([*map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def summary_of(said):
    """The summary of `analyze`, and what it says on standard error."""

    def summary(*typed):
        status, out, err = said("analyze", "--summary", *typed)
        assert status == 0, err
        return json.loads(out), err.replace("amt-stream: ", "").splitlines()

    return summary


@pytest.fixture
def command():
    """The beginning of the command line."""
    return list(COMMAND)


SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture
def run(forks, tmp_path):
    """Run the command, which sees no screen, in an empty folder, and wait for its end."""

    def wait_for(*arguments, stdin=b"", **settings):
        environment = {k: v for k, v in os.environ.items() if k not in SCREENS} | settings
        given = {"stdin": stdin, "environment": environment, "folder": tmp_path}
        return Done(forks.run(*arguments, **given))

    return wait_for


@pytest.fixture
def begin(forks, tmp_path):
    """Begin the command in an empty folder, for a `with` block; `tests.cli.forks` has the rest."""
    return partial(forks.begin, folder=tmp_path)


@pytest.fixture
def read_table():
    """Read a file of rows."""
    return lambda path: Table(path.read_text())


@pytest.fixture
def sound_file(tmp_path):
    """Write samples (time,) or (time, channel), fractions of full scale, to a file."""

    def write(samples, fs=48000, name="sound.wav", subtype="FLOAT"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        soundfile.write(path, samples, fs, subtype=subtype)
        return path

    return write


@pytest.fixture
def tone():
    """Make a tone (time, 2) by level in dB SPL, where full scale is 100 dB SPL."""

    def make(level_db, duration, frequency=1000.0, fs=48000):
        time_s = np.arange(round(duration * fs)) / fs
        peak = 10 ** ((level_db - FULL_SCALE_DB) / 20)
        return np.repeat(peak * np.sin(2 * np.pi * frequency * time_s)[:, None], 2, axis=1)

    return make


@pytest.fixture
def playing(virtual_mic):
    """Play a file into the virtual microphone while a `with` block runs."""

    @contextlib.contextmanager
    def play(path):
        player = ["paplay", "--device=speaker", "--latency-msec=500", str(path)]
        with subprocess.Popen(player, env={**os.environ, **virtual_mic.settings()}) as process:
            yield
            process.terminate()

    return play


class Typist:
    """A person at a pseudo terminal: waits for words, presses keys."""

    def __init__(self, descriptor) -> None:
        self._descriptor = descriptor
        self.seen = ""

    def wait_for(self, words, since=0, timeout=60.0):
        """The place after `words`, which must appear after the place `since`."""
        end = time.monotonic() + timeout
        while words not in self.seen[since:]:
            left = end - time.monotonic()
            assert left > 0, f"{words!r} did not come: {self.seen[-2000:]!r}"
            if select.select([self._descriptor], [], [], left)[0]:
                self.seen += os.read(self._descriptor, 65536).decode(errors="replace")
        return self.seen.index(words, since) + len(words)

    def press(self, key):
        os.write(self._descriptor, key.encode())
        return len(self.seen)


@pytest.fixture
def typist():
    """A typist, and the terminal for a program; it must be left as it was."""
    if sys.platform == "win32":
        pytest.skip("pseudo terminals are POSIX")
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before = termios.tcgetattr(theirs)
    yield Typist(ours), theirs
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def nothing_to_hear(tmp_path):
    """Settings in which there is no microphone."""
    speaker = tmp_path / "speaker_only.conf"
    speaker.write_text("pcm.!default { type asym playback.pcm { type null } }")
    return {"ALSA_CONFIG_PATH": str(speaker), "PULSE_SERVER": "none"}
