"""Readings of the STIPA test signal, as users get them."""

import numpy as np
import pytest
import torch

from amt_stream import Stipa, measure, stipa_signal
from amt_stream.dsp.stipa_signal import OCTAVES
from amt_stream.meters.accumulators.sti import deviation, sti
from amt_stream.meters.accumulators.stipa import COLUMNS, Reason, StipaMeter
from tests.dsp.metrology.test_stipa import FS, carriers
from tests.meters.test_state import unkept


@pytest.fixture(scope="module")
def signal():
    return stipa_signal(FS, 1, 32)


def read(x, **settings):
    return measure(x, FS, "stipa", **({"calibration": "pascal"} | settings))


def by_octave(found, key, unit=""):
    return np.array([found[f"{key}_{octave}{unit}"][-1] for octave in OCTAVES])


def test_certainty_grows(signal):
    found = read(signal)
    seconds, valid = found["sti_s"], found["sti_valid"]
    assert np.isnan(found["sti"][seconds != seconds]).all()
    assert (valid[seconds < 14.9] == 0).all()
    assert (valid[seconds > 15.1] == 1).all()
    known = seconds == seconds
    assert (np.diff(found["sti_sd"][known]) <= 0).all()
    assert found["sti_sd"][-1] == pytest.approx(deviation(25.0), rel=1e-6)
    assert seconds[known][0] <= 3.5
    assert found.summary["sti_total_s"] == pytest.approx(31, abs=0.05)
    assert 0.97 <= found["sti"][-1] <= 1
    assert found.summary["sti_total_valid"] == 1


def test_levels_count_where_they_are_known():
    m = np.full((7, 2), 0.7)
    x = carriers(m, 17) * 2e-4
    found, relative = read(x), read(x, calibration=None)
    level = by_octave(found, "leq", "_db")
    expected, mti = sti(m, level)
    assert found["sti"][-1] == pytest.approx(expected, abs=1e-3)
    assert by_octave(found, "mti") == pytest.approx(mti, abs=2e-3)
    assert relative["sti"][-1] == pytest.approx(sti(m)[0], abs=1e-3)
    assert expected < relative["sti"][-1] - 0.05
    assert by_octave(found, "m1") == pytest.approx(np.full(7, 0.7), abs=1e-3)
    assert by_octave(found, "m2") == pytest.approx(np.full(7, 0.7), abs=1e-3)


def test_gain_changes_nothing_without_levels():
    x = carriers(np.full((7, 2), 0.6), 16)
    soft, loud = (read(gain * x, calibration=None)["sti"] for gain in (0.01, 1.0))
    np.testing.assert_allclose(soft, loud, atol=1e-5)


def of_cells(x, left_out=slice(0)):
    """A meter after a sound, without these of its cells of 0.1 s."""
    cells = Stipa(FS)(torch.from_numpy(x)[None]).cells[0].double().numpy()[12:]
    counted = np.ones(len(cells), bool)
    counted[left_out] = False
    meter = StipaMeter()
    meter.update(cells, 0.1 * np.arange(1, len(cells) + 1), counted)
    return meter


def test_holes_are_left_out(signal):
    usual = of_cells(signal[: 26 * FS]).now
    holed = of_cells(signal[: 26 * FS], slice(100, 110)).now
    assert holed.sti == pytest.approx(usual.sti, abs=float(deviation(24.0)))
    assert holed.seconds == pytest.approx(usual.seconds - 1)
    assert not holed.reasons


def test_much_lost_sound_is_a_reason(signal):
    meter = of_cells(signal[: 26 * FS], slice(80, 150))
    assert meter.now.reasons == meter.overall.reasons == Reason.LOST


def test_clipped_sound_is_left_out(signal):
    x = (2e5 * signal[: 20 * FS]).clip(-32768, 32767).astype(np.int16)
    found = measure(x, FS, "stipa", calibration=94.0)
    assert found["sti_total_valid"][-1] != 1


@pytest.mark.parametrize("kind", ["speech", "beat"])
def test_other_sound_is_no_signal(kind):
    """Noise with the slow changes of speech; noise in a beat of 120 a minute."""
    random = np.random.default_rng(2)
    t = np.arange(26 * FS) / FS
    x = random.normal(0, 0.05, t.size)
    if kind == "speech":
        x *= np.repeat(random.exponential(1, 26 * 8), FS // 8)
    else:
        x *= np.exp(-8 * (t % 0.5))
    found = read(x)
    late = found["sti_s"] > 15
    assert (found["sti_valid"][late] == 0).all()
    assert all(Reason.NO_SIGNAL & int(one) for one in found["sti_reasons"][late])


def test_of_two_channels_the_higher_one_is_shown():
    good, bad = carriers(np.full((7, 2), 0.8), 16), carriers(np.full((7, 2), 0.3), 16)
    columns = "sti,sti_left,sti_right,m1_500,m1_500_left"
    found = read(np.stack([bad, good], 1), columns=columns)
    assert found["sti"][-1] == found["sti_right"][-1] > found["sti_left"][-1] + 0.3
    assert found["m1_500"][-1] == pytest.approx(0.8, abs=1e-3)
    assert found["m1_500_left"][-1] == pytest.approx(0.3, abs=1e-3)


def test_an_interval_has_its_own(signal):
    found = read(signal, interval=16).intervals
    assert found["sti_total_s"] == pytest.approx([15, 16], abs=0.3)
    assert (found["sti_total"][:2] > 0.96).all()


def cells(count, start=0, depth=0.5):
    """Cells of a steady modulation, in phase with time."""
    from amt_stream.dsp.stipa_signal import DEPTH, MODULATIONS, cell_waves

    at = 0.1 * (start + np.arange(count))
    made = np.zeros((count, 7, 5))
    for k in range(7):
        waves = cell_waves(k)
        t = at[:, None] + 0.1 * np.arange(waves.shape[1]) / waves.shape[1]
        slow, fast = (np.sin(2 * np.pi * f * t) for f in MODULATIONS[k])
        made[:, k] = (1 + depth * DEPTH * (slow - fast)) @ waves.T / waves.shape[1]
    return made


def update(meter, count, start=0, **given):
    end_s = 0.1 * (start + 1 + np.arange(count))
    return meter.update(cells(count, start, **given), end_s, np.ones(count, bool))


def test_exact_cells_give_exact_depths():
    meter = StipaMeter()
    update(meter, 173)
    np.testing.assert_allclose(meter.now.m, 0.5, atol=1e-9)
    np.testing.assert_allclose(meter.overall.m, 0.5, atol=1e-9)


def test_an_hour_takes_no_more_memory():
    meter = StipaMeter()
    update(meter, 300)
    before = {key: np.size(value) for key, value in meter.state_dict().items()}
    for start in range(300, 3000, 300):
        update(meter, 300, start)
    assert {key: np.size(value) for key, value in meter.state_dict().items()} == before
    np.testing.assert_allclose(meter.overall.m, 0.5, atol=1e-9)
    assert meter.overall.seconds == pytest.approx(300)


def test_a_gap_of_another_phase_begins_a_new_window():
    meter = StipaMeter()
    update(meter, 200)
    late = cells(160, 0)
    meter.update(late, 0.1 * np.arange(160) + 50.03, np.ones(160, bool))
    assert meter.now.seconds == pytest.approx(16)
    np.testing.assert_allclose(meter.overall.m, 0.5, atol=1e-9)
    assert meter.overall.seconds == pytest.approx(36)


def test_a_pause_counts_nothing_overall():
    meter = StipaMeter()
    update(meter, 200)
    meter.pause()
    update(meter, 100, 200)
    assert meter.overall.seconds == pytest.approx(20)
    assert meter.now.seconds == pytest.approx(25)


def test_a_meter_goes_on_in_a_new_one():
    one, other = StipaMeter(), StipaMeter()
    update(one, 333)
    other.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(update(one, 111, 333), update(other, 111, 333))
    assert one.reading() == other.reading()
    assert not {name.rpartition("/")[2] for name in unkept(StipaMeter(), one)}


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValueError, match="the nearest is 'sti'"):
        StipaMeter(("stj",))
    assert len(COLUMNS) == 66
