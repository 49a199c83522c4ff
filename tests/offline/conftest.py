"""What several tests of whole sounds use."""

import pytest
import torch


@pytest.fixture
def one_thread():
    """Let torch use one thread, as the self-test does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
