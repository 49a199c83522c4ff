"""Warnings that torch gives of itself."""

import pytest

IGNORED = [
    # Where it uses TorchScript.
    pytest.mark.filterwarnings("ignore:`torch.jit.(script|trace).*` is deprecated"),
    # Where it has no batching rule.
    pytest.mark.filterwarnings("ignore:There is a performance drop because"),
]
