"""Build the wheel of amt-stream-station: `make station`.

    python tools/station/build.py [x86_64|aarch64|MODEL:FS:CHANNELS ...]

It is for Linux with one kind of processor, by default that of this computer, and goes into dist;
what its models run as goes into build/station. With models, only these, and for this processor
alone.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from amt_stream.core.built_ahead import this_target
from amt_stream.native.build import ZIG_TARGETS
from amt_stream.native.prebuilt import build_for_engines, of_any_linux, of_this_computer

ROOT = Path(__file__).resolve().parents[2]

BUILT = ROOT / "build" / "station"

TARGETS = {
    machine: [target for target, triple in ZIG_TARGETS.items() if triple.startswith(machine)]
    for machine in ("x86_64", "aarch64")
}

MODELS = [
    *product(("moore2016",), (48000, 44100), (2,)),
    *product(("zwicker", "bs1770", "spl", "third_octave", "octave"), (48000, 44100), (1, 2)),
]
"""With their sampling rates and numbers of channels."""


def main(wanted: Sequence[str]) -> None:
    shutil.rmtree(BUILT, ignore_errors=True)
    machine = next((one for one in wanted if one in TARGETS), platform.machine())
    models, targets = MODELS, TARGETS[machine]
    if some := [one.split(":") for one in wanted if one not in TARGETS]:
        models = [(model, int(fs), int(channels)) for model, fs, channels in some]
        targets = [this_target()]
    command = of_this_computer if some else of_any_linux
    for path in build_for_engines(models, targets, command, BUILT):
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB", flush=True)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(ROOT / "dist")]
    platforms = os.environ | {"STATION_PLATFORM": f"manylinux2014_{machine}"}
    subprocess.run([*build, str(Path(__file__).parent)], env=platforms, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
