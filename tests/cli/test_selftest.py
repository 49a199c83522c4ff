"""`amt-stream selftest` as a stranger runs it."""

import json
import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import amt_stream
from amt_stream import measure
from amt_stream.core.formats import WAYS
from tests.cli.conftest import Done

PACKAGE = Path(amt_stream.__file__).parent


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A copy of the package whose critical bands end 2 % too high; set as PYTHONPATH."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copytree(PACKAGE, folder / "amt_stream")
    table = folder / "amt_stream" / "dsp" / "data" / "zwicker_bands.csv"
    lines = table.read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if line[0] not in "#b")
    for n, line in enumerate(lines[first:], first):
        *others, upper = line.split(",")
        lines[n] = ",".join([*others, str(1.02 * float(upper))])
    table.write_text("\n".join(lines) + "\n")
    return str(folder)


def test_rows_and_report(run, tmp_path):
    report = tmp_path / "reports" / "out.md"
    report.parent.mkdir()
    report.write_text("old")
    asked = "--model", "zwicker,spl", "--way", "pcm16"
    done = run("selftest", *asked, "--report", "reports/out.md", "--force")
    assert (done.status, done.err) == (0, "")
    table, overview, closing = (part.splitlines() for part in done.out.split("\n\n"))
    heading, *rows = table
    # What is no sound reaches a model directly.
    for word in ("model", "expected", "direct", "pcm16", "deviation", "tolerance", "source"):
        assert word in heading
    assert {row.split()[0] for row in rows} == {"pass"}
    assert {row.split()[1] for row in rows} == {"zwicker", "spl"}
    assert any(
        "83.2957 sone" in row and "ISO 532-1:2017, Annex B, signal 1 " in row for row in rows
    )
    words, zwicker, spl = (" ".join(line.split()) for line in overview)
    assert words.startswith("passed direct pcm16 ")
    assert zwicker.startswith("zwicker 20 of 20 21 of 21 ")
    assert spl.startswith("spl - 85 of 85 ")
    both, statement = closing
    assert both.startswith(f"in all: {len(rows)} of {len(rows)} passed, worst deviation ")
    for words in ("published descriptions", "published values (worst deviation", "not certified"):
        assert words in statement

    told = report.read_text()
    assert told.startswith("# Verification of amt_stream")
    for words in (amt_stream.__version__, platform.python_version(), version("torch"), statement):
        assert words in told
    assert sum(line.startswith("| pass |") for line in told.splitlines()) == len(rows)
    assert list(report.parent.iterdir()) == [report]


@pytest.mark.soak
def test_a_wrong_constant_fails_and_is_named(command, wrong, tmp_path):
    model = "--model", "zwicker", "--way", "pcm16"
    call = [*command, "selftest", *model, "--report", "out.md"]
    started = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": wrong}}
    done = Done(subprocess.run(call, check=False, capture_output=True, **started))
    assert done.status == 1
    failed = [line for line in done.out.splitlines() if line.startswith("FAIL")]
    assert len(done.lines) == len(failed) > 1
    first = done.lines[0]
    assert re.fullmatch(
        r"amt-stream: failed: zwicker, 28 third-octave levels: N: 8\d\.\d+ sone", first
    )
    assert any(line.rpartition(": ")[0].endswith(" (pcm16)") for line in done.lines)
    assert f"{len(failed)} of " in done.out.splitlines()[-1]
    report = (tmp_path / "out.md").read_text()
    assert report.count("| FAIL |") == len(failed)
    assert "not verified" in report
    assert "verified against" not in report


def test_each_way_has_a_column(run, tmp_path):
    """Of all ways, unless some are chosen."""
    done = run("selftest", "--model", "spectrum", "--report", "out.md")
    assert (done.status, done.err) == (0, "")
    (heading, *rows), overview, closing = (part.splitlines() for part in done.out.split("\n\n"))
    columns = [heading.index(f" {way} ") + 1 for way in WAYS]
    cells = [[row[column : column + 11].strip() for column in columns] for row in rows]
    cd = list(WAYS).index("cd")
    not_played = [row for row in cells if row[cd] == "not played"]
    assert len(not_played) == 3
    for row in cells:
        numbers = [float(cell) for cell in row if cell != "not played"]
        assert len(numbers) == len(WAYS) - (row in not_played)
        assert numbers == pytest.approx([numbers[0]] * len(numbers), rel=2e-3)
    assert overview[0].split()[:6] == ["passed", *WAYS]
    each = [f"{n} of {n}" for n in (13, 13, 10, 13, 13)]
    assert " ".join(overview[1].split()).startswith(" ".join(["spectrum", *each, "0."]))
    why = "the frequencies of the bins are those of 48 kHz"
    assert closing[0] == f"not played as cd: spectrum, 1002 Hz, 1 Pa (48 kHz): {why}"
    assert closing[2].startswith("in all: 62 of 62 passed, 3 not played, worst deviation ")
    assert "5 published values" in closing[3]
    report = (tmp_path / "out.md").read_text()
    for words in (closing[0], *(f"- {way}: {about}" for way, about in WAYS.items())):
        assert words in report
    assert report.count("| not played |") == 3


def test_ways_are_chosen(run):
    done = run("selftest", "--model", "octave", "--way", "pipe,float")
    assert done.status == 0, done.err
    overview = done.out.split("\n\n")[1].splitlines()
    assert overview[0].split()[:3] == ["passed", "pipe", "float"]
    assert "octave  17 of 17  17 of 17 " in overview[1]


FULL_SCALE = np.sin(2 * np.pi * 997 * np.arange(48000) / 48000)
"""The reference of BS.1770 in one channel: -3.01 LKFS."""


@pytest.mark.parametrize("ends", [32767, 32768])
def test_commands_read_a_full_scale_sine(run, sound_file, ends):
    """In 16 bits, to the end of their range, or scaled so that its peaks are clipped there."""
    samples = np.rint(ends * FULL_SCALE).clip(-32768, 32767).astype(np.int16)
    path, raw = sound_file(samples, subtype="PCM_16"), samples.astype("<i2").tobytes()
    model = "--model", "bs1770"
    live = [*model, "--format", "jsonl"]
    read = {
        "analyze": json.loads(run("analyze", path, *model, "--summary").out),
        "measure": measure(path, models="bs1770").summary,
    }
    for name, done in {
        "file": run("meter", "--source", path, "--fast", *live),
        "pipe": run("meter", "--source", "-", "--pcm", "s16le", "-c", 1, *live, stdin=raw),
        "stream": run("meter", "--source", "-", *live, stdin=path.read_bytes()),
    }.items():
        assert done.status == 0, done.err
        read[name] = json.loads(done.out.splitlines()[-1])["summary"]
    integrated = {name: summary["integrated_lufs"] for name, summary in read.items()}
    assert integrated == pytest.approx(dict.fromkeys(read, -3.01), abs=0.05)
    momentary = {name: summary["max_momentary_lufs"] for name, summary in read.items()}
    assert momentary == pytest.approx(dict.fromkeys(read, -3.01), abs=0.05)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--model", "loud"], 2, "give one or more of moore2016"),
        (["--model", "king2019"], 2, "king2019 has no checks: give some of moore2016"),
        (["--way", "tape"], 2, "'tape' is none of pcm16, float, cd, pipe, device"),
        (["--faults", "--model", "spl"], 2, "--faults tests no model and writes no report"),
        (["--faults", "--way", "cd"], 2, "leave out --model, --way and --report"),
        (["--report", "there.md"], 1, "there.md exists: --force overwrites it"),
        (["--report", ".", "--force"], 1, ". exists"),
        (["--report", "there.md/out.md"], 1, "there.md/out.md cannot be written: "),
    ],
)
def test_refusals(run, tmp_path, arguments, status, said):
    """Told at once, before anything is tested."""
    (tmp_path / "there.md").write_text("mine")
    done = run("selftest", *arguments)
    assert (done.status, done.out) == (status, "")
    assert said in done.lines[-1]
    assert status == 2 or len(done.lines) == 1
    assert (tmp_path / "there.md").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "there.md"]
