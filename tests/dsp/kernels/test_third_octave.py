"""The compiled pass of third octaves against its plain form."""

import pytest
import torch

from amt_stream import Octaves, ThirdOctaves
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.third_octave import third_octaves
from tests.dsp.kernels.forms import plainly
from tests.dsp.noise import noise

CLOSE = {torch.float32: 1e-5, torch.float64: 1e-8}


def design(fs, low_hz, stage=ThirdOctaves):
    stage = stage(fs, low_hz)
    return stage.lengths, stage.poles, stage.gain, stage.smoothing


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("fs", "low_hz", "shape", "stage"),
    [
        (48000, 12.5, (3, 960), ThirdOctaves),
        (192000, 6.3, (1, 3840), ThirdOctaves),
        (11025, 400.0, (2, 2, 882), ThirdOctaves),
        (44100, 63.0, (2, 1323), Octaves),
    ],
)
def test_forms_agree(fs, low_hz, shape, stage, dtype):
    tables = design(fs, low_hz, stage)
    x = noise(*shape).to(dtype)
    zi = 1e-3 * noise(*shape[:-1], 10, tables[2].numel(), seed=1).abs()
    given = x, *tables, zi
    assert compiled(x, *tables[1:], zi)
    got, plain = third_octaves(*given), plainly(third_octaves, *given)
    for a, b in zip([*got[0], got[1]], [*plain[0], plain[1]], strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().max() <= CLOSE[a.dtype] * b.abs().max()


@pytest.mark.parametrize("grad", [False, True])
def test_nan_passes(grad):
    lengths, *tables = design(8000, 500.0)
    x = noise(2, 320)
    x[1, 100] = torch.nan
    zi = torch.zeros(2, 10, tables[1].numel(), dtype=torch.float64)
    frames, zf = third_octaves(x.requires_grad_(grad), lengths, *tables, zi)
    for v in frames:
        assert v[1, ..., 1:].isnan().all()
        assert not v[0].isnan().any()
        assert not v[1, ..., 0].isnan().any()
    assert zf[1].isnan().all()
