"""What `make frozen` leaves out is needed by nothing; the build itself tries what it has made."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "tools" / "frozen" / "meter.spec"

PROGRAM = """
import sys

class LeftOut:
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in sys.argv[1:]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, LeftOut())
from amt_stream.cli.command import run_command
import amt_stream.offline.benchmark, amt_stream.service.web
status = run_command(["meter", "--source", "demo", "--fast", "--duration", "0.5", "--model", "spl",
                      "--format", "csv"])
assert not set(sys.argv[1:]) & set(sys.modules)
sys.exit(status)
"""


def left_out():
    for node in ast.walk(ast.parse(SPEC.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LEFT_OUT":
            return ast.literal_eval(node.value)
    return []


def test_what_is_left_out_of_the_folder_is_not_needed():
    assert {"PyQt6", "scipy"} <= set(left_out())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *left_out()],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "\n0.5," in done.stdout
