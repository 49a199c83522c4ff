"""Scales against printed values, for each kind of argument."""

import numpy as np
import pytest
import torch

from amt_stream.scales import (
    db_spl_to_pa,
    erb_number_to_hz,
    hz_to_erb_number,
    pa_to_db_spl,
    pascal_per_unit,
    phon_to_sone,
    sone_to_phon,
)


@pytest.mark.parametrize(
    ("sone", "phon"), [(0.025, 10), (0.138, 20), (1, 40), (4.11, 60), (15.4, 80), (306, 120)]
)
def test_rows_of_the_table(sone, phon):
    """ISO 532-3:2023, Table 5."""
    assert sone_to_phon(sone) == pytest.approx(phon)
    assert phon_to_sone(phon) == pytest.approx(sone)


def test_editions_differ():
    assert sone_to_phon(0.146, "iso532-2") == pytest.approx(20)
    with pytest.raises(ValueError, match="edition 'ansi' is not known: use one of iso532-3"):
        sone_to_phon(1.0, "ansi")


def test_clamped_at_both_ends():
    assert sone_to_phon(0.0) == 0
    assert sone_to_phon(1e6) == 120
    assert np.isnan(sone_to_phon(float("nan")))


@pytest.mark.parametrize("kind", [float, np.array, torch.tensor])
def test_each_kind_of_argument_comes_back(kind):
    for f, x in ((sone_to_phon, 1.0), (phon_to_sone, 40.0), (hz_to_erb_number, 1000.0)):
        assert type(f(kind(x))) is type(kind(x))
    x = torch.tensor([1.0, 4.11])
    assert sone_to_phon(x).dtype == torch.float32
    assert sone_to_phon(np.array([1.0, 4.11])) == pytest.approx([40, 60])


def test_a_gradient_that_could_not_pass_is_refused():
    with pytest.raises(RuntimeError, match="detach"):
        sone_to_phon(torch.ones(1, requires_grad=True))


def test_erb_number():
    assert hz_to_erb_number(987.722) == pytest.approx(15.5, abs=1e-5)
    assert erb_number_to_hz(hz_to_erb_number(3333.0)) == pytest.approx(3333.0)


def test_levels():
    assert pa_to_db_spl(1.0) == pytest.approx(93.979, abs=1e-3)
    assert pa_to_db_spl(0.02) == pytest.approx(60.0)
    assert pa_to_db_spl(0.0) == -np.inf
    assert db_spl_to_pa(94.0) == pytest.approx(1.00237, abs=1e-5)


@pytest.mark.parametrize(
    ("full_scale", "peak", "level"), [(100, 0.1, 80), (94, 1.0, 94), (120, 0.001, 60)]
)
def test_full_scale_sine(full_scale, peak, level):
    """A sine of that peak, in fractions of full scale, has that level."""
    rms = peak * pascal_per_unit(full_scale) / np.sqrt(2)
    assert pa_to_db_spl(rms) == pytest.approx(level, abs=1e-9)
    assert pascal_per_unit(100) == pytest.approx(2.8284, abs=1e-4)
    assert pascal_per_unit(94) == pytest.approx(1.4176, abs=1e-4)
