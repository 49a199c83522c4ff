import os
import re
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from amt_stream.cli import readings_terminal
from amt_stream.cli.keys import keys_line
from amt_stream.cli.loudness_terminal import LoudnessSeen, line, screen
from amt_stream.cli.terminal import Condition, fitted, shortened
from amt_stream.dsp.scales import phon_to_sone
from amt_stream.meters.rows import fault_words, phon_text, reading_text

LOOK = re.compile(r"\x1b\[[0-9;]*m")
HEALTH = SimpleNamespace(
    device_state="running",
    note="",
    load=0.12,
    block_share_p99=0.3,
    latency_s=0.063,
    overruns=1,
    lost_samples=480,
)
READING = LoudnessSeen(
    time_s=12.3,
    stl=4.0,
    ltl=1.0,
    max_ltl=900.0,
    level_db=(40.0, -100.0),
    calibration="uncalibrated (assumes full-scale sine = 100 dB SPL)",
    calibrated=False,
    settling=True,
    faults="gap clip",
    source="virtual_mic, 48000 Hz",
    health=HEALTH,
)


@pytest.mark.parametrize("phon", [0.0, 20.0, 40.0, 119.9, 120.0])
def test_phon_is_written_with_one_decimal(phon):
    assert phon_text(phon_to_sone(phon)) == f"{phon:.1f}"


def test_beyond_the_table_of_the_standard_phon_is_above_120():
    assert phon_text(1.01 * phon_to_sone(120.0)) == ">120"


def test_faults_in_words():
    assert fault_words(0) == []
    assert fault_words(5) == ["gap", "non finite"]


def test_a_screen_tells_all_and_fits():
    lines = screen(READING, 80)
    text = "\n".join(lines)
    for words in (
        "1.000 sone    40.0 phon",
        ">120 phon",
        "-100.0 dB SPL",
        "uncalibrated",
        "settling",
        "faults gap clip",
        "load 12 %",
        "latency 63 ms",
        "overruns 1, lost 480 samples",
        "virtual_mic, 48000 Hz",
    ):
        assert words in text
    for code in ("\x1b[1m", "\x1b[1;7m", "\x1b[0m"):
        lines = [text.replace(code, "") for text in lines]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [20, 30, 40, 43, 60, 80, 200])
def test_no_terminal_is_so_narrow_that_a_number_is_cut(width):
    values = {"laf_db": 40.25, "laeq_15min_left_db": 71.5, "lcpeak_right_db": 104.75}
    condition = {name: getattr(READING, name) for name in Condition.__dataclass_fields__}
    seen = readings_terminal.ReadingsSeen(**condition, readings={"noise_meter": values})
    shown = [fitted(one, width) for one in readings_terminal.screen(seen, width)]
    text = "\n".join(shown)
    for name, value in values.items():
        assert f" {reading_text(name, value)}" in text
    assert "noise_meter" in text
    assert max(len(LOOK.sub("", one)) for one in shown) <= width


def test_what_has_no_room_is_counted_and_the_keys_stay():
    lines = [str(number) for number in range(30)]
    assert shortened(lines, 80, 30) == lines
    assert shortened(lines, 80, 5) == [
        "0",
        "1",
        "2",
        "... 26 more lines: make the window higher",
        "29",
    ]
    assert shortened(lines, 9, 5)[3] == "... 26 m~"
    assert shortened(lines, 80, 2) == ["0", "1"]


def test_a_line_tells_the_same():
    text = line(READING)
    for words in ("1.000 sone", "40.0 phon", ">120 phon", "uncalibrated", "settling", "gap clip"):
        assert words in text


def test_plain_lines_where_it_is_no_terminal(run, sound_file, tone):
    path = sound_file(np.concatenate([tone(60.0, 1.2), tone(99.0, 1.0)]))
    done = run("meter", "--terminal", "--source", path, "--full-scale-db", 140)
    assert done.status == 0, done.err
    assert 2 <= len(done.out.splitlines()) <= 4
    assert "\x1b" not in done.out
    assert ">120 phon" in done.out.splitlines()[-1]
    assert "uncalibrated" not in done.out


ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def test_it_draws_in_place_and_takes_keys(typist, begin, sound_file, tone):
    person, terminal = typist
    path = sound_file(np.concatenate([tone(80.0, 2.0), tone(40.0, 20.0)]))
    call = ["meter", "--terminal", "--source", path]
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as meter:
        person.wait_for("uncalibrated", since=person.wait_for(ENTER))
        # Louder than anything that comes after 2 s: only a reset makes the maximum forget it.
        person.wait_for("Hz  3.")
        after = person.press("Rr")
        after = highest(person, person.wait_for("1.000 sone", since=after), lambda sone: sone < 1.1)
        after = highest(person, person.press("ru"), lambda sone: sone > 8)
        after = highest(person, person.press("r"), lambda sone: sone < 1.1)
        person.press("q")
        last = person.wait_for("measured", since=person.wait_for(LEAVE, since=after))
    assert meter.returncode == 0
    shown = person.seen[:last]
    for words in ("LTL", "STL", "max LTL", "in left", "latency", "overruns 0", "load"):
        assert words in shown
    farewell = person.seen[person.seen.index(LEAVE) :]
    assert "uncalibrated" in farewell
    assert float(farewell.split("max LTL")[1].split()[0]) < 1.1


def highest(person, since, holds, timeout=20.0):
    """Where a screen ends that tells a maximum of which that holds."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        begin = person.wait_for("max LTL", since=since)
        since = person.wait_for("sone", since=begin)
        if holds(float(person.seen[begin:since].split()[0])):
            return since
    raise AssertionError(person.seen[-2000:])


def counted(person, since, holds=lambda seconds: True, timeout=20.0):
    """The first of the seconds counted, as screens tell them, of which that holds."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        since = person.wait_for(" s counted", since=since)
        seconds = float(person.seen[:since].removesuffix(" s counted").rsplit(" ", 1)[1])
        if holds(seconds):
            return seconds
    raise AssertionError(person.seen[-2000:])


def test_keys_as_the_window_has_them(typist, begin, tmp_path):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo", "--model", "spl"]
    home = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal, environment=home) as meter:
        person.wait_for("Hz  1.")
        shown = person.wait_for(" paused ", since=person.press(" "))
        kept = counted(person, shown)
        assert kept > 0.5
        after = person.wait_for("Hz  3.", since=shown)
        assert counted(person, after) == kept
        # Arrow keys and the like type nothing, though an S is in what F4 sends.
        after = person.press("\x1b[A\x1bOS ")
        counted(person, after, lambda seconds: seconds > kept + 0.5)
        person.wait_for("nothing to undo", since=person.press("u"))
        counted(person, person.press("r"), lambda seconds: seconds < kept)
        counted(person, person.press("u"), lambda seconds: seconds > kept)
        after = person.wait_for("note", since=person.press("m"))
        person.wait_for("marked: doör", since=person.press("dooor\x7f\x7f\x7för\n"))
        person.wait_for("note", since=person.press("m"))
        person.wait_for("marked: mark 2", since=person.press("\n"))
        person.wait_for("logged in", since=person.press("l"))
        person.wait_for("no longer logged", since=person.press("l"))
        after = person.wait_for(" frozen ", since=person.press("f"))
        after = person.wait_for("Keys", since=person.press("?"))
        for words in ("space  pause", "R  reset filters", "q  quit"):
            person.wait_for(words, since=after)
        person.press("?f")
        person.wait_for(" stopped ", since=person.press("s"))
        person.press("q")
        person.wait_for("measured", since=person.wait_for(LEAVE, since=after))
    assert meter.returncode == 0
    assert len(list((tmp_path / "Documents").glob("amt-stream/*/session.json"))) == 1


def test_the_line_of_keys_fits():
    for width in (20, 60, 80, 200):
        assert len(keys_line(width)) <= width or width < 20
        assert keys_line(width).endswith("? keys, q quit")
    assert "space pause, s stop" in keys_line(80)


def test_a_key_writes_the_last_of_the_sound_where_it_is_kept(typist, begin, tmp_path):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo", "--model", "spl"]
    call += ["--event-folder", tmp_path / "sounds", "--keep-sound", "1"]
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as meter:
        person.wait_for("the last 1 s of sound are in memory: i writes a file")
        person.wait_for("Hz  2.")
        after = person.press("i")
        person.wait_for("written", since=after)
        person.press("q")
        person.wait_for("1 sound file in ", since=person.wait_for(LEAVE, since=after))
    assert meter.returncode == 0
    (path,) = (tmp_path / "sounds").iterdir()
    assert soundfile.info(path).frames == 48000
    assert f"written: {path.name}" in person.seen


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (["--source", "demo", "--duration", "2"], "amt-stream: marked: do"),
        (["--source", "short.wav"], "the measurement has ended: mark 'do' comes too late"),
    ],
)
def test_a_note_that_the_end_comes_before_is_kept_or_not_and_that_is_told(
    typist, begin, sound_file, tone, ends, said
):
    person, terminal = typist
    sound_file(tone(60.0, 2.0), name="short.wav")
    call = ["meter", "--terminal", "--model", "spl", *ends]
    with begin(*call, stdin=terminal, stdout=terminal, stderr=terminal) as meter:
        after = person.wait_for(ENTER)
        person.wait_for("Hz  0.", since=after)
        person.press("m")
        person.press("do")
        person.wait_for(said, since=person.wait_for(LEAVE))
    assert meter.returncode == 0


def test_a_signal_too_leaves_the_terminal_as_it_was(typist, begin):
    person, terminal = typist
    call = ["meter", "--terminal", "--source", "demo"]
    with begin(*call, stdin=terminal, stdout=terminal) as meter:
        person.wait_for("LTL", since=person.wait_for(ENTER))
        meter.send_signal(signal.SIGTERM)
        person.wait_for(LEAVE)
    assert meter.returncode == 143
