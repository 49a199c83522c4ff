"""Every float32 stage beside its float64 twin, on 10 s of noise at 48 kHz."""

import numpy as np
import pytest
import torch

import amt_stream as amt
from amt_stream import Stream

FS, SECONDS = 48000, 10
FC = [100.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0]

# A stage, its leading shape, and how far it may be off in dB of the channel's peak.
STAGES = {
    "GammatoneFilterbank": (lambda: amt.GammatoneFilterbank((80.0, 8000.0), FS), (1,), -80),
    "AdaptLoop": (lambda: amt.AdaptLoop(FS, preset="dau1997"), (7,), -90),
    "AdaptLoop, osses2021": (lambda: amt.AdaptLoop(FS, preset="osses2021"), (7,), -90),
    "ModulationFilterbank": (lambda: amt.ModulationFilterbank(FS, FC), (7,), -70),
    "ModulationFilterbank, butterworth": (
        lambda: amt.ModulationFilterbank(FS, FC, filter_type="butterworth"),
        (7,),
        -70,
    ),
    "King2019ModulationFilterbank": (lambda: amt.King2019ModulationFilterbank(FS), (7,), -70),
    "DRNLFilterbank": (lambda: amt.DRNLFilterbank((250.0, 8000.0), FS, n_channels=7), (1,), -80),
    "IHCEnvelope": (lambda: amt.IHCEnvelope(FS), (7,), -80),
    "IHCPaulick2024": (lambda: amt.IHCPaulick2024(FS), (7,), -80),
    "HeadphoneFilter": (lambda: amt.HeadphoneFilter(FS), (1,), -80),
    "MiddleEarFilter": (lambda: amt.MiddleEarFilter(FS), (1,), -80),
    "OuterMiddleEarFilter": (lambda: amt.OuterMiddleEarFilter(FS), (1,), -80),
    "ButterworthFilter": (lambda: amt.ButterworthFilter(2, 2.5, FS), (7,), -80),
}
SCALES = {"IHCPaulick2024": 1e-8}  # displacements in meters


def difference_db(make, lead, scale):
    """Largest difference of both over time, in each channel re its peak: the worst channel's."""
    noise = torch.randn(*lead, FS * SECONDS, generator=torch.Generator().manual_seed(0))
    x = scale * (noise.abs() if isinstance(make(), amt.AdaptLoop) else noise)
    single, double = (Stream(make().to(dtype), lead) for dtype in (torch.float32, torch.float64))
    worst = peak = torch.zeros(())
    for block in x.split(FS // 2, -1):
        y = double(block.double())
        worst = torch.maximum(worst, (single(block) - y).abs().amax(-1))
        peak = torch.maximum(peak, y.abs().amax(-1))
    there = peak > 0
    return float(20 * torch.log10((worst[there] / peak[there]).max()))


@pytest.mark.soak
@pytest.mark.parametrize("name", STAGES)
def test_ten_seconds(record, name):
    make, lead, limit = STAGES[name]
    with torch.no_grad():
        off = difference_db(make, lead, SCALES.get(name, 0.3))
    record(f"float32 re float64, 10 s at 48 kHz, {name}", f"{off:.0f} dB of the channel's peak")
    assert np.isfinite(off)
    assert off <= limit
