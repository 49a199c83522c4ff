"""Psychoacoustic annoyance: its formulas, and where a summary has it."""

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.meters.annoyance import annoyances, psychoacoustic_annoyance

SUMMARY = {
    "zwicker_n5_sone": 8.0,
    "sharpness_s5_acum": 2.0,
    "ecma_roughness_r5_asper": 0.5,
    "ecma_fluctuation_f5_vacil": 0.25,
}


def test_values_by_hand():
    """N5 = 8 sone, S = 2 acum, R = 0.5 asper, F = 0.25 vacil, K = 0.1 tu: each line worked out."""
    sharp = (0.25 * 0.25 * 1.2552725) ** 2
    modulated = (2.18 / 2.2973967 * 0.4) ** 2
    expected = {
        "zwicker": 8 * (1 + (sharp + modulated) ** 0.5),
        "di": 8 * (1 + (sharp + modulated + (6.41 / 2.9485384 * 0.1) ** 2) ** 0.5),
        "more": 8
        * (
            1
            + (
                -0.16
                + 11.48 * sharp
                + 0.84 * modulated
                + 1.25 * ((1 - 0.0982736) * (1 - 0.5775271)) ** 2
            )
            ** 0.5
        ),
    }
    for form, value in expected.items():
        got = psychoacoustic_annoyance(8.0, 2.0, 0.5, 0.25, 0.1, form)
        assert float(got) == pytest.approx(value, rel=1e-6), form


def test_a_dull_steady_sound_is_as_annoying_as_it_is_loud():
    n5 = np.array([0.0, 1.0, 20.0])
    for form in ("zwicker", "more", "di"):
        np.testing.assert_array_equal(psychoacoustic_annoyance(n5, 1.75, 0, 0, 0, form), n5)


def test_another_form_is_refused():
    with pytest.raises(ValueError, match="form is 'fastl': give zwicker, more, di"):
        psychoacoustic_annoyance(1.0, 1.0, 0.0, 0.0, form="fastl")


def test_a_summary_has_the_forms_whose_readings_it_has():
    assert annoyances({"zwicker_n5_sone": 8.0}) == {}
    assert [*annoyances(SUMMARY)] == ["annoyance_zwicker"]
    both = SUMMARY | {"ecma_tonality_t5_tu": None}
    assert annoyances(both)["annoyance_zwicker"] == pytest.approx(11.1007, abs=1e-4)
    assert annoyances(both)["annoyance_di"] is None


def test_a_measurement_of_all_that_it_takes_has_it():
    x = 0.05 * np.random.default_rng(0).standard_normal(24000)
    measured = measure(
        x, 48000, "zwicker,ecma", calibration="pascal", columns="sharpness_s5_acum", step_ms=100
    )
    found = annoyances(measured.summary, ("",))
    assert found.items() <= measured.summary.items()
    assert found["annoyance_more"] is None  # fluctuation strength counts from 0.72 s on
    assert "annoyance_zwicker_left" not in measured.summary
