"""How many threads torch uses."""

from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count):
    """Let torch use so many threads, and as many as before at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
