"""The block form of linear recurrences against the recurrence itself, sample by sample."""

import pytest
import torch

from amt_stream.dsp.functional.filters.state_space import BLOCK, blocks, run, state_space


def system(dtype, channels=3, size=2):
    generator = torch.Generator().manual_seed(5)

    def draw(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator)

    a = draw(channels, size, size)
    a = 0.95 * a / torch.linalg.matrix_norm(a, 2)[:, None, None]
    return a, draw(channels, size), draw(channels, size), draw(channels)


def by_sample(x, a, b, c, d, s):
    outputs = []
    for sample in x.unbind(-1):
        outputs.append((c * s).sum(-1) + d * sample)
        s = (a @ s[..., None]).squeeze(-1) + b * sample[..., None]
    return torch.stack(outputs, -1), s


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_give_what_the_recurrence_gives(dtype, length):
    parts = system(dtype)
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(2, 4, 3, length, dtype=torch.float64, generator=generator)
    zi = torch.randn(2, 4, 3, 2, dtype=dtype, generator=generator)
    y, zf = state_space(x, *parts, zi)
    expected, last = by_sample(x, *parts, zi)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(zf, last, rtol=0, atol=1e-12)


def test_a_system_made_ready_once_gives_the_same():
    parts = system(torch.float64)
    x, zi = torch.linspace(-1, 1, 300, dtype=torch.float64).view(3, 100), torch.zeros(3, 2).double()
    ready = run(x, blocks(*parts, length=16), zi)
    torch.testing.assert_close(ready, state_space(x, *parts, zi), rtol=0, atol=1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_of_all_arguments(dtype):
    arguments = [v.requires_grad_() for v in system(dtype, channels=2)]
    x = torch.linspace(-1, 1, 2 * (BLOCK + 5), dtype=torch.float64).view(2, -1).requires_grad_()
    zi = torch.full((2, 2), 0.3, dtype=dtype).requires_grad_()
    assert torch.autograd.gradcheck(state_space, (x, *arguments, zi))
