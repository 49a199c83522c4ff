import subprocess
import sys

import numpy as np
import pytest

from amt_stream import __version__


@pytest.mark.parametrize("arguments", [["--help"], ["meter", "--help"], ["devices"], ["-l"]])
def test_help_and_devices_are_light(virtual_mic, arguments):
    program = (
        "import sys, amt_stream.cli\n"
        "try: status = amt_stream.cli.main(sys.argv[1:])\n"
        "except SystemExit as exit: status = exit.code\n"
        "heavy = {'torch', 'numba', 'scipy', 'soundfile', 'PyQt6', 'pyqtgraph'}\n"
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
        ([], "say what to do"),
        (["mete"], "invalid choice"),
        (["analyze"], "FILE"),
        (["meter", "-c", "1,2,3"], "give one channel (1), or two"),
        (["meter", "-c", "0"], "give one channel"),
        (["meter", "--step-ms", "2.5"], "not a whole number from 1 to 60000 ms"),
        (["meter", "--duration", "0"], "not a number from"),
        (["meter", "--field", "far"], "invalid choice: 'far'"),
        (["meter", "--full-scale-db", "nan"], "not a number from 0 to 250 dB SPL"),
        (["calibrate", "--level", "loud"], "'loud' is not a number from 40 to 170 dB SPL"),
        (["meter", "--terminal", "--source", "demo", "-d", "1"], "leave one out"),
        (["meter", "--terminal", "--source", "demo", "--pcm", "s16le"], "is for standard input"),
        (["meter", "--terminal", "--source", "mic", "--fast"], "a microphone takes its time"),
        (["meter", "--terminal", "--source", "x.wav", "-r", "48000"], "x.wav has its own"),
        (["meter", "--terminal", "--source", "-", "-c", "1,2"], "how many channels there are"),
    ],
)
def test_wrong_usage(run, arguments, said):
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.lines[-1]


def test_mistakes_are_told_in_one_sentence(run, virtual_mic, sound_file, tmp_path):
    (tmp_path / "broken.toml").write_text('[model]\nname = "moore2016"\nfield = "far"\n')
    (tmp_path / "text.wav").write_text("not a sound")
    sound_file(np.zeros((480, 3)), name="three.wav")
    mistakes = {
        ("--source", "none.wav"): "there is no file none.wav",
        ("--source", "text.wav"): "not a sound file",
        ("--source", "."): "is a folder",
        ("--source", "three.wav"): "three.wav has 3 channels: choose one",
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


def test_an_impossible_rate_names_those_that_work(run):
    done = run("meter", "--terminal", "--source", "demo", "-r", 44101)
    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert "44100 and 44120 Hz" in done.err
