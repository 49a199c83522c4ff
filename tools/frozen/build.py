"""Build the meter as a folder that needs no Python, and try it: `make frozen` (packaging.md)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPEC = Path(__file__).with_name("meter.spec")
DEMO = ["--source", "demo", "--model", "spl"]
"""Of a model with few kernels: none of them is compiled yet."""
SOUNDS = ["one.wav", "two.wav"]

TRIES = {  # what is tried: program and arguments, and what it has to write
    "the version": (["amt-stream", "--version"], "amt-stream "),
    "rows of the demo sound": (
        ["amt-stream", "meter", *DEMO, "--fast", "--duration", "1", "--format", "csv"],
        "\n1.0,",
    ),
    "two files, each in a process": (
        ["amt-stream", "analyze", "--summary", "--jobs", "2", "--model", "bs1770", *SOUNDS],
        SOUNDS[1],
    ),
    "the list of inputs": (["amt-stream", "devices"], ""),
    "the window": (["amt-monitor", *DEMO, "--duration", "2"], ""),
}


def main() -> None:
    """Build, try, and say how large it is; ends with a sentence where something is wrong."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "frozen").resolve()
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--workpath", str(out / "work"), "--distpath", str(out)]
    if subprocess.call([*command, str(SPEC)], cwd=ROOT):
        sys.exit("PyInstaller could not build it; its messages are above.")
    folder = out / "amt-stream"
    try_all(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.0f} MiB")


def try_all(folder: Path) -> None:
    """Run each of TRIES without a screen, and without what Python there is."""
    with tempfile.TemporaryDirectory() as place:
        environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "PYQT"))}
        environment |= {"QT_QPA_PLATFORM": "offscreen", "NUMBA_CACHE_DIR": place}
        environment |= {"HOME": place, "XDG_CONFIG_HOME": place}
        for name in SOUNDS:
            write_tone(Path(place, name))
        for what, ((program, *arguments), written) in TRIES.items():
            done = subprocess.run(
                [folder / program, *arguments],
                check=False,
                capture_output=True,
                text=True,
                cwd=place,
                env=environment,
                timeout=300,
            )
            failed = done.returncode or "Traceback" in done.stderr or written not in done.stdout
            if failed:
                sys.exit(f"{what} failed, status {done.returncode}:\n{done.stdout}{done.stderr}")
            print(f"{what}: as it should be", flush=True)


def write_tone(path: Path) -> None:
    """Five seconds of 1 kHz."""
    import numpy as np
    import soundfile

    soundfile.write(path, 0.1 * np.sin(2 * np.pi * 1000 * np.arange(5 * 48000) / 48000), 48000)


if __name__ == "__main__":
    main()
