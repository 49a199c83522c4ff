"""Logs of meters that are killed, and of a disk that is full or may not be written."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amt_stream.core.formats import LOG_FORMATS
from tests.sessions.conftest import at, frames, new_log, noise_chunks, table
from tests.sessions.test_damage import attack, whole
from tests.sessions.test_kill import check, killed

__all__ = ["at", "frames", "new_log", "noise_chunks", "table", "whole"]

pytestmark = pytest.mark.soak
KILLS = 50
AT_ONCE = 2
DAMAGED = 3400


def test_every_log_of_a_killed_meter_is_readable(new_log, tmp_path, record):
    """At random moments, in all formats, with sound."""
    chosen = random.Random(1)
    lost = []
    for number in range(0, KILLS, AT_ONCE):
        folders = [tmp_path / f"{number + one}" for one in range(AT_ONCE)]
        formats = [LOG_FORMATS[(number + one) % len(LOG_FORMATS)] for one in range(AT_ONCE)]
        ends = killed(folders, formats, lambda: chosen.uniform(0.0, 4.0))
        lost += [check(one, end, new_log) for one, end in zip(folders, ends, strict=True)]
        for folder in folders:
            shutil.rmtree(folder)
    record(f"{KILLS} meters killed: what the log lost", f"{max(lost):.1f} s at most")


@pytest.mark.parametrize("format", LOG_FORMATS)
def test_many_damaged_sessions_are_told_in_sentences(whole, new_log, record, format):
    seen = attack(whole, new_log, DAMAGED, 2, format)
    record(f"damaged sessions, {format}: each a verdict or a sentence", str(seen))


MOUNTED = """
set -e
mount -t tmpfs -o size=400k tmpfs "$1"
dd if=/dev/zero of="$1/filler" bs=1k count=360 2>/dev/null
exec "$2" "$3" "$1"
"""


def test_a_full_tmpfs_and_a_read_only_one(tmp_path, record):
    """In a mount of its own: full for some seconds, then freed; then read-only at the start."""
    program = Path(__file__).with_name("full_disk.py")
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "sh"]
    done = subprocess.run(
        [*command, str(tmp_path), sys.executable, str(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "No space left on device" in told["notes"] or "full" in told["notes"]
    assert "can be written again" in told["notes"]
    assert told["word"] == "intact"
    assert abs(told["rows"] + told["dropped"] - told["expected"]) <= 2 * told["gaps"]
    assert "Read-only file system" in told["refused"]
    record("rows of a log on a full tmpfs that were dropped", str(told["dropped"]))
