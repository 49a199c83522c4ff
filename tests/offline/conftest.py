"""What several tests of whole sounds use."""

import pytest

from tests.torch_threads import torch_threads


@pytest.fixture
def one_thread():
    """Let torch use one thread, as the self-test does."""
    with torch_threads(1):
        yield
