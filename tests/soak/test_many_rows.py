"""64 microphones through one model at once, each bit for bit what it is alone."""

import pytest

from tests.engine.test_rows import compare

pytestmark = pytest.mark.soak


@pytest.mark.parametrize(
    ("name", "channels", "block_ms"),
    [
        ("moore2016", 2, 10.0),
        ("moore2016", 1, 1.0),
        ("gm2002", 1, 10.0),
        ("zwicker", 2, 10.0),
        ("bs1770", 2, 10.0),
        ("spl", 1, 1.0),
    ],
)
def test_64_rows_are_64_runs(record, name, channels, block_ms):
    scripts, engine, _ = compare(name, 64, channels, 2.0, block_ms)
    gaps = sum(row.lost_samples > 0 for row in engine.health.microphones.values())
    resets = sum(script.reset_at is not None for script in scripts)
    assert gaps > 40
    assert resets == 32
    record(
        f"64 rows of {name} at {block_ms:g} ms against 64 runs",
        f"bitwise equal: {gaps} with a gap, {resets} reset, 64 calibrations and gains",
    )
