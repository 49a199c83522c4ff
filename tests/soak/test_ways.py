"""Every sound of the self-test passes in every way, and docs/conformance.json has its readings.

`tests/offline/test_selftest_ways.py` plays a sound of each model.
"""

import json
from pathlib import Path

import pytest

from amt_stream.offline import selftest
from amt_stream.offline.selftest import WAYS
from amt_stream.offline.selftest.report import DIRECTLY, summary_text

pytestmark = pytest.mark.soak
KEPT = json.loads(
    (Path(__file__).parents[2] / "docs" / "conformance.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("model", selftest.models())
def test_every_sound_passes_in_every_way(record, model):
    names = "sound", "reading", "expected", "source"
    before = {tuple(k[name] for name in names): k for k in KEPT if k["model"] == model}
    results = list(selftest.run_checks([model], ways=[*WAYS.values()]))
    record(f"self-test of {model} in {len(WAYS)} ways", summary_text(results))
    for one in results:
        of = one.reading
        kept = before[one.sound, of.what, of.expected, of.source]
        if one.left_out:
            assert kept["not_played"][one.way] == one.left_out
            continue
        assert one.passed, one
        # Of another processor.
        got = kept["got"][one.way or DIRECTLY]
        assert one.got == pytest.approx(got, rel=5e-6, abs=1e-6), one
