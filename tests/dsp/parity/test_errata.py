"""What the reference documentation has wrong, or leaves open, and what is built instead.

A test for each row of docs/errata.md. Rows proven elsewhere name their test here:

1 parity/test_loudness_classes.py::test_two_readings_of_the_inhibition
2 parity/test_loudness_classes.py::test_two_readings_of_the_inhibition
3 parity/test_loudness_classes.py::test_smoothing_reflects_or_has_zeros_beyond_the_channels
4 parity/test_loudness_classes.py::test_documented_moore2016_specific_loudness
4 parity/test_loudness_classes.py::test_iso_specific_loudness_is_that_of_the_meter
8 parity/test_loudness_classes.py::test_documented_specific_loudness
13 parity/test_loudness_classes.py::test_temporal_integration
14 metrology/test_moore2016.py::test_long_term_loudness_is_smoothed_in_each_ear_before_the_sum
15 parity/test_modulation.py::test_golden_one_poles
15 parity/test_modulation.py::test_gains_of_the_one_poles
16 parity/test_modulation.py::test_filters_are_those_of_scipy
17 parity/test_modulation.py::test_mfc_of_each_channel
18 parity/test_modulation.py::test_centers_up_to_a_limit
19 parity/test_modulation.py::test_fast_is_exact
19 parity/test_modulation.py::test_arguments_of_the_fast_classes_change_no_number
20 parity/test_modulation.py::test_golden_king
20 parity/test_modulation.py::test_arguments_of_the_fast_classes_change_no_number
21 parity/test_modulation.py::test_gains_of_the_band_passes
21 kernels/test_svf.py::test_right_in_float32_at_low_frequencies
22 parity/test_loudness_classes.py::test_per_channel_exponents
22 parity/test_loudness_classes.py::test_broken_stick_is_continuous_at_the_knee_of_each_channel
24 parity/test_ears.py::test_the_table_is_applied_once
24 parity/test_ears.py::test_minimum_phase_delays_nothing
25 metrology/test_moore2016.py::test_the_tone_that_defines_one_sone
26 metrology/test_scales.py::test_rows_of_the_table
28 parity/test_loudness_classes.py::test_learnable_knee_is_a_parameter_and_a_level
29 parity/test_loudness_classes.py::test_documented_interface
30 parity/test_loudness_classes.py::test_learning_cannot_leave_the_range
E1 parity/test_adaptation.py::test_where_channels_begin
E1 parity/test_adaptation.py::test_another_number_of_channels_is_refused
E2 parity/test_modulation.py::test_centers_up_to_a_limit
E3 parity/test_ears.py::test_normalized_middle_ear
E3 parity/test_ears.py::test_middle_ear_gives_the_velocity_of_the_stapes
E4 parity/test_modulation.py::test_gains_of_the_band_passes
E4 parity/test_modulation.py::test_what_is_refused
E7 metrology/test_scales.py::test_bandwidth_has_three_formulas
E7 metrology/test_scales.py::test_numbers_of_erbs_have_two_scales
E11 parity/test_modulation.py::test_king_centers_in_number_and_at_the_limits
E12 parity/test_modulation.py::test_right_in_float32_at_48_khz
E13 parity/test_modulation.py::test_presets
E13 parity/test_modulation.py::test_what_is_given_beside_a_preset_stands
E13 parity/test_adaptation.py::test_what_is_given_beside_a_preset_stands
E15 parity/test_loudness_classes.py::test_learnable_knee_is_a_parameter_and_a_level
E16 parity/test_loudness_classes.py::test_documented_interface
E17 metrology/test_scales.py::test_gain_in_decibels
E18 parity/test_excitation_levels.py::test_documented_spread_of_one_band
E19 parity/test_excitation_levels.py::test_silence_of_the_documented_chain_is_not_silent
E20 parity/test_excitation_levels.py::test_a_learnable_band_holds_as_much_of_noise_as_the_rectangle
"""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import (
    BinauralInhibition,
    BrokenStickCompression,
    Excitation,
    IHCPaulick2024,
    LoudnessIntegration,
    Moore2016AGC,
    Moore2016SpecificLoudness,
    Moore2016TemporalIntegration,
    PowerCompression,
    SpatialSmoothing,
    SpecificLoudness,
)
from amt_stream.dsp.data import table
from amt_stream.dsp.models.paulick2024 import Paulick2024
from amt_stream.dsp.stages.moore.specific_loudness import channel_constants
from amt_stream.dsp.stages.spectrum import component_frequencies

DSP = Path(__file__).parents[1]
ELSEWHERE = re.findall(r"^(E?\d+) (\S+)::(\w+)$", __doc__, re.MULTILINE)

HERE = set()


def row(*names):
    """Mark of a test that proves rows of the list."""

    def mark(test):
        HERE.update(names)
        return test

    return mark


def test_each_row_has_its_test():
    proven = {name for name, _, _ in ELSEWHERE} | HERE
    page = (DSP.parents[1] / "docs" / "errata.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (E?\d+) \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed)) == 50
    assert proven == set(listed)


@pytest.mark.parametrize("path", sorted({path for _, path, _ in ELSEWHERE}))
def test_each_test_named_exists(path):
    tree = ast.parse((DSP / path).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {test for _, where, test in ELSEWHERE if where == path} <= found


def ones(*shape):
    return torch.ones(*shape, dtype=torch.float64)


@row("E10")
def test_two_silent_ears_count_as_equal():
    """1e-13 is added to both patterns before their ratio: a factor of 1, not 2."""
    left, right = BinauralInhibition()(torch.zeros(150), torch.zeros(150))
    assert torch.equal(left, torch.ones(150))
    assert torch.equal(right, torch.ones(150))


@row("1")
@pytest.mark.parametrize("variant", ["documented", "iso532-3"])
def test_inhibition_stays_finite_beside_a_silent_ear(variant):
    """Cosh of the ratio would overflow from 710 on."""
    factors = BinauralInhibition(variant=variant)(torch.full((150,), 1e3), torch.zeros(150))
    for factor in factors:
        assert torch.isfinite(factor).all()


@row("3")
def test_smoothing_is_broad_and_zeros_beyond_the_channels_lose_some():
    """A Gaussian of 20.8 Cam at half its height; neither reading keeps the sum at the edges."""
    sigma = SpatialSmoothing().sigma.item()
    assert 2 * math.sqrt(math.log(2)) / sigma == pytest.approx(20.8, abs=0.02)
    edge = torch.zeros(150)
    edge[0] = 1
    assert SpatialSmoothing()(edge).sum() == pytest.approx(0.5, abs=0.02)
    assert SpatialSmoothing(variant="iso532-3")(edge).sum() == pytest.approx(0.5, abs=0.02)
    assert SpatialSmoothing(variant="iso532-3")(torch.ones(150)).sum() < 0.85 * 150


@row("4")
def test_a_is_read_as_decibels_or_as_printed():
    """Neither "10^4.72 to 10^8.85": 10^(v / 10) of the table, or the table itself."""
    documented, iso = Moore2016SpecificLoudness(), Moore2016SpecificLoudness(variant="iso532-3")
    assert documented.A.min() == pytest.approx(10**0.472, rel=1e-3)
    assert documented.A.max() == pytest.approx(3.604, rel=1e-3)
    assert iso.A.min() == pytest.approx(4.614, rel=1e-6)
    assert iso.A.max() == pytest.approx(8.67, rel=1e-3)


@row("5")
def test_g_grows_with_erb_number_or_falls_with_threshold():
    """Documented up to 2937; as published never above 1, and 1 from 500 Hz."""
    assert Moore2016SpecificLoudness().G.max() == pytest.approx(2937, rel=1e-3)
    iso = Moore2016SpecificLoudness(variant="iso532-3")
    assert iso.G.max() == 1
    assert torch.equal(iso.G[iso.fc >= 500], torch.ones(int((iso.fc >= 500).sum())))
    assert (iso.G[iso.fc < 490] < 1).all()


@row("E9")
def test_g_and_its_frequencies_have_constants_that_differ():
    """f / 228.7 inside G, 0.004368 f in the centers; tables are clamped where G leaves them."""
    stage = Moore2016SpecificLoudness().double()
    cams = 1.75 + 0.25 * np.arange(150)
    fc = (10 ** (cams / 21.366) - 1) / 0.004368
    assert stage.fc.numpy() == pytest.approx(fc, rel=1e-12)
    e = 21.366 * np.log10(fc / 228.7 + 1)
    g = 10 ** np.where(e < 13, (e - 13) / 15, (e - 13) / 7.5)
    assert stage.G.numpy() == pytest.approx(g, rel=1e-12)
    above = stage.G > 1
    assert torch.all(stage.Alpha[above] == 0.2)
    assert stage.A[above].numpy() == pytest.approx(10**0.472, rel=1e-3)
    assert 10 * np.log10([g.min(), g.max()]) == pytest.approx([-7.5, 34.7], abs=0.05)


@row("6")
def test_threshold_in_the_field_or_at_the_cochlea():
    """Terhardt's 3.41 dB at 989 Hz, or the 3.63 dB of excitation that the standard tabulates."""
    documented, iso = Moore2016SpecificLoudness(), Moore2016SpecificLoudness(variant="iso532-3")
    khz = documented.fc.double() / 1000
    field = 3.64 * khz**-0.8 - 6.5 * torch.exp(-0.6 * (khz - 3.3) ** 2) + 1e-3 * khz**4
    assert torch.allclose(documented.threshold_db.double(), field, atol=1e-4)
    assert iso.threshold_db[iso.fc >= 500].numpy() == pytest.approx(3.63, abs=1e-5)


@row("7")
def test_each_edition_keeps_its_constant():
    """C goes with the tables of its own edition."""
    documented, iso = Moore2016SpecificLoudness(), Moore2016SpecificLoudness(variant="iso532-3")
    assert (documented.C, iso.C) == (0.0631, 0.063)
    assert channel_constants("iso")["c"] == 0.063
    assert channel_constants("author")["c"] == 0.0631


@row("8")
def test_what_cannot_meter_says_so():
    """The power law of decibels is labelled where it is shown."""
    assert "not calibrated" in repr(SpecificLoudness())
    assert "Not calibrated" in SpecificLoudness.__doc__


@row("9")
def test_printed_examples_are_not_what_the_formulas_give():
    """Threshold 4.23 dB at 1 kHz and a pulse smoothed to 67.89 of 100 are printed."""
    stage = SpecificLoudness()
    at_1_khz = stage.get_threshold()[(stage.fc_erb - 1000).abs().argmin()]
    assert at_1_khz == pytest.approx(3.40, abs=0.05)
    lowest = stage.get_threshold().argmin()
    assert stage.get_threshold()[lowest] == pytest.approx(-4.98, abs=0.01)
    assert stage.fc_erb[lowest] == pytest.approx(3280, rel=0.02)
    pulse = torch.zeros(200)
    pulse[50:60] = 100
    y = Moore2016AGC()(pulse)
    assert y[[50, 55, 59]].numpy() == pytest.approx(
        [100 * (1 - 0.955**n) for n in (1, 6, 10)], rel=1e-5
    )


@row("10")
@pytest.mark.parametrize(
    ("alpha", "ms"), [(0.045, 21.7), (0.033, 29.8), (0.01, 99.5), (0.00133, 751.4)]
)
def test_coefficients_are_for_frames_of_one_millisecond(alpha, ms):
    """Not for 62.5 frames a second: 1 - 1 / e of a step after 21.7, 29.8, 99.5 and 751 ms."""
    y = Moore2016AGC(alpha, alpha, dtype=torch.float64)(ones(1000))
    reached = np.interp(1 - math.exp(-1), y.numpy(), np.arange(1, 1001))
    assert reached == pytest.approx(ms, rel=2e-3)


@row("11")
def test_a_coefficient_of_one_follows_and_of_none_holds():
    """The notes have it the other way round than the formula."""
    x = torch.rand(30)
    assert torch.allclose(Moore2016AGC(1.0, 1.0)(x), x)
    assert torch.equal(Moore2016AGC(0.0, 0.0)(x), torch.zeros(30))


@row("12", "E14")
def test_loudness_integration_takes_the_rate_of_its_frames():
    """By default fs / 512, as documented; a chain of other frames says so, and keeps 50 ms."""
    for stage, rate in (
        (LoudnessIntegration(32000), 62.5),
        (LoudnessIntegration(32000, frame_rate=31.25), 31.25),
        (LoudnessIntegration(32000, frame_rate=1000), 1000),
    ):
        y = stage.double()(ones(1, 200, 1))[0].numpy()
        expected = 1 - np.exp(-np.arange(1, 201) / (0.05 * rate))
        assert y == pytest.approx(expected, rel=1e-9)


@row("13")
def test_temporal_integration_has_its_parameters_from_the_start():
    """All four before the first call, and a long-term loudness beside the intermediates."""
    stage = Moore2016TemporalIntegration(learnable=True)
    assert sum(p.numel() for p in stage.parameters()) == 4
    y = stage(torch.rand(10, 150), return_intermediate=True)
    assert [v.shape for v in y] == [(10,), (10, 150), (10,)]
    assert sum(p.numel() for p in stage.parameters()) == 4


@row("23")
def test_excitation_spreads_upward_with_level():
    """The filter's lower skirt depends on level: from 1 kHz, -96 dB at 500 Hz at any level."""
    f = component_frequencies()
    stage = Excitation().double()
    spread = {}
    for level in (30, 90):
        x = torch.zeros(1, 2, 1, f.size, dtype=torch.float64)
        x[..., np.argmin(np.abs(f - 1000))] = 10 ** (level / 10)
        e = 10 * torch.log10(stage(x)[0, 0, 0]) - level
        spread[level] = np.interp([500, 2000], stage.fc.numpy(), e.numpy())
    assert spread[90] == pytest.approx([-96, -30], abs=0.6)
    assert spread[30] == pytest.approx([-96, -77], abs=0.6)


@row("24")
def test_the_ear_is_that_of_its_edition():
    """The two editions of the middle ear, of which the documentation names both."""
    editions = table("middle_ear_editions")
    assert np.array_equal(editions["freq_hz"], table("moore_ear_transfer")["freq_hz"])
    assert np.array_equal(
        editions["ansi_s34_2007_iso532_2_db"], table("moore_ear_transfer")["middle_ear_db"]
    )


@row("25")
@pytest.mark.parametrize("cls", [BrokenStickCompression, PowerCompression])
def test_compressions_take_one_as_100_db(cls):
    """The knee of 30 dB is an amplitude of 10^-3.5."""
    assert cls().knee.item() == pytest.approx(10**-3.5, rel=1e-6)


@row("27")
def test_a_learnable_smoothing_learns_its_sigma_and_its_width():
    """The number of weights stays; a learned width sets them further apart."""
    stage = SpatialSmoothing(learnable=True).double()
    assert {name: v.item() for name, v in stage.named_parameters()} == {
        "sigma": pytest.approx(0.08, rel=1e-7),
        "kernel_width": 18.0,
    }
    x = torch.rand(150, dtype=torch.float64)
    assert torch.allclose(stage(x), SpatialSmoothing().double()(x), rtol=1e-6)
    with torch.no_grad():
        stage.kernel_width.fill_(9.0)
        stage.sigma.mul_(2)
    assert stage.g[[0, -1]].tolist() == [-9, 9]
    assert stage.get_parameters()["kernel_size"] == 145
    assert torch.allclose(stage(x), SpatialSmoothing().double()(x), rtol=1e-6)


@row("E8")
@pytest.mark.parametrize(
    ("limits", "count", "last"),
    [({}, 150, 15221.2), ({"f_min": 80.0, "f_max": 8000.0, "erb_step": 0.5}, 62, 8038.5)],
)
def test_the_last_band_lies_above_the_limit(limits, count, last):
    """ceil + 1 bands; floor + 1 would give 149 and 61."""
    stage = SpecificLoudness(**limits)
    assert stage.n_erb_bands == stage.fc_erb.numel() == count
    assert stage.fc_erb[-1] == pytest.approx(last, abs=0.1)


@row("E5")
def test_hair_cell_rests_exactly():
    """From the rounded conductance 3.3514e-9 S it would begin 8.3 nV below, and drift."""
    cell = IHCPaulick2024(48000).double()
    assert cell.G_precharge.item() == pytest.approx(3.3514023657e-9, rel=1e-10)
    assert cell.resting_potential.item() == pytest.approx(-0.0616644310, abs=5e-11)
    assert cell(torch.zeros(1, 4800, dtype=torch.float64)).abs().max() < 1e-15


@row("E6")
def test_paulick_model_is_that_of_its_minima():
    """50 bands from 250 Hz, where the batch library has 125 Hz; each begins at its own rest."""
    model = Paulick2024()
    assert len(model.fc) == 50
    assert model.fc[[0, -1]].tolist() == pytest.approx([250, 8000], rel=1e-6)
    assert model.adaptation.per_channel_init
    fc = torch.tensor(table("paulick2024_minlevel")["fc_hz"])
    assert torch.allclose(model.fc.double(), fc, rtol=1e-5)
