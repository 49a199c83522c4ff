"""The colors of specific loudness fit the last minute, and do not flicker."""

import numpy as np
import pytest

from amt_monitor.panes.waterfall_pane import COLUMN_S, COLUMNS, WaterfallPane, log_ticks
from amt_monitor.plot.image_layers import numbers_of
from amt_stream.views.color_range import LEAST, MOST, EasedRange, range_heard
from tests.apps.expose import expose
from tests.apps.texts import recorded


def loud(highest, seed=1):
    """Specific loudness (ear, channel) of a noise, in sone/Cam."""
    slope = np.linspace(0.0, -1.3, 150)
    noise = np.random.default_rng(seed).normal(0, 0.03, (2, 150))
    return highest * 10 ** (slope + noise)


@pytest.fixture
def pane(qtbot):
    return expose(qtbot, WaterfallPane(), 700, 300)


def draw(pane, seconds, highest, from_s=0.0):
    """Draws seconds of noise, and gives the ranges that were shown meanwhile."""
    ranges = []
    for k in range(round(seconds / COLUMN_S)):
        pane.draw(from_s + (k + 0.5) * COLUMN_S, loud(highest, k))
        pane.fit()
        ranges.append((pane.colors.low, pane.colors.high))
    return ranges


@pytest.mark.parametrize("highest", [0.02, 0.3, 4.0, 19.0])
def test_no_sound_is_all_of_one_color(pane, highest):
    """Colors from 0.01 to 1 sone/Cam showed all of a sound of 100 phon in the last one."""
    draw(pane, 65, highest)
    values = pane.colors.shown
    expected = np.percentile(values, (5.0, 99.9))
    assert (pane.colors.low, pane.colors.high) == pytest.approx(expected, abs=0.06)
    colors = numbers_of(values, pane.colors.low, pane.colors.high)
    assert np.count_nonzero(colors == 254) < 0.01 * colors.size
    assert len(np.unique(colors)) > 200
    least, most = 10 ** np.array((pane.colors.low, pane.colors.high))
    said = f"colors from {float(f'{least:.2g}'):g} to {float(f'{most:.2g}'):g} sone/Cam"
    assert pane.texts() == (said,)


def test_a_steady_sound_moves_no_color(pane):
    ranges = draw(pane, 60, 1.0)
    assert len(set(ranges[50:])) <= 2


def test_a_louder_sound_moves_the_range_gently_and_at_last_whole(pane):
    draw(pane, 20, 0.1)
    before = pane.colors.high
    highs = np.array([high for _, high in draw(pane, 20, 10.0, from_s=20.0)])
    steps = np.diff([before, *highs])
    assert steps.min() >= -0.02
    assert steps.max() < 0.25
    assert highs[-1] == pytest.approx(1.0, abs=0.15)


def test_silence_changes_nothing_and_another_measurement_begins_anew(pane):
    draw(pane, 10, 1.0)
    ranges = draw(pane, 5, 0.0, from_s=10.0)
    assert len(set(ranges)) <= 2
    pane.restart()
    assert (pane.colors.low, pane.colors.high) == (-2.0, 0.0)


def test_a_fixed_range_can_be_chosen_and_left(pane):
    draw(pane, 10, 5.0)
    automatic = pane.colors.low, pane.colors.high
    assert pane.top.currentText() == "automatic, sone/Cam"
    pane.top.setCurrentText("0.01 to 1 sone/Cam")
    assert (pane.colors.low, pane.colors.high) == (-2.0, 0.0)
    assert set(draw(pane, 3, 5.0, from_s=10.0)) == {(-2.0, 0.0)}
    assert pane.texts() == ("colors from 0.01 to 1 sone/Cam",)
    pane.top.setCurrentIndex(0)
    assert (pane.colors.low, pane.colors.high) == pytest.approx(automatic, abs=0.1)


def test_what_is_not_heard_does_not_widen_the_range():
    values = np.full((150, COLUMNS), -6.0)
    values[60:70, :100] = np.linspace(-1.0, 0.5, 10)[:, None]
    values[:, 500:] = np.nan
    low, high = range_heard(values)
    assert (low, high) == pytest.approx((-1.0, 0.5), abs=0.1)
    assert range_heard(np.full(5, -6.0)) is None
    assert range_heard(np.full(5, np.nan)) is None
    assert range_heard(np.zeros(100)) == (-LEAST, 0.0)
    assert range_heard(np.linspace(-3.9, 1.0, 1000))[0] >= 1.0 - MOST - 0.01


def test_a_sound_that_begins_again_is_taken_at_once():
    eased = EasedRange((-2.0, 0.0))
    assert eased.follow(np.full(9, np.nan), 0.0) == (-2.0, 0.0)
    assert eased.follow(np.linspace(0.0, 1.0, 1001), 100.0) == pytest.approx((0.0, 1.0), abs=0.06)
    assert eased.follow(np.linspace(-3.0, -1.0, 1001), 1.0)[1] == pytest.approx(-1.0, abs=0.01)


@pytest.mark.parametrize("highest", [0.02, 0.3, 4.0, 19.0])
def test_the_scale_beside_the_colors_can_be_read(pane, highest):
    draw(pane, 30, highest)
    with recorded() as boxes:
        pane.plot.grab()
    right = pane.plot.inside.right()
    beside = [(text, box) for text, box in boxes if box.left() > right]
    values = [float(text) for text, _ in beside]
    assert len(values) >= 3
    low, high = 10**pane.colors.low, 10**pane.colors.high
    assert all(0.99 * low <= value <= 1.01 * high for value in values)
    for text, box in beside:
        share = (np.log10(float(text)) - pane.colors.low) / (pane.colors.high - pane.colors.low)
        y = pane.plot.inside.bottom() - share * pane.plot.inside.height()
        assert box.center().y() == pytest.approx(y, abs=9)
        assert box.right() <= pane.plot.width()
        assert not [other for _, other in beside if other is not box and other.intersects(box)]


def test_numbers_of_a_scale_begin_with_powers_of_ten():
    texts = [text for _, text in log_ticks(-2.0, 0.0)]
    assert texts == ["0.01", "0.1", "1", "0.02", "0.2", "0.05", "0.5"]
