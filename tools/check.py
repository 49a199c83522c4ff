"""Run linters, types and one quick test of each file at once: `make check`, between two edits.

Print what each says once it has ended; exit with 1 if one of them failed.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "tests": ["pytest", "--quick", "-q", "-n", "2", "--durations=3", "--durations-min=2"],
}


def check(name: str, more: list[str]) -> tuple[str, int, str, float]:
    """Run one of `CHECKS`; gives its name, exit status, output and seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", *CHECKS[name], *(more if name == "tests" else [])]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return name, done.returncode, done.stdout, time.monotonic() - began


def main() -> int:
    """Exit status: 0 if all checks passed."""
    failed = []
    with ThreadPoolExecutor() as pool:
        for running in as_completed([pool.submit(check, name, sys.argv[1:]) for name in CHECKS]):
            name, status, output, seconds = running.result()
            print(f"--- {name}: {seconds:.0f} s\n{output.rstrip()}", flush=True)
            failed += [name] if status else []
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
