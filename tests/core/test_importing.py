"""Imports that are begun ahead."""

import subprocess
import sys


def test_a_program_that_ends_meanwhile_says_nothing_of_it(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time; time.sleep(0.5); import concurrent.futures.thread"
    )
    program = "from amt_stream.core.importing import import_ahead; import_ahead('slow')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
