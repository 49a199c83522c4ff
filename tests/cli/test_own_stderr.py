"""Standard error has only sentences of the command: none of libraries, and no traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from amt_stream.cli.own_stderr import LIBRARY_MESSAGES
from tests.patience import PATIENCE_S

SCRIPTS = Path(sys.executable).parent
SUMMARY = ["--model", "spl", "--summary", "--full-scale-db", "100"]


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    """MP3 files of 0.5 s of which libmpg123 complains."""
    folder = tmp_path_factory.mktemp("songs")
    noise = 0.1 * np.random.default_rng(0).standard_normal((24000, 2))
    sf.write(folder / "whole.mp3", noise, 48000)
    whole = (folder / "whole.mp3").read_bytes()
    (folder / "whole.mp3").unlink()
    in_frame = whole.index(b"\xff\xfb", len(whole) // 2) + 40
    for name in "abcd":
        (folder / f"{name}.mp3").write_bytes(
            whole[:in_frame] + bytes(200) + whole[in_frame + 200 :]
        )
    return sorted(folder.iterdir())


@pytest.mark.parametrize("more", [[], ["--jobs", "2"]])
def test_a_library_in_c_says_nothing(forks, songs, more):
    done = forks.run("analyze", *songs, *SUMMARY, *more)
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("amt-stream: ") for line in lines), lines
    assert "laeq_db" in done.stdout.decode()


def test_its_messages_can_be_wanted(forks, songs):
    environment = {**os.environ, LIBRARY_MESSAGES: "1"}
    done = forks.run("analyze", songs[0], *SUMMARY, environment=environment)
    assert b"libmpg123" in done.stderr


def test_a_closed_standard_error_stays_closed(forks, songs):
    with forks.begin("analyze", songs[0], *SUMMARY, options=["2>&-"]) as command:
        out, errors = command.communicate()
    assert (command.returncode, errors) == (0, "")
    assert "laeq_db" in out


PROGRAMS = {
    "amt-stream": [SCRIPTS / "amt-stream", "analyze", "nothing.wav"],
    "python -m amt_stream": [sys.executable, "-m", "amt_stream", "analyze", "nothing.wav"],
    "amt-monitor": [SCRIPTS / "amt-monitor", "--source", "demo", "--terminal"],
}
AT_IMPORT = """
import os, signal, sys

def interrupted(event, arguments):
    if event == "import" and arguments[0] == os.environ["INTERRUPT_AT"]:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupted)
"""


@pytest.mark.cases(2)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "module",
    ["amt_stream.cli.ending", "threading", "amt_stream.cli.own_stderr", "argparse", "numpy"],
)
def test_an_interrupt_during_an_import_ends_it_silently(program, module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPT_AT": module}
    done = subprocess.run(
        PROGRAMS[program],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


def test_a_package_that_hears_no_signals_yet_imports_next_to_nothing():
    """Before, Ctrl-C is Python's: every module here is a moment with a traceback."""
    program = "import enum, os, sys; before = {*sys.modules}; import amt_stream.cli; "
    program += "print(*sorted({*sys.modules} - before))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["amt_stream", "amt_stream.cli", "collections.abc", "signal"]


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("screen", "said"),
    [
        ({"DISPLAY": ":987"}, "could not connect to display :987"),
        ({"QT_QPA_PLATFORM": "nothing"}, 'Could not find the Qt platform plugin "nothing"'),
    ],
)
def test_a_screen_that_is_not_there_is_one_sentence(screen, said, tmp_path):
    """Qt aborts the program, after five lines."""
    names = "DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [SCRIPTS / "amt-monitor", "--source", "demo"],
        check=False,
        env={**environment, **screen, "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith(f"amt-monitor: the window cannot open: {said}")
    assert line.endswith("`amt-stream meter --terminal` needs no screen")


def children_of(process):
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return path.read_text().split() if path.exists() else []


@pytest.mark.cases(2)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupt_of_a_terminal_reaches_workers_that_begin(number, songs, tmp_path):
    """It goes to all processes of the foreground, whatever they do at that moment."""
    process = subprocess.Popen(
        [SCRIPTS / "amt-stream", "analyze", *songs, *SUMMARY, "--jobs", "2"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        give_up = time.monotonic() + PATIENCE_S
        while len(children_of(process)) < number and process.poll() is None:
            assert time.monotonic() < give_up
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors == ""
