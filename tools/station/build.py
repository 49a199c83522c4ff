"""Build the wheel of amt-stream-station: `make station`.

    python tools/station/build.py [MODEL:FS:CHANNELS ...]

What its models run as goes into build/station, for Linux with x86-64 and aarch64, the wheel into
dist. With models, only these, and for this processor.
"""

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

MODELS = [
    *product(("moore2016", "gm2002"), (48000, 44100), (2,)),
    *product(("zwicker", "bs1770", "spl", "third_octave", "octave"), (48000, 44100), (1, 2)),
]
"""With their sampling rates and numbers of channels."""


def main(wanted: Sequence[str]) -> None:
    shutil.rmtree(BUILT, ignore_errors=True)
    models, targets = MODELS, [*ZIG_TARGETS]
    if wanted:
        each = [one.split(":") for one in wanted]
        models = [(model, int(fs), int(channels)) for model, fs, channels in each]
        targets = [this_target()]
    command = of_this_computer if wanted else of_any_linux
    for path in build_for_engines(models, targets, command, BUILT):
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB", flush=True)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(ROOT / "dist")]
    subprocess.run([*build, str(Path(__file__).parent)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
