"""Ten hours of sound in two hundred files, killed and gone on with; and the same on Ray."""

import contextlib
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

from amt_stream.offline.jobs import WorkerLost, on_ray
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


def descendants(pid):
    """Processes below one, with their command lines."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True
    ).stdout
    parents = [(int(a), int(b), c) for a, b, c in (v.split(None, 2) for v in listed.splitlines())]
    found, above = [], {pid}
    while above:
        below = [(own, args) for own, parent, args in parents if parent in above]
        found += below
        above = {own for own, _ in below}
    return found


def at_work(pid):
    """Processes of Ray below one that work on a sound."""
    return [own for own, args in descendants(pid) if args.startswith("ray::_in_folder")]


def test_on_ray_the_rows_are_the_same(tmp_path, record):
    """A worker that is killed in the middle of a sound is replaced, and its sound done again."""
    pytest.importorskip("ray")
    files = 10
    archive(tmp_path / "archive", files, 60)
    call = [*ANALYZE, "archive", "--model", "spl", *SETTINGS]
    subprocess.run([*call, "--out", "here"], cwd=tmp_path, check=True)
    began = time.monotonic()
    on = [*call, "--out", "rows", "--ray", "local"]
    killed = 0
    with subprocess.Popen(on, cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None:
            drafts = list((tmp_path / "rows").glob(".*.draft"))
            if killed < 2 and drafts and (workers := at_work(run.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(workers[0], signal.SIGKILL)
                    killed += 1
                time.sleep(0.5)
            time.sleep(0.02)
    assert (run.returncode, killed) == (0, 2)
    require_whole(tmp_path / "rows", files)
    assert rows_in(tmp_path / "rows") == rows_in(tmp_path / "here")
    record(
        f"{files} files on Ray of which two workers were killed: parts that differ from those "
        "made here, are missing or told twice",
        f"0, in {time.monotonic() - began:.0f} s",
    )


def test_what_kills_every_worker_of_ray_is_given_up(tmp_path):
    pytest.importorskip("ray")

    def killed_once(name):
        if not name or not (tmp_path / name).exists():
            (tmp_path / (name or "none")).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    found = dict(on_ray(killed_once, ["a", "", "b"], "local"))
    assert isinstance(found.pop(1), WorkerLost)
    assert found == {0: "a", 2: "b"}
    with pytest.raises(ZeroDivisionError):
        list(on_ray(lambda x: 1 / x, [0], "local"))
