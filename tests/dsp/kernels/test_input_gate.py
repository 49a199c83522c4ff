"""The compiled door against the plain one."""

from itertools import pairwise

import numpy as np
import pytest

from amt_stream.dsp.functional import input_gate

LIMIT = np.float32(0.5)


@pytest.fixture(autouse=True, scope="module")
def compiled_door():
    input_gate.make_ready()


def plainly(block, scale, limit, offset, follow, rows, energy):
    low, high = block.min(), block.max()
    if not (low > -limit and high < limit):
        return input_gate.SUSPECT
    within = rows[:, : len(block)]
    silent = low == high == 0.0
    block = block if not follow else slow_means_removed(block, offset, follow)
    np.multiply(block.T, scale, out=within)
    length = len(block) // energy.shape[1]
    for part in range(energy.shape[1]):
        of_part = within[:, part * length : (part + 1) * length]
        energy[:, part] += np.square(of_part, dtype=np.float64).sum(axis=1)
    return input_gate.SILENCE if silent else input_gate.SOUND


def slow_means_removed(block, offset, follow):
    """Each sample less the mean before it, one after another."""
    found = np.empty(block.shape, np.float32)
    for c, channel in enumerate(block.T.astype(np.float64)):
        for t, sample in enumerate(channel):
            found[t, c] = sample - offset[c]
            offset[c] = (1 - follow) * offset[c] + follow * sample
    return found


def both(block, scale, limit=LIMIT, parts=1, follow=0.0):
    """What each form says, and what it writes: rows with room to spare, and energy."""
    given = []
    for form in (input_gate.scale_and_check, plainly):
        rows = np.full((2, len(block) + 5), 7.0, np.float32)
        energy = np.repeat([[1.0], [2.0]], parts, axis=1)
        offset = np.array([0.02, -0.01])[: block.shape[1]]
        said = form(block, scale, limit, offset, follow, rows, energy)
        given.append((said, rows, energy, offset))
    return given


@pytest.mark.parametrize("size", [1, 3, 7, 8, 48, 127, 128, 129, 136, 257, 441, 480, 8193])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("scales", [1, 2])
@pytest.mark.parametrize("follow", [0.0, 3e-5])
def test_both_forms_give_the_same(size, channels, scales, follow):
    rng = np.random.default_rng(size)
    wide = (0.1 * rng.standard_normal((size, 4))).clip(-0.4, 0.4).astype(np.float32)
    scale = rng.random((scales, 1), np.float32)
    whole = np.ascontiguousarray(wide[:, :channels])
    whole.flags.writeable = False
    for block in (wide[:, :channels], whole, wide[:, 3 : 3 - channels : -1]):
        (mine, rows, energy, offset), (theirs, *wanted) = both(block, scale, follow=follow)
        assert mine == theirs == input_gate.SOUND
        # The compiled mean is rounded once per sample, the plain one twice.
        np.testing.assert_allclose(rows, wanted[0], rtol=1e-6 if follow else 0.0, atol=0.0)
        np.testing.assert_allclose(energy, wanted[1], rtol=1e-7 if follow else 1e-14)
        np.testing.assert_allclose(offset, wanted[2], rtol=1e-11)


@pytest.mark.parametrize("wrong", [0.5, -0.5, 3.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 200, 479])
def test_what_reaches_the_limit_is_not_taken(wrong, at):
    block = np.zeros((480, 2), np.float32)
    block[at, 1] = wrong
    for said, rows, energy, _ in both(block, np.ones((1, 1), np.float32)):
        assert said == input_gate.SUSPECT
        assert (rows == 7.0).all()
        assert energy.tolist() == [[1.0], [2.0]]


def test_energy_of_each_part_is_that_of_the_part_alone():
    block = (0.1 * np.random.default_rng(0).standard_normal((1440, 2))).astype(np.float32)
    scale = np.array([[2.0], [0.5]], np.float32)
    (_, _, energy, _), (_, _, wanted, _) = both(block, scale, parts=3)
    np.testing.assert_allclose(energy, wanted, rtol=1e-14)
    alone = [both(part, scale)[0][2] for part in np.split(block, 3)]
    np.testing.assert_array_equal(energy, np.concatenate(alone, axis=1))


def test_silence_is_zeros_and_nothing_else():
    block = np.zeros((48, 2), np.float32)
    block[7] = -0.0
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [input_gate.SILENCE] * 2
    block[47, 1] = 1e-30
    assert [one[0] for one in both(block, np.ones((1, 1), np.float32))] == [input_gate.SOUND] * 2


def test_the_offset_is_removed_alike_in_pieces_and_for_a_correction():
    """From a block as a whole, from pieces of any length, and without a scale."""
    rng = np.random.default_rng(1)
    block = (0.1 * rng.standard_normal((4801, 2)) + 0.03).astype(np.float32)
    follow, ends = 1e-4, [0, 1, 8, 449, 450, 4801]
    whole, energy = np.empty((2, 4801), np.float32), np.zeros((2, 1))
    offset = np.array([0.03, 0.0])
    scale = np.ones((1, 1), np.float32)
    input_gate.scale_and_check(block, scale, LIMIT, offset, follow, whole, energy)
    alone, mean = np.empty((2, 4801), np.float32), np.array([0.03, 0.0])
    for start, stop in pairwise(ends):
        part = np.empty((2, stop - start), np.float32)
        input_gate.without_offset(block[start:stop], mean, follow, part)
        alone[:, start:stop] = part
    np.testing.assert_array_equal(alone, whole)
    np.testing.assert_array_equal(mean, offset)
    assert np.abs(whole[1].mean()) < 0.03
