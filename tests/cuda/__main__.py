"""`make cuda`: everything that only a GPU can show, on a computer with one.

Prints a row for each stage, model, many listeners and the engine. Ends with 0 only if all of them
hold, and then writes RESULTS.md beside this file; with 1 if one does not; with 2 where there is no
GPU.
"""

import shutil
import subprocess
import sys
from datetime import UTC, datetime

import torch

from amt_stream.dsp.functional.compiler.gpu import refuse_short_products
from tests.cuda.checks import HEAD, rows
from tests.cuda.results import RESULTS, source_hash

FAILED, NOTHING = 1, 2


def driver():
    """Version of the GPU's driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "unknown"
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.partition("\n")[0].strip() or "unknown"


def triton():
    """Version of Triton, of which the kernels are."""
    try:
        import triton as found
    except ImportError:
        return "missing"
    return str(found.__version__)


def main():
    if not torch.cuda.is_available():
        same = RESULTS.exists() and source_hash() in RESULTS.read_text(encoding="utf-8")
        of = "this source" if same else "another source"
        print(f"nothing was checked: no CUDA device; the last run was of {of}")
        return NOTHING
    refuse_short_products()
    about = (
        f"{torch.cuda.get_device_name()}, driver {driver()}, torch {torch.__version__}, "
        f"triton {triton()}"
    )
    print(f"{about}\n\n{HEAD}", flush=True)
    found = []
    for row in rows():
        found.append(row)
        print(row.told(), flush=True)
    failed = [row.name for row in found if not row.holds]
    if failed:
        print(f"\nnot held: {', '.join(failed)}")
        return FAILED
    lines = "\n".join(row.told() for row in found)
    RESULTS.write_text(
        f"# On a GPU\n\n{datetime.now(UTC):%Y-%m-%d}, {about}. Written by `make cuda`.\n\n"
        f"Source: {source_hash()}\n\n{HEAD}\n{lines}\n",
        encoding="utf-8",
    )
    print(f"\nall held: {RESULTS} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
