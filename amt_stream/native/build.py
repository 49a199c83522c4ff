"""Makes the files of a model in C, in a process of its own (see `kernels`), and links them.

The C compiler that links is that of the system, or Zig from PyPI.
"""

import dataclasses
import gc
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amt_stream.core.built_ahead import NotBuilt as NotBuilt  # noqa: PLC0414
from amt_stream.core.errors import Refusal
from amt_stream.core.importing import install
from amt_stream.core.processes import module_command
from amt_stream.native.kernels import environment, kernel_code
from amt_stream.native.targets import files_of


@dataclass(frozen=True)
class Request:
    """What to make: a model at `fs` Hz in blocks of `block_s` seconds, for these targets.

    for_engine: with all outputs of the model, which an engine makes rows of, and without readings
    """

    model: str
    fs: int
    channels: int
    block_s: float
    targets: tuple[str, ...]
    for_engine: bool = False


def build_library(request: Request) -> dict[str, bytes]:
    """The files of a model by name: runtime, plan, description, and an object for each target.

    Raises NotBuilt with the reason.
    """
    return made_by(__name__, json.dumps(dataclasses.asdict(request)))


def made_by(module: str, *arguments: str) -> dict[str, bytes]:
    """The files, by name, that a module writes as a program into the folder it is given.

    Raises NotBuilt with the reason.
    """
    with environment() as variables, tempfile.TemporaryDirectory() as folder:
        command = module_command(module, folder, *arguments)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            *_, why = done.stderr.strip().splitlines() or ["it ended without a word"]
            raise NotBuilt(why)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _make(folder: Path, request: Request) -> None:
    from amt_stream.native.limit_kernels import limit_codes
    from amt_stream.native.machine import MACHINES, Program, make_object
    from amt_stream.native.plan import host_plan
    from amt_stream.native.source import lv2_manifest, plan_description, plan_header, runtime
    from amt_stream.native.trial import PlanTrial

    given = request.fs, request.channels, request.block_s, request.for_engine
    plan = host_plan(request.model, *given)
    codes = [kernel_code(plan.home, name, plan.dtype) for name in plan.kernels]
    functions = {"entry": kernel_code(plan.home, f".{plan.entry}", plan.dtype)} | limit_codes()
    constants = {"tables": plan.tables, "initial": plan.initial}
    program = Program(plan.model, codes, functions, constants)
    trial = PlanTrial(plan, program)
    trial.compare()
    header, about, manifest, *objects = files_of(plan.model, request.targets)
    texts = runtime() | {
        header: plan_header(plan, trial.scratch),
        about: plan_description(plan),
        manifest: lv2_manifest(plan),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, target in zip(objects, request.targets, strict=True):
        (folder / name).write_bytes(make_object(program, MACHINES[target]))


SOURCES = "amt.c", "amt_numba.c"
SHARED = "-std=c11", "-O2", "-shared", "-fPIC", "-s"

ZIG_TARGETS = {
    "x86-64-v3": "x86_64-linux-gnu.2.17",
    "x86-64": "x86_64-linux-gnu.2.17",
    "aarch64": "aarch64-linux-gnu.2.17",
}
"""What Zig calls the processors, with the oldest C library that NumPy's wheels run on."""


def zig() -> list[str]:
    """The command of Zig's C compiler. Raises NotBuilt if it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        raise NotBuilt(f"Zig is not installed, which links it: {install('native')}")
    return [*module_command("ziglang"), "cc"]


def system_compiler() -> list[str]:
    """The command of a C compiler for this computer. Raises NotBuilt if there is none."""
    return [found] if (found := shutil.which("cc")) else zig()


def link(folder: Path, model: str, target: str, command: Sequence[str], out: str) -> None:
    """Compile the runtime with a model's object, all in `folder`, to the file `out` there.

    command: a compiler with its options

    Raises NotBuilt with what the compiler says.
    """
    plan = f'-DAMT_PLAN="{model}_plan.h"'
    run_linker(model, folder, [*command, plan, *SOURCES, f"{model}-{target}.o", "-lm", "-o", out])


def run_linker(what: str, folder: Path, whole: Sequence[str]) -> None:
    """Run the command of a compiler in a folder. Raises NotBuilt with what it says of `what`."""
    done = subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [whole[0]]
        why = next((line for line in said if "error:" in line), said[-1])
        raise NotBuilt(f"{what} cannot be linked: {why}")


def run_maker(make: Callable[[Path, Sequence[str]], None]) -> None:
    """Be the program that `made_by` starts: make files in a folder, of the other arguments."""
    gc.disable()  # it looks through all that a compiler makes: a tenth of the time
    try:
        make(Path(sys.argv[1]), sys.argv[2:])
    except (Refusal, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run_maker(lambda folder, given: _make(folder, Request(**json.loads(given[0]))))
