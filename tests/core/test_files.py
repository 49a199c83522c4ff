"""Files that are read within bounds, and files that are whole or not there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amt_stream.core.files import NotThatFile, require_file, small_text, whole_text_file

POSIX = pytest.mark.skipif(os.name == "nt", reason="pipes, links and devices of POSIX")
LONG = "n" * 250


@POSIX
def test_what_is_no_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = {}
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), tmp_path / "loop", "n" * 300):
        with pytest.raises(NotThatFile) as refused:
            require_file(Path(path))
        found[Path(path).name[:5]] = str(refused.value)
    assert list(found.values()) == [
        "is a folder",
        "is a named pipe",
        "is a device",
        "cannot be read: Too many levels of symbolic links",
        "cannot be read: File name too long",
    ]
    with pytest.raises(NotThatFile, match="null"):
        require_file(Path("a\0b"))


def test_a_text_is_read_within_its_bound(tmp_path):
    path = tmp_path / "text"
    path.write_text("é" * 10, encoding="utf-8")
    assert small_text(path, 20) == "é" * 10
    with pytest.raises(NotThatFile, match="has more than 19 bytes"):
        small_text(path, 19)


@pytest.mark.parametrize("name", ["rows.csv", LONG, "é" * 120])
def test_a_file_is_there_when_it_is_whole(tmp_path, name):
    target = tmp_path / "new" / name
    with whole_text_file(target) as stream:
        stream.write("a\n")
        assert not target.exists()
    with pytest.raises(TypeError), whole_text_file(target) as stream:
        stream.write(None)
    assert [path.name for path in target.parent.iterdir()] == [name]
    assert target.read_bytes() == b"a\n"


@POSIX
def test_a_planted_link_is_not_followed(tmp_path):
    """Neither one that stands where a draft might, nor one that stands where the file will."""
    victim, target = tmp_path / "victim", tmp_path / "rows.csv"
    victim.write_text("kept")
    (tmp_path / f".rows.csv.{os.getpid()}").symlink_to(victim)
    (tmp_path / ".rows.csv.1-00.draft").symlink_to(victim)
    target.symlink_to(victim)
    with whole_text_file(target) as stream:
        stream.write("rows")
    assert victim.read_text() == "kept"
    assert (target.read_text(), target.is_symlink()) == ("rows", False)


@POSIX
def test_a_draft_of_a_killed_process_goes_and_one_in_use_stays(tmp_path):
    target = tmp_path / "rows.csv"
    program = (
        "import sys, pathlib, time\n"
        "from amt_stream.core.files import whole_text_file\n"
        "with whole_text_file(pathlib.Path(sys.argv[1])) as stream:\n"
        "    print(flush=True); sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    call = [sys.executable, "-c", program, target]
    with subprocess.Popen(call, **pipes) as killed, subprocess.Popen(call, **pipes) as waiting:
        killed.stdout.readline()
        waiting.stdout.readline()
        drafts = {path.name for path in tmp_path.iterdir()}
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(drafts) == 2
        with whole_text_file(target) as stream:
            stream.write("mine")
        (left,) = {path.name for path in tmp_path.iterdir()} - {"rows.csv"}
        assert f".{waiting.pid}-" in left
        waiting.stdin.close()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
