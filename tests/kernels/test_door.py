"""The compiled door against the plain one."""

import numpy as np
import pytest

from amt_stream.functional import door

LIMIT = np.float32(0.5)

door.make_ready()


def both(block, scale, limit=LIMIT):
    """What each form says, and what it writes: rows with room to spare, and energy."""
    given = []
    for let_in in (door.let_in, door.let_in_plain):
        rows = np.full((2, len(block) + 5), 7.0, np.float32)
        energy = np.array([1.0, 2.0])
        given.append((let_in(block, scale, limit, rows, energy), rows, energy))
    return given


@pytest.mark.parametrize("size", [1, 3, 7, 8, 48, 127, 128, 129, 136, 257, 441, 480, 8193])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("scales", [1, 2])
def test_both_forms_give_the_same(size, channels, scales):
    rng = np.random.default_rng(size)
    wide = (0.1 * rng.standard_normal((size, 4))).clip(-0.4, 0.4).astype(np.float32)
    scale = rng.random((scales, 1), np.float32)
    whole = np.ascontiguousarray(wide[:, :channels])
    whole.flags.writeable = False
    for block in (wide[:, :channels], whole, wide[:, 3 : 3 - channels : -1]):
        (mine, rows, energy), (theirs, wanted, wanted_energy) = both(block, scale)
        assert mine == theirs == door.SOUND
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_allclose(energy, wanted_energy, rtol=1e-15)


@pytest.mark.parametrize("wrong", [0.5, -0.5, 3.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 200, 479])
def test_what_reaches_the_limit_is_not_let_in(wrong, at):
    block = np.zeros((480, 2), np.float32)
    block[at, 1] = wrong
    for said, rows, energy in both(block, np.ones((1, 1), np.float32)):
        assert said == door.SUSPECT
        assert (rows == 7.0).all()
        assert energy.tolist() == [1.0, 2.0]


def test_silence_is_zeros_and_nothing_else():
    block = np.zeros((48, 2), np.float32)
    block[7] = -0.0
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [door.SILENCE] * 2
    block[47, 1] = 1e-30
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [door.SOUND] * 2
