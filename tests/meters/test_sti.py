"""STI of modulation transfer values against published and calculated numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from amt_stream.dsp.stipa_signal import MODULATIONS
from amt_stream.meters.accumulators.sti import (
    DEVIATIONS,
    SECONDS,
    as_heard,
    category,
    deviation,
    index,
    masking_db,
    sti,
)

DATA = json.loads((Path(__file__).parents[1] / "data" / "stipa.json").read_text("utf-8"))


@pytest.mark.parametrize("case", DATA["pairs"], ids=lambda case: str(case["bands"]))
def test_pairs_of_octaves(case):
    m = np.zeros((7, 2))
    m[case["bands"]] = 1
    assert round(sti(m)[0], 3) == case["sti"]


@pytest.mark.parametrize("case", DATA["uniform_m"], ids=lambda case: str(case["m"]))
def test_equal_values(case):
    assert sti(np.full((7, 2), case["m"]))[0] == pytest.approx(case["sti"], abs=1e-4)


def test_masking():
    levels, expected = np.array([[case["L"], case["a"]] for case in DATA["masking_db"]]).T
    np.testing.assert_allclose(masking_db(levels), expected, atol=1e-9)


def transfer(case):
    """Values (7, 2) of noise and of an exponential decay."""
    m = np.ones((7, 2))
    if case["t60"]:
        m /= np.sqrt(1 + (2 * np.pi * np.array(MODULATIONS) * case["t60"] / 13.8155) ** 2)
    return m if case["snr"] is None else m / (1 + 10 ** (-case["snr"] / 10))


@pytest.mark.parametrize("case", DATA["analytic"])
def test_noise_decay_and_level(case):
    value, mti = sti(transfer(case), case["level"], case["noise"])
    assert value == pytest.approx(case["sti"], abs=1e-5)
    np.testing.assert_allclose(mti, case["mti"], atol=1e-5)


def test_an_index_above_1_is_shown_as_1():
    mti = np.array([1, 0, 1, 1, 1, 1, 1])
    assert index(mti) == 1
    assert index(0.9 * mti) == pytest.approx(0.9 * 1.036, abs=1e-3)


def test_noise_needs_levels():
    with pytest.raises(ValueError, match="give level_db too"):
        as_heard(np.ones((7, 2)), noise_db=np.zeros(7))


def test_categories():
    limits = 0.76 - 0.04 * np.arange(11)
    letters = ["A+", *"ABCDEFGHIJ"]
    assert [category(limit) for limit in limits] == letters
    assert [category(limit - 1e-4) for limit in limits] == [*letters[1:], "U"]
    assert (category(1.0), category(0.0)) == ("A+", "U")


def test_the_deviation_is_that_of_the_table():
    np.testing.assert_allclose(deviation(SECONDS), DEVIATIONS)
    assert deviation(12) > deviation(14)
    assert deviation(3) > deviation(4) > DEVIATIONS[0]
    assert deviation(600) == pytest.approx(DEVIATIONS[-1])
