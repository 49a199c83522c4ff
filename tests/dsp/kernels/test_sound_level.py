"""The compiled pass of sound level against its plain form, sample by sample."""

import pytest
import torch

from amt_stream import SoundLevel
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.peak import ENDLESS, ending
from amt_stream.dsp.functional.sound_level import (
    LEFT_AT,
    held_maximum,
    sound_levels,
    states,
)
from tests.dsp.noise import noise

CLOSE = {torch.float32: 1e-5, torch.float64: 1e-12}


def design(fs):
    stage = SoundLevel(fs, z_high_pass=1.0)
    return stage.lengths, stage.coefficients, stage.phases


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("fs", "shape"), [(48000, (3, 1440)), (11025, (2, 2, 882))])
def test_forms_agree(fs, shape, dtype):
    lengths, coefficients, phases = design(fs)
    phases = phases.to(dtype)
    x = noise(*shape).to(dtype)
    x[0, ..., 100:600] = 0  # I is held meanwhile
    zi = noise(*shape[:-1], states(phases), seed=1).abs()
    zi[..., LEFT_AT - 1], zi[..., LEFT_AT] = 5.0, 700.0
    assert compiled(x, coefficients, phases, zi)
    got = sound_levels(x, lengths, coefficients, phases, zi)
    plain = sound_levels(x.clone().requires_grad_(), lengths, coefficients, phases, zi)
    for a, b in zip([*got[0], *got[1:]], [*plain[0], *plain[1:]], strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().max() <= CLOSE[a.dtype] * b.abs().max()


def test_the_held_value_of_a_long_sound():
    """Longer than one piece of the plain form: from 3, until a later 2 is higher."""
    count, decay = 2**16 + 1000, torch.tensor(1 - 1e-5, dtype=torch.float64)
    x = torch.zeros(count, dtype=torch.float64)
    x[60_000] = 2.0
    fall = decay ** torch.arange(count + 1, dtype=torch.float64)
    expected = 3 * fall[1:]
    expected[60_000:] = 2 * fall[: count - 60_000]
    got = held_maximum(x, decay, torch.tensor(3.0, dtype=torch.float64))
    assert (got / expected - 1).abs().max() <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_passes(dtype):
    lengths, coefficients, phases = design(48000)
    phases = phases.to(dtype)
    x = noise(2, 1440).to(dtype)
    x[1, 700] = torch.nan
    zi = ending(torch.zeros(2, states(phases), dtype=torch.float64), ENDLESS, LEFT_AT)
    for given in (x, x.clone().requires_grad_()):
        frames, *_ = sound_levels(given, lengths, coefficients, phases, zi)
        for v in frames:
            assert v[1, ..., 1:].isnan().all()
            assert not v[0].isnan().any()
            assert not v[1, ..., 0].isnan().any()
