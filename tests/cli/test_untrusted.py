"""Names, files and terminals that a command did not choose."""

import contextlib
import json
import os
import re
import time

import numpy as np
import pytest

from amt_stream.cli.watch import Watch
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, SignalSource

HOSTILE = "\x1b]0;owned\x07\x1b[2J\n\u202ea"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\n\u202ea"
POSIX = pytest.mark.skipif(os.name == "nt", reason="names of files are words there")


def harmless(text):
    return text.endswith("\n") and all(line.isprintable() for line in text.split("\n"))


@POSIX
@pytest.mark.parametrize("there", [False, True])
def test_the_name_of_a_file_does_nothing_to_a_terminal(run, tmp_path, there):
    name = f"{HOSTILE}.wav"
    if there:
        (tmp_path / name).write_bytes(b"no sound")
    done = run("analyze", name)
    assert (done.status, done.out) == (1, "")
    assert harmless(done.err)
    assert SHOWN in done.err


@pytest.mark.parametrize(
    "arguments", [[HOSTILE], ["meter", HOSTILE], ["analyze", "a.wav", "--step-ms", HOSTILE]]
)
def test_what_was_typed_does_nothing_to_a_terminal(run, arguments):
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert harmless(f"{done.lines[-1]}\n")
    assert "owned" in done.lines[-1]


@POSIX
def test_a_name_that_is_no_text_is_a_name(run, sound_file, tmp_path):
    """The file of that name is analyzed, and so is the one after it."""
    odd = os.fsdecode(b"\xff.wav")
    for name in ("a.wav", "b.wav"):
        sound_file(np.zeros((960, 2)), name=name)
    (tmp_path / "a.wav").rename(tmp_path / odd)
    done = run("analyze", odd, "b.wav", "--model", "spl", "--summary", PYTHONIOENCODING="ascii")
    assert done.status == 0, done.err
    assert [line.count('"laeq_db"') for line in done.out.splitlines()] == [1, 1]


def test_a_name_that_standard_output_has_no_letters_for(run, sound_file, tone):
    sound_file(tone(94.0, 4.0), name="épreuve.wav")
    done = run("calibrate", "--source", "épreuve.wav", "-c", 1, PYTHONIOENCODING="ascii:strict")
    assert done.status == 0, done.err
    assert done.out.startswith(r"\xe9preuve.wav channel 1: full-scale sine")


@pytest.fixture
def drawing(begin):
    """A command at a terminal, in a `with` block; it ends well, or is killed."""

    @contextlib.contextmanager
    def draw(call, terminal, **settings):
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        pipes = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
        with begin(*call, environment=environment | settings, **pipes) as process:
            yield
            assert process.wait(20) == 0

    return draw


@POSIX
def test_a_screen_shows_a_name_as_its_letters(typist, drawing, sound_file, tone, tmp_path):
    person, terminal = typist
    path = tmp_path / "\x1b]0;owned\x07.wav"
    sound_file(tone(60.0, 20.0), name="a.wav").rename(path)
    call = ["meter", "--terminal", "--source", path, "--model", "spl"]
    with drawing(call, terminal):
        person.wait_for(r"\x1b]0;owned\x07.wav", timeout=60)
        person.press("q")
        person.wait_for("measured")
    assert "\x1b]0" not in person.seen


def test_a_dumb_terminal_gets_lines(typist, drawing):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo", "--fast", "--duration", "1.5"]
    call += ["--model", "spl"]
    with drawing(call, terminal, TERM="dumb"):
        person.wait_for("measured", timeout=60)
    assert "LAF " in person.seen
    assert "\x1b" not in person.seen


def test_a_narrow_terminal_gets_narrow_lines(typist, drawing):
    import termios

    person, terminal = typist
    termios.tcsetwinsize(terminal, (24, 20))
    call = ["meter", "--terminal", "--source", "am-tone", "--model", "spl"]
    with drawing(call, terminal):
        person.wait_for("Run", since=person.wait_for("\x1b[?1049h", timeout=60))
        time.sleep(1.0)
        person.press("q")
        person.wait_for("measured")
    columns = re.findall(r"\x1b\[\d+;(\d+)H", person.seen.partition("\x1b[?1049l")[0])
    assert 0 < max(map(int, columns)) <= 20


def test_a_meter_is_seen_or_written(run):
    done = run("meter", "--source", "demo", "--terminal", "--format", "csv")
    assert (done.status, done.out) == (2, "")
    assert "--terminal shows the meter, and --format csv writes rows: leave one out" in done.err


def test_a_note_that_counts_is_told_once(capsys):
    engine = Engine(SignalSource(), SoundLevel(48000))
    watch = Watch(engine)
    for note in ("", "0.1 s late", "0.25 s late", "", "no sound comes", "12 s late", "13 s late"):
        engine.source.note = note
        watch.look()
    told = [line.removeprefix("amt-stream: ") for line in capsys.readouterr().err.splitlines()]
    assert told == ["0.1 s late", "no sound comes", "12 s late"]


def test_a_file_that_is_cut_off_is_analyzed_and_told(said, sound_file):
    path = sound_file(np.zeros((9600, 2)))
    os.truncate(path, 40000)
    status, out, err = said("analyze", "sound.wav", "--model", "bs1770")
    assert status == 1
    assert '"cut_off": true' in out
    assert "sound.wav is cut off: its header says 9600 samples, but there are" in err
    assert err.endswith("; only the sound up to there is analyzed\n")
    status, _, err = said("meter", "--source", path, "--fast", "--format", "csv", "--model", "spl")
    assert status == 1
    assert err.count("is cut off") == 1


def test_a_beginning_beyond_the_end_is_told(said, sound_file):
    sound_file(np.zeros((4800, 2)))
    for call in (["analyze", "sound.wav"], ["meter", "--format", "csv", "--source", "sound.wav"]):
        status, _, err = said(*call, "--model", "spl", "--from", 7)
        assert status == 1
        assert "at 0.1 s, and --from is 7 s: give less\n" in err
    assert said("analyze", "sound.wav", "--model", "spl", "--from", 7)[1] == ""


@pytest.mark.parametrize(
    ("out", "status", "words"),
    [
        ("", 2, "--out is empty"),
        ("x.ods", 2, "ends in .ods: rows are written as .csv or .jsonl or .parquet or .xlsx"),
        ("x.xlsx", 2, "xlsx is for tables of intervals (--interval 15min) and of whole sounds"),
        ("sound.wav", 1, "sound.wav is one of the files to analyze"),
        ("loop", 1, "loop cannot be read: Too many levels of symbolic links"),
        (f"{'n' * 252}.csv", 1, "cannot be read: File name too long"),
        ("pipe", 1, "pipe exists and is not a file: name another one"),
        ("sound.wav/x.csv", 1, "sound.wav/x.csv cannot be written: File exists"),
    ],
)
@POSIX
def test_what_no_rows_can_be_written_to(said, sound_file, tmp_path, out, status, words):
    path = sound_file(np.zeros((4800, 2)))
    before = path.read_bytes()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    call = ["analyze", "sound.wav", "--model", "bs1770", "--force", "--out"]
    assert said(*call, out)[0] == status
    assert words in said(*call, out)[2]
    assert (path.read_bytes(), len(list(tmp_path.iterdir()))) == (before, 3)


@POSIX
def test_a_name_as_long_as_names_may_be(said, sound_file, tmp_path):
    name = "n" * 251
    sound_file(np.zeros((4800, 2))).rename(tmp_path / f"{name}.wav")
    assert said("analyze", f"{name}.wav", "--model", "bs1770", "--out", f"{name}.csv")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.wav", f"{name}.csv"}


@POSIX
def test_one_file_that_is_none_does_not_end_the_batch(said, sound_file, tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    (tmp_path / "x.raw").write_bytes(bytes(100))
    (tmp_path / "seven.wav").write_bytes(sound_file(np.zeros(100), fs=7).read_bytes())
    sound_file(np.zeros((4800, 2)))
    names = ["pipe.wav", "loop.wav", "x.raw", "seven.wav", "n" * 300, "/dev/zero", "sound.wav"]
    status, out, err = said("analyze", *names, "--model", "bs1770", "--summary")
    assert (status, out.count("\n"), err.count("\n")) == (1, 1, 6)
    assert '"name": "sound.wav"' in out


@POSIX
def test_a_folder_that_may_not_be_searched_is_one_sentence(said, sound_file, tmp_path):
    path = sound_file(np.zeros((4800, 2)))
    chosen = ["--model", "bs1770", "--format", "csv"]
    assert said("analyze", path, *chosen)[0] == 0  # all that is imported later is there
    (tmp_path / "closed").mkdir(mode=0)
    there, user = "closed/x", os.geteuid()
    if user == 0:  # who may search any folder
        os.chown(tmp_path, 65534, -1)
        os.seteuid(65534)
    try:
        for call in (
            ["analyze", "closed/x.wav", *chosen],
            ["analyze", path, "--out", "closed/x.csv", *chosen],
            ["analyze", path, "--calibrations", there, *chosen],
            ["analyze", path, "--calibrator", there, *chosen],
            ["meter", "--source", there, *chosen],
            ["meter", "--source", "demo", "--preset", there],
            ["selftest", "--report", there],
        ):
            status, out, err = said(*call)
            assert (status, out, err.count("\n")) == (1, "", 1), (call, err)
            assert err.endswith("Permission denied\n") or "Permission denied: give" in err, call
    finally:
        os.seteuid(user)


def test_what_stands_in_a_session_does_nothing_to_a_terminal(said, tmp_path):
    (tmp_path / "night").mkdir()
    entry = {"n": 0, "run": 1, "part": "x", "sha256": "", "before": "", "hash": "\x1b[2J"}
    (tmp_path / "night" / "chain.jsonl").write_text(json.dumps(entry) + "\n")
    status, out, err = said("verify", "night")
    assert (status, err) == (1, "")
    assert r"the last hash is \x1b[2J" in out
    assert harmless(out)
