"""Build the wheel and the source archive in build/release, and check them: `make release`.

    python tools/release.py [PYTHON ...]

With interpreters, the wheel is installed in a new environment of each, with the versions of
constraints.txt, and has to pass its self-test there, also where a release is refused afterwards.
docs/install.json keeps what that took.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "release"
FIGURES = ROOT / "docs" / "install.json"
VERSIONED = {  # where the version stands in each file
    "amt_stream/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## \[(.+?)\]",
    "codemeta.json": r'^  "version": "(.+)",$',
    "tools/conda/recipe.yaml": r'^  version: "(.+)"$',
}
ASKED = """
import json, platform, torch
print(json.dumps({"python": platform.python_version(), "torch": torch.__version__}))
"""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each of the files of `VERSIONED` gives; the changelog, its newest."""
    return {name: find(pattern, root / name) for name, pattern in VERSIONED.items()}


def find(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "none"


def hindrances(root: Path = ROOT) -> list[str]:
    """Why this tree cannot be released, a sentence each."""
    found = versions(root)
    reasons = []
    if len(set(found.values())) > 1:
        told = ", ".join(f"{version} in {name}" for name, version in found.items())
        reasons.append(f"the version differs between files, {told}: make them equal")
    for path in sorted((root / "docs" / "changes").glob("+*")):
        reasons.append(f"{path.relative_to(root)} is in no release yet: run towncrier build")
    return reasons


def run(*command: str | Path) -> str:
    """Standard output of a command, which has to succeed; it is shown."""
    print("$", *command, flush=True)
    done = subprocess.run(
        [*map(str, command)], check=False, cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} ended with status {done.returncode}")
    return done.stdout


def build() -> Path:
    """The wheel, made of the source archive, both of them checked."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    run(sys.executable, ROOT / "tools" / "native.py")
    run(sys.executable, "-m", "build", "--outdir", OUTPUT, ROOT)
    (wheel,) = OUTPUT.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(OUTPUT.iterdir()))
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    return wheel


def tried(wheel: Path, interpreter: str) -> dict[str, Any]:
    """What the wheel took in a new environment of an interpreter, and what its self-test found."""
    with tempfile.TemporaryDirectory() as folder:
        run(interpreter, "-m", "venv", "--without-pip", folder)
        python, command = (Path(folder, "bin", name) for name in ("python", "amt-stream"))
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
        ]
        run(*pip, "--constraint", ROOT / "constraints.txt", wheel)
        about = json.loads(run(python, "-c", ASKED))
        gigabytes, of_these_compiled = size(Path(folder))
        passed = re.findall(r"^in all: (\d+) of \1 passed", run(command, "selftest"), re.MULTILINE)
    return {
        "system": sys.platform,
        **about,
        "gigabytes": round(gigabytes, 2),
        "of_these_compiled": round(of_these_compiled, 2),
        "readings_passed": int(passed[0]),
    }


def size(folder: Path) -> tuple[float, float]:
    """GB of the files of a folder, and of those that are compiled Python."""
    sizes = [(path.suffix == ".pyc", path.lstat().st_size) for path in folder.rglob("*")]
    return sum(n for _, n in sizes) / 1e9, sum(n for compiled, n in sizes if compiled) / 1e9


def main(interpreters: Sequence[str]) -> int:
    reasons = hindrances()
    if reasons and not interpreters:
        sys.exit("\n".join(reasons))
    wheel = build()
    if interpreters:
        lines = [json.dumps(tried(wheel, each)) for each in interpreters]
        FIGURES.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    if reasons:
        sys.exit("\n".join(reasons))
    print(*sorted(OUTPUT.iterdir()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
