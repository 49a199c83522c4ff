"""A model as machine code in Python: the frames of the model, without torch and numba."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from amt_stream.core.built_ahead import cache_folder
from amt_stream.native import NativeModel, NotBuilt, UnfittingState
from amt_stream.native import model as native
from tests.native.library import FS, ZWICKER, Instance, units_of, worst

ROOT = Path(__file__).parents[2]
ALONE = """
import sys
sys.modules.update(dict.fromkeys(("torch", "numba", "llvmlite", "scipy")))
import numpy as np
from amt_stream.native import NativeModel
meter = NativeModel("zwicker", channels=1)
sound = np.load("sound.npy")
np.save("frames.npy", np.concatenate([meter(part) for part in np.array_split(sound, 7)]))
"""


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def meter(own_cache):
    return NativeModel("zwicker", channels=1)


def test_it_needs_neither_torch_nor_numba(meter, sound, right, tmp_path):
    np.save(tmp_path / "sound.npy", sound.T)
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert worst(np.load(tmp_path / "frames.npy"), right) < 4e-7


def test_the_program_of_the_page_runs(sound, right):
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    known = {"blocks": [sound.T / np.float32(20)]}
    exec(program, known)
    assert worst(known["frames"], right) < 1e-6


def test_a_state_goes_on_from_c_to_python_and_back(library, meter, sound):
    whole = Instance(library).whole(sound, FS)
    first, last = Instance(library), Instance(library)
    begin = first.whole(sound[:, :10001], 777)
    meter.load(first.save())
    middle = meter(sound.T[10001:30003])
    assert last.load(meter.save()) == 0
    frames = np.concatenate([begin, middle, last.whole(sound[:, 30003:], 777)])
    np.testing.assert_array_equal(frames, whole)


def test_it_says_what_it_is(library, meter):
    assert meter.info == library.info
    assert [(one.name, one.unit) for one in meter.info.columns] == [
        tuple(one.values()) for one in units_of(ZWICKER)
    ]


def test_gain_reset_and_samples_that_are_no_numbers(meter, sound):
    louder = meter(4 * sound.T)
    meter.reset()
    meter.gain = 4
    np.testing.assert_array_equal(meter(sound[0].astype(np.float64)), louder)
    assert meter.invalid == 0
    meter(np.full((10, 1), np.nan))
    assert meter.invalid == 10
    assert meter.gain == 4


def test_a_sound_longer_than_a_count_in_c_is_taken_in_parts(meter, sound, monkeypatch):
    """C counts samples and frames in 32 bits, which 2 ** 31 samples would exceed."""
    assert native.MOST_AT_ONCE < 2**31
    whole = meter(sound.T)
    meter.reset()
    monkeypatch.setattr(native, "MOST_AT_ONCE", 10_001)
    np.testing.assert_array_equal(meter(sound.T), whole)
    assert meter(sound.T[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize(
    ("sound", "error", "said"),
    [
        (np.zeros((480, 2)), ValueError, r"shape \(480, 2\): give \(time, 1\)"),
        (np.zeros((1, 480, 1)), ValueError, r"shape \(1, 480, 1\): give \(time, 1\)"),
        (np.zeros(480, np.int16), TypeError, "sound is of int16: give floats"),
    ],
)
def test_a_sound_of_another_form_is_refused(meter, sound, error, said):
    with pytest.raises(error, match=said):
        meter(sound)


def test_a_state_that_does_not_fit_is_refused(meter, sound):
    meter(sound.T)
    state = meter.save()
    with pytest.raises(UnfittingState, match="the state is damaged"):
        meter.load(state[:-1])
    other = bytearray(state)
    other[8] ^= 1
    with pytest.raises(UnfittingState, match="not one of zwicker at 48000 Hz in blocks of 480"):
        meter.load(bytes(other))
    assert meter.save() == state


@pytest.mark.parametrize("gain", [0, -1, float("nan"), float("inf"), 1e39, 1e-60, "20", None])
def test_a_gain_that_is_none_is_refused(meter, gain):
    """In single precision 1e39 would be infinite and 1e-60 zero."""
    before = meter.gain
    with pytest.raises(ValueError, match="give a number from 1e-12 to 1e"):
        meter.gain = gain
    assert meter.gain == before


def test_only_its_state_is_copied(meter, sound):
    meter(sound.T)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled: load what save"):
            way(meter)
    state = meter.save()
    meter.reset()
    meter.load(bytearray(state))
    assert meter.save() == state
    with pytest.raises(TypeError, match="the state is str: give the bytes of save"):
        meter.load("state")


@pytest.mark.soak
def test_a_model_that_cannot_be_compiled_is_refused(meter):
    with pytest.raises(NotBuilt, match="spectrum cannot be exported to C"):
        NativeModel("spectrum")
    assert [path.name.split("-")[0] for path in cache_folder().iterdir()] == ["zwicker"]
