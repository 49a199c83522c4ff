"""Zwicker's model, exported once for all tests of a run, whatever their process."""

import fcntl
import os

import numpy as np
import pytest
import torch

from amt_stream import Stream
from amt_stream.cli.command import run_command
from amt_stream.core.built_ahead import cache_folder
from amt_stream.native.build import Request
from amt_stream.native.library import Library
from amt_stream.native.plan import model_for
from amt_stream.native.prebuilt import library_name, linked, of_this_computer, store_library
from amt_stream.native.targets import TARGETS
from tests.native.library import FS, HOST, ZWICKER, columns_of, compiled


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "native"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def folder(shared):
    """The C library; the folder "web" beside it is the package of JavaScript."""
    path, targets = shared / "c", ",".join(TARGETS)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            both = "--c", str(path), "--wasm", str(shared / "web")
            assert run_command(["export", "zwicker", *both, "-c", "1", "--target", targets]) == 0
    return path


@pytest.fixture(scope="session")
def web(folder):
    return folder.with_name("web")


@pytest.fixture
def own_cache(folder, shared, monkeypatch):
    """A cache of this run, where models in Python find the library of the same object."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    request = Request("zwicker", FS, 1, 0.01, (HOST,))
    path = cache_folder() / library_name(request, HOST)
    if not path.exists():
        files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        (built,) = linked(request, files, of_this_computer).values()
        store_library(path, built)


@pytest.fixture(scope="session")
def library(folder, tmp_path_factory):
    return Library(compiled(folder, "zwicker", HOST, tmp_path_factory.mktemp("c") / "zwicker.so"))


@pytest.fixture(scope="session")
def sound():
    """Noise of a second, with a part that is nearly silent."""
    noise = (0.02 * np.random.default_rng(3).standard_normal((1, FS))).astype(np.float32)
    noise[:, 20000:30000] *= 1e-5
    return noise


@pytest.fixture(scope="session")
def right(sound):
    """Frames and readings (frame, column)."""
    with torch.inference_mode():
        outputs = Stream(model_for("zwicker", FS, 1), (1,))(torch.from_numpy(sound))
    return columns_of(outputs, len(ZWICKER))
