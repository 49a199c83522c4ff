import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from amt_stream import __version__
from amt_stream.cli.command import run_command


@pytest.mark.cases(2)
@pytest.mark.parametrize("arguments", [["--help"], ["meter", "--help"], ["devices"], ["-l"]])
def test_help_and_devices_are_light(virtual_mic, arguments):
    program = (
        "import sys, amt_stream.cli\n"
        "try: status = amt_stream.cli.main(sys.argv[1:])\n"
        "except SystemExit as exit: status = exit.code\n"
        "heavy = {'torch', 'numba', 'scipy', 'soundfile', 'PyQt6', 'pyqtgraph'}\n"
        "heavy |= {'numpy', 'sqlite3'} if '--help' in sys.argv else set()\n"
        "print(status, sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    call = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    assert done.stderr == "0 []\n"
    assert ("virtual_mic" if arguments[-1] in ("devices", "-l") else "usage") in done.stdout


def test_version(run):
    assert run("--version").out == f"amt-stream {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a command"),
        (["mete"], "invalid choice"),
        (["run"], "required: NAME|PATH ("),
        (["analyze"], "FILE"),
        (["meter", "-c", "1,2,3"], "give one channel (1), or two"),
        (["meter", "-c", "0"], "give one channel"),
        (["meter", "--step-ms", "2.5"], "not a whole number from 1 to 86400000 ms"),
        (["meter", "--duration", "0"], "not a number from"),
        (["meter", "--field", "far"], "invalid choice: 'far'"),
        (["meter", "--full-scale-db", "nan"], "not a number from 0 to 250 dB SPL"),
        (["calibrate", "--level", "loud"], "'loud' is not a number from 40 to 170 dB SPL"),
        (["meter", "--terminal", "--source", "demo", "-d", "1"], "leave one out"),
        (["meter", "--terminal", "--source", "demo", "--pcm", "s16le"], "is for standard input"),
        (["meter", "--terminal", "--source", "mic", "--fast"], "a microphone runs in real time"),
        (["meter", "--terminal", "--source", "x.wav", "-r", "48000"], "x.wav has its own"),
        (
            ["meter", "--terminal", "--source", "-", "--pcm", "s16le", "-c", "1,2"],
            "it is the number of channels",
        ),
        (["serve", "--log", "x", "--keep-days", "5"], "add --log-format jsonl"),
        (["serve", "--post-only", "limit"], "--post-only needs a URL: add --post URL"),
    ],
)
def test_wrong_usage(run, arguments, said):
    done = run(*arguments)
    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert said in done.lines[0]


@pytest.mark.parametrize(
    ("option", "hint"), [("--models", ": did you mean --model?"), ("--zzz", ""), ("-z", "")]
)
def test_an_option_that_there_is_not_is_told_with_one_like_it(capsys, option, hint):
    with pytest.raises(SystemExit, match="2"):
        run_command(["analyze", "one.wav", option, "spl"])
    said = f"amt-stream: unrecognized arguments: {option} spl{hint} (see --help)"
    assert capsys.readouterr().err.strip() == said


def test_mistakes_are_told_in_one_sentence(run, virtual_mic, sound_file, tmp_path):
    (tmp_path / "broken.toml").write_text('[model]\nname = "moore2016"\nfield = "far"\n')
    (tmp_path / "text.wav").write_text("not a sound")
    sound_file(np.zeros((480, 3)), name="three.wav")
    mistakes = {
        ("--source", "none.wav"): "there is no file none.wav",
        ("--source", "text.wav"): "not a sound file",
        ("--source", "."): "is a folder",
        ("--source", "three.wav"): "three.wav has 3 channels: choose one (channels 1)",
        ("--source", "three.wav", "-c", "4"): "has no channel 4",
        ("-d", "nobody"): "no input device 'nobody'; PortAudio lists",
        ("-d", "99"): "no input device '99'",
        ("-d", "virtual_mic", "-c", "40"): "has no channel 40",
        ("-d", "virtual_mic", "-r", "700000"): "does not run at 700000 Hz",
        ("--source", "demo", "--preset", "loud"): "no preset 'loud': give",
        ("--source", "demo", "--preset", "broken.toml"): 'broken.toml: model.field is "far"',
    }
    for arguments, said in mistakes.items():
        done = run("meter", "--terminal", *arguments)
        assert (done.status, done.out, len(done.lines)) == (1, "", 1), done.err
        assert said in done.err


TERMINAL, CSV = ["--terminal"], ["--format", "csv"]


@pytest.mark.parametrize(
    ("arguments", "said", "shown"),
    [
        (["-r", 1000], "--samplerate is 1000: the demo sound has higher frequencies", TERMINAL),
        (["-r", 44056], "rates", CSV),
        (["-b", 192000], "--blocksize is 192000: give 1 to 48000 samples", TERMINAL),
    ],
)
def test_what_cannot_run_writes_nothing(run, arguments, said, shown):
    done = run("meter", "--source", "demo", *arguments, *shown)
    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert said in done.err


@pytest.mark.parametrize(("raw", "shown"), [(b"", TERMINAL), (b"123", CSV)])
def test_a_pipe_without_sound_is_an_error(run, raw, shown):
    done = run("meter", "--source", "-", *shown, stdin=raw)
    assert (done.status, done.out) == (1, "")
    assert "standard input ended before one whole sample" in done.lines[-1]


NO_SPACE = "amt-stream: standard output cannot be written: No space left on device\n"
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
PLAIN = ["--full-scale-db", "100", "--model", "spl"]
WRITE = [
    ["--version"],
    ["devices"],
    ["analyze", "a.wav", *PLAIN],
    ["analyze", "a.wav", *PLAIN, "--summary"],
    ["meter", "--source", "a.wav", "--fast", *PLAIN, "--format", "csv"],
    ["meter", "--source", "a.wav", "--fast", *PLAIN, "--format", "jsonl"],
    ["meter", "--source", "a.wav", "--fast", *PLAIN, "--terminal"],
]


@FULL
@pytest.mark.parametrize("arguments", WRITE[2:])
def test_a_full_disk_is_one_sentence(begin, sound_file, arguments):
    sound_file(np.tile([[0.1], [-0.1]], (4800, 2)), name="a.wav")
    with Path("/dev/full").open("w") as full, begin(*arguments, stdout=full.fileno()) as writer:
        assert writer.stderr.read() == NO_SPACE
    assert writer.returncode == 1


@FULL
@pytest.mark.parametrize("arguments", [pytest.param(WRITE[2], marks=pytest.mark.soak), WRITE[4]])
def test_a_full_disk_is_one_sentence_where_nothing_is_kept_back(
    command, sound_file, tmp_path, arguments
):
    sound_file(np.tile([[0.1], [-0.1]], (4800, 2)), name="a.wav")
    started = {"cwd": tmp_path, "env": {**os.environ, "PYTHONUNBUFFERED": "1"}, "text": True}
    with Path("/dev/full").open("w") as full:
        pipes = {"stdout": full, "stderr": subprocess.PIPE}
        done = subprocess.run([*command, *arguments], check=False, **pipes, **started)
    assert (done.returncode, done.stderr) == (1, NO_SPACE)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize(
    ("arguments", "closed"),
    [
        *((arguments, ">&- 2>&-") for arguments in WRITE),
        *((arguments, closed) for arguments in (WRITE[0], WRITE[4]) for closed in (">&-", "2>&-")),
    ],
)
def test_a_closed_stream_is_no_crash(begin, virtual_mic, sound_file, arguments, closed):
    sound_file(np.tile([[0.1], [-0.1]], (4800, 2)), name="a.wav")
    with begin(*arguments, options=closed.split()) as done:
        out, errors = done.communicate()
    # What was to be written there is not lost without a word; the version is.
    lost = closed.startswith(">&-") and arguments != ["--version"]
    assert done.returncode == (1 if lost else 0)
    assert "Traceback" not in errors
    assert "amt-stream:" not in out
    if lost and "2>&-" not in closed:
        assert errors.endswith("standard output cannot be written: it is closed\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize(
    "closed", [">&-", *(pytest.param(one, marks=pytest.mark.soak) for one in ("2>&-", ">&- 2>&-"))]
)
def test_a_stream_that_a_shell_closes_is_no_crash(command, sound_file, tmp_path, closed):
    sound_file(np.tile([[0.1], [-0.1]], (4800, 2)), name="a.wav")
    call = f"exec {shlex.join([*command, *WRITE[4]])} {closed}"
    pipes = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(call, shell=True, check=False, **pipes)
    assert done.returncode == (1 if closed.startswith(">&-") else 0)
    assert "Traceback" not in done.stderr
    assert ("it is closed" in done.stderr) == (closed == ">&-")
    assert "amt-stream:" not in done.stdout


def test_an_interrupt_while_it_starts_is_quiet(command):
    """The signal comes while the command imports what it needs."""
    program = (
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from amt_stream.cli import main\n"
        "sys.exit(main(['devices']))\n"
    )
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_impossible_rate_names_those_that_work(run):
    done = run("meter", "--terminal", "--source", "demo", "-r", 44101)
    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert "44100 and 44120 Hz" in done.err
