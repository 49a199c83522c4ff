"""How a program that is frozen runs what else has a Python of its own."""

import os
import subprocess
import sys

import pytest

from amt_stream.core.processes import module_command, outside_environment

# What a freezer makes of an entry: an executable without a Python beside it.
ENTRY = """#!{python}
import json, sys
sys.frozen, sys.executable = True, __file__
from amt_stream.core.processes import be_interpreter
be_interpreter()
{program}
"""


@pytest.fixture
def frozen(tmp_path):
    """Runs a program as the rest of such an entry; gives what it prints."""

    def run(program, *arguments):
        entry = tmp_path / "frozen"
        entry.write_text(ENTRY.format(python=sys.executable, program=program))
        entry.chmod(0o755)
        done = subprocess.run(
            [entry, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


pytestmark = pytest.mark.skipif(os.name == "nt", reason="an entry here is a script")


def test_a_frozen_program_lists_devices_in_a_process_of_its_own(frozen, virtual_mic):
    program = "from amt_stream.engine import list_devices\nprint(*list_devices(), sep='\\n')"
    assert "virtual_mic" in frozen(program).splitlines()


def test_a_frozen_program_hears_a_microphone(frozen, virtual_mic):
    program = """
import threading
from amt_stream.engine import MicrophoneSource
heard = threading.Event()
source = MicrophoneSource("virtual_mic")
source.start(lambda block, lost=0, flags=0: heard.set())
print(heard.wait(20))
source.stop()
"""
    assert frozen(program) == "True\n"


def test_a_module_has_the_arguments_that_are_meant_for_it(frozen, tmp_path):
    (tmp_path / "told.py").write_text("import sys; print(__name__, sys.argv[1:])")
    program = f"""
import subprocess, sys, os
os.environ["PYTHONPATH"] += os.pathsep + {str(tmp_path)!r}
from amt_stream.core.processes import module_command
subprocess.run(module_command("told", "--run-module", "b c"), check=True)
print(sys.argv[1:])
"""
    assert frozen(program, "own").splitlines() == ["__main__ ['--run-module', 'b c']", "['own']"]


def test_a_program_with_an_interpreter_uses_that():
    assert module_command("told", "a")[-3:] == ["-m", "told", "a"]


@pytest.mark.skipif(sys.platform != "linux", reason="libraries of a frozen program")
def test_other_programs_do_not_find_the_libraries_of_a_frozen_one(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/bundle")
    monkeypatch.delenv("LD_LIBRARY_PATH_ORIG", raising=False)
    assert outside_environment()["LD_LIBRARY_PATH"] == "/opt/bundle"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "LD_LIBRARY_PATH" not in outside_environment()
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/home/of/user")
    assert outside_environment()["LD_LIBRARY_PATH"] == "/home/of/user"
