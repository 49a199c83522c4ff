"""Ten hours of sound in two hundred files, killed and gone on with."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
import soundfile

from amt_stream.sessions.manifest import NAME

pytestmark = pytest.mark.soak

FILES, LENGTH_S, FS = 200, 180, 48000
ANALYZE = [sys.executable, "-m", "amt_stream.cli", "analyze"]
SETTINGS = ["--full-scale-db", "100", "--step-ms", "1000", "--resume"]


def archive(folder, files, length_s):
    """So many files of noise, of which each fifth is the same."""
    folder.mkdir()
    rng = np.random.default_rng(6)
    for k in range(files):
        path = folder / f"{k:03d}.wav"
        if k < 5:
            with soundfile.SoundFile(path, "w", FS, 1, "PCM_16") as file:
                for _ in range(length_s):
                    second = rng.standard_normal(FS, dtype=np.float32)
                    file.write(second * 10 ** -(1 + k / 5))
        else:
            path.hardlink_to(folder / f"{k % 5:03d}.wav")


def rows_in(folder):
    return {p.name: p.read_bytes() for p in folder.glob("*.csv")} if folder.exists() else {}


def times_done(folder):
    """How often each part was told to be done."""
    lines = map(json.loads, (folder / NAME).read_text().splitlines())
    return Counter(line["part"] for line in lines if line.get("state") == "done")


def text_of(content):
    """Rows of a part behind the line that names its sound."""
    return [line for line in content.splitlines() if not line.startswith(b"# source")]


def require_whole(rows, files):
    """Each part there once, and those of equal sounds equal."""
    found = rows_in(rows)
    assert sorted(found) == [f"{k:03d}.csv" for k in range(files)]
    for k in range(5, files):
        assert text_of(found[f"{k:03d}.csv"]) == text_of(found[f"{k % 5:03d}.csv"])
    assert times_done(rows) == dict.fromkeys(found, 1)
    assert [path.name for path in rows.iterdir() if path.name.startswith(".")] == []


def until_done(run, rows, count, timeout_s=7200):
    end = time.monotonic() + timeout_s
    while len(rows_in(rows)) < count:
        assert run.poll() is None
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize("model", ["spl", "moore2016"])
def test_ten_hours_in_two_hundred_files(tmp_path, record, model):
    """The last third is timed: processes that were killed tell no one what they took."""
    archive(tmp_path / "archive", FILES, LENGTH_S)
    rows = tmp_path / "rows"
    call = [*ANALYZE, "archive", "--model", model, *SETTINGS, "--out", "rows", "--jobs", "2"]
    for part in (FILES // 3, 2 * FILES // 3):
        with subprocess.Popen(call, cwd=tmp_path, start_new_session=True) as run:
            until_done(run, rows, part)
            os.killpg(run.pid, signal.SIGKILL)
    there = len(rows_in(rows))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(call, cwd=tmp_path, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    require_whole(rows, FILES)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times = (FILES - there) * LENGTH_S / spent_s
    record(
        f"{FILES * LENGTH_S / 3600:g} h in {FILES} files, {model}, two processes, killed twice",
        f"{times:.0f} x real time a core, {after.ru_maxrss / 1000:.0f} MB at most in one of them",
    )
    assert after.ru_maxrss < 600_000
    if model == "spl":
        assert times > 40


def test_memory_does_not_grow_with_a_file(tmp_path, record):
    """Each is analyzed by a process of its own, whose peak is that of what it waited for."""
    peaks = []
    for name, length_s in (("short", 10), ("long", 7200)):
        archive(tmp_path / name, 1, length_s)
        script = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        call = [*ANALYZE, name, "--model", "spl", *SETTINGS, "--out", f"rows-{name}"]
        done = subprocess.run(
            [sys.executable, "-c", script, *call], cwd=tmp_path, check=True, capture_output=True
        )
        peaks.append(int(done.stdout) / 1000)
    record(
        "peak memory of an analysis of a file of 10 s and of one of 2 h, spl",
        f"{peaks[0]:.0f} and {peaks[1]:.0f} MB",
    )
    assert peaks[1] - peaks[0] < 20
