"""Recordings of ISO 532-1:2017, Annex B.4 and B.5, from a folder that AMT_ISO532_1 names.

They come with the standard, and with MoSQITo (validations/sq_metrics/loudness_zwtv/input), and must
not be passed on here. Full scale is 100 dB SPL. What is printed is as jmrplens/phonometry (MIT) has
transcribed it.
"""

import json
import os
import re
from pathlib import Path

import pytest

from amt_stream.cli.command import build_parser, run_chosen

pytestmark = pytest.mark.soak

FOLDER = os.environ.get("AMT_ISO532_1")

PRINTED = "14.3592 15.9534 23.9501 29.3141 4.2998 5.9746 8.0772 9.9756 22.6399 9.6059 38.5363 "
PRINTED += "11.2105 12.6468 10.8817 14.8802 9.7188 8.9063 11.1858 9.2751 7.2593"
NMAX = dict(zip(range(6, 26), map(float, PRINTED.split()), strict=True))
"""In sone, by the number of the signal; 15 is in a diffuse field, the others in a free one."""


@pytest.mark.skipif(FOLDER is None, reason="AMT_ISO532_1 names no folder of the recordings")
def test_they_have_the_maximum_that_is_printed(record, capsys):
    found = {}
    for path in Path(FOLDER).rglob("Test signal *.wav"):
        number = int(re.match(r"Test signal (\d+)", path.name)[1])
        if number in NMAX:
            wanted = ["analyze", str(path), "--summary", "--model", "zwicker"]
            wanted += ["--full-scale-db", "100", "--field", "diffuse" if number == 15 else "free"]
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
