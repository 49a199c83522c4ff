"""Scales against printed values, for each kind of argument."""

import numpy as np
import pytest
import torch

from amt_stream.dsp.scales import (
    audfiltbw,
    erb2fc,
    erb_number_to_hz,
    erb_spaced,
    erbrate2f,
    erbspacebw,
    f2erb,
    f2erbrate,
    fc2erb,
    gaindb,
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
    assert sone_to_phon(0.142, "ansi-s3.4") == pytest.approx(20)
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


@pytest.mark.parametrize(
    ("full_scale", "peak", "level"), [(100, 0.1, 80), (94, 1.0, 94), (120, 0.001, 60)]
)
def test_full_scale_sine(full_scale, peak, level):
    """A sine of that peak, in fractions of full scale, has that level."""
    rms = peak * pascal_per_unit(full_scale) / np.sqrt(2)
    assert pa_to_db_spl(rms) == pytest.approx(level, abs=1e-9)
    assert pascal_per_unit(100) == pytest.approx(2.8284, abs=1e-4)
    assert pascal_per_unit(94) == pytest.approx(1.4176, abs=1e-4)


def test_bandwidth_has_three_formulas():
    """Of filterbanks, of Glasberg & Moore (1990), and of ISO 532-2:2017, at 1 kHz."""
    assert audfiltbw(1000) == pytest.approx(24.7 + 1000 / 9.265)
    assert f2erb(1000.0) == pytest.approx(132.639)
    assert torch.equal(audfiltbw(torch.tensor([0.0, 926.5])), torch.tensor([24.7, 124.7]))


def test_numbers_of_erbs_have_two_scales():
    assert fc2erb(8000) - fc2erb(80) == pytest.approx(30.4116, abs=1e-4)
    assert erb2fc(fc2erb(1234.5)) == pytest.approx(1234.5)
    assert f2erbrate(1000.0) == hz_to_erb_number(1000.0) == pytest.approx(15.59, abs=0.01)
    assert erbrate2f(f2erbrate(250.0)) == pytest.approx(250)


def test_spaced_centers():
    """80 to 8000 Hz one ERB apart: over the full range, or exactly."""
    full = erb_spaced(80, 8000)
    assert len(full) == 31
    np.testing.assert_allclose(full[[0, 1, 2, -1]], [80, 115.71, 155.55, 8000], atol=5e-3)
    based = erb_spaced(80, 8000, basef=1000)
    assert np.isclose(based, 1000).any()
    np.testing.assert_allclose(np.diff(fc2erb(based)), 1)
    tensor = erbspacebw(80, 8000)
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor.numpy(), full, rtol=1e-6)


@pytest.mark.parametrize("limits", [(500, 80), (-1, 80)])
def test_centers_from_nowhere_are_refused(limits):
    with pytest.raises(ValueError, match="give 0 <= flow < fhigh"):
        erb_spaced(*limits)
    with pytest.raises(ValueError, match="basef is 90 Hz: give one from 100 to 200 Hz"):
        erb_spaced(100, 200, basef=90)


def test_gain_in_decibels():
    torch.testing.assert_close(gaindb(torch.ones(2), 20.0), torch.full((2,), 10.0))
