"""Noise that is the same for the same seed."""

import torch


def noise(*shape, dtype=torch.float64, seed=0):
    """White noise of standard deviation 1, drawn in double precision."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
