"""Recordings of ISO 532-1:2017, Annex B.4 and B.5, from a folder that AMT_ISO532_1 names.

They come with the standard, and with MoSQITo (validations/sq_metrics/loudness_zwtv/input), and must
not be passed on here. Full scale is 100 dB SPL. `tools/recordings.py` has what is printed.
"""

import json
import os
import re
from pathlib import Path

import pytest

from amt_stream.cli.command import build_parser, run_chosen
from tools.recordings import DIFFUSE, NMAX

pytestmark = pytest.mark.soak

FOLDER = os.environ.get("AMT_ISO532_1")


@pytest.mark.skipif(FOLDER is None, reason="AMT_ISO532_1 names no folder of the recordings")
def test_they_have_the_maximum_that_is_printed(record, capsys):
    found = {}
    for path in Path(FOLDER).rglob("Test signal *.wav"):
        number = int(re.match(r"Test signal (\d+)", path.name)[1])
        if number in NMAX:
            wanted = ["analyze", str(path), "--summary", "--model", "zwicker"]
            wanted += [
                "--full-scale-db",
                "100",
                "--field",
                "diffuse" if number == DIFFUSE else "free",
            ]
            assert run_chosen(build_parser().parse_args(wanted)) == 0
            found[number] = json.loads(capsys.readouterr().out)["zwicker_nmax_sone"]
    assert set(range(14, 26)) <= found.keys()
    off = {number: nmax / NMAX[number] - 1 for number, nmax in found.items()}
    worst = max(off, key=lambda number: abs(off[number]))
    record(
        f"Nmax of {len(found)} recordings of ISO 532-1:2017 as printed",
        f"worst {abs(off[worst]):.4%}, signal {worst}; signal 22 {found[22]:.4f} sone",
    )
    assert abs(off[worst]) <= 5e-4
