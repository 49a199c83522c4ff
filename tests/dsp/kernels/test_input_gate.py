"""The compiled door against the plain one."""

import numpy as np
import pytest

from amt_stream.dsp.functional import input_gate

LIMIT = np.float32(0.5)


@pytest.fixture(autouse=True, scope="module")
def compiled_door():
    input_gate.make_ready()


def plainly(block, scale, limit, rows, energy):
    low, high = block.min(), block.max()
    if not (low > -limit and high < limit):
        return input_gate.SUSPECT
    within = rows[:, : len(block)]
    np.multiply(block.T, scale, out=within)
    length = len(block) // energy.shape[1]
    for part in range(energy.shape[1]):
        of_part = within[:, part * length : (part + 1) * length]
        energy[:, part] += np.square(of_part, dtype=np.float64).sum(axis=1)
    return input_gate.SILENCE if low == high == 0.0 else input_gate.SOUND


def both(block, scale, limit=LIMIT, parts=1):
    """What each form says, and what it writes: rows with room to spare, and energy."""
    given = []
    for form in (input_gate.scale_and_check, plainly):
        rows = np.full((2, len(block) + 5), 7.0, np.float32)
        energy = np.repeat([[1.0], [2.0]], parts, axis=1)
        given.append((form(block, scale, limit, rows, energy), rows, energy))
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
        assert mine == theirs == input_gate.SOUND
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_allclose(energy, wanted_energy, rtol=1e-14)


@pytest.mark.parametrize("wrong", [0.5, -0.5, 3.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 200, 479])
def test_what_reaches_the_limit_is_not_taken(wrong, at):
    block = np.zeros((480, 2), np.float32)
    block[at, 1] = wrong
    for said, rows, energy in both(block, np.ones((1, 1), np.float32)):
        assert said == input_gate.SUSPECT
        assert (rows == 7.0).all()
        assert energy.tolist() == [[1.0], [2.0]]


def test_energy_of_each_part_is_that_of_the_part_alone():
    block = (0.1 * np.random.default_rng(0).standard_normal((1440, 2))).astype(np.float32)
    scale = np.array([[2.0], [0.5]], np.float32)
    (_, _, energy), (_, _, wanted) = both(block, scale, parts=3)
    np.testing.assert_allclose(energy, wanted, rtol=1e-14)
    alone = [both(part, scale)[0][2] for part in np.split(block, 3)]
    np.testing.assert_array_equal(energy, np.concatenate(alone, axis=1))


def test_silence_is_zeros_and_nothing_else():
    block = np.zeros((48, 2), np.float32)
    block[7] = -0.0
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [input_gate.SILENCE] * 2
    block[47, 1] = 1e-30
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [input_gate.SOUND] * 2
