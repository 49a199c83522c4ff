"""Zwicker's model as a CLAP plug-in, in a small host that plays a sound in a thread of its own.

The host checks that the sound passes, that nothing is allocated while it does, that parameters
have a text and stay in their range, and that a project stores and restores the gain.
"""

import numpy as np
import pytest

from amt_stream import __version__
from tests.native.clap import heard, host_of, plugin_of
from tests.native.library import FS, HOST, ZWICKER, Instance, compiled, worst


@pytest.fixture(scope="module")
def made(folder, tmp_path_factory):
    home = tmp_path_factory.mktemp("clap")
    return host_of(folder, home / "host"), plugin_of(folder, "zwicker", home)


def latest(frames, block, count):
    """The last frame (block, column) that each block of so many samples has completed."""
    ends = np.minimum(np.arange(block, count + block, block), count)
    of_frames = ends // 480 * 5 - 1
    return np.where(of_frames[:, None] >= 0, frames[of_frames], 0)


@pytest.mark.parametrize("block", [64, 480, 2000])
def test_its_values_are_those_of_python_and_a_gain_is_of_its_sample(made, sound, right, block):
    quiet = sound.copy()
    quiet[:, :20001] /= 2
    _, values = heard(*made, quiet, block, "0:2", "20001:1")
    assert worst(values[:, :-1], latest(right, block, FS)) < 4e-7
    assert not values[:, -1].any()


def test_it_says_what_it_is(made, sound):
    (about, *parameters), _ = heard(*made, sound[:, :480], 480)
    name = "amt_stream.zwicker-1-48000|zwicker, 1 ch, 48000 Hz"
    assert about == f"{name}|{__version__}|analyzer|mono"
    assert parameters[:2] == ["pascal for full scale|32|0.0001|10000|1", "n|8|0|1e+09|0"]
    assert [line.split("|")[0] for line in parameters[1:]] == [*ZWICKER, "invalid"]


def test_its_host_may_read_parameters_and_the_state_while_it_plays(
    folder, tmp_path, sound, library
):
    """By ThreadSanitizer."""
    options = "-fsanitize=thread", "-g", "-fvisibility=hidden"
    host = host_of(folder, tmp_path / "host", *options)
    plugin = compiled(folder, "zwicker", HOST, tmp_path / "zwicker.clap", *options, "clap.c")
    part = sound[:, :9600]
    _, values = heard(host, plugin, part, 240, "0:3", "4800:1")
    part = np.where(np.arange(9600) < 4800, 3 * part, part)
    expected = latest(Instance(library).whole(part, FS), 240, 9600)
    np.testing.assert_array_equal(values[:, :-1], expected.astype(np.float32))


def test_invalid_samples_are_counted_and_are_no_reading(made, sound):
    wrong = np.full((1, 4800), 0.1, np.float32)
    wrong[0, [500, 2500, 2501]] = np.nan, 1e30, -np.inf
    _, values = heard(*made, wrong, 480)
    assert values[:, -1].tolist() == [0, 1, 1, 1, 1, 3, 3, 3, 3, 3]
    assert [*values[:, :2].all(1)] == [k not in (1, 5) for k in range(10)]
