"""A reading has one color, whatever is drawn beside it and wherever it is drawn."""

from itertools import combinations, permutations

import numpy as np
import pytest

from amt_monitor.base.theme import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT
from amt_monitor.panes.distribution_pane import DistributionPane
from amt_monitor.plot.history_traces import MOST, first_of, style_of, traces_of, unit_of
from amt_monitor.window.wall_strip import LastMinutes
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import load_preset
from amt_stream.meters.rows import readings_of
from amt_stream.views.reading_history import ReadingHistory, kept_of
from tests.apps.test_history_pane import rows_of
from tests.apps.test_theme import contrast

SPL = kept_of(readings_of(["spl"], 2)["spl"].columns)


def drawn(names):
    return {one.name: (one.role, one.dashed) for one in traces_of(names)}


def test_the_order_of_choice_changes_no_color():
    names = ["laf_db", "laeq_db", "las_db", "laeq_1s_db"]
    for chosen in permutations(names):
        assert drawn(chosen) == {name: style_of(name) for name in names}
    loudness = ["ltl_phon", "stl_phon", "ltl_n5_phon", "zwicker_n_phon"]
    first = drawn(loudness)
    for chosen in permutations(loudness):
        assert drawn(chosen) == first
    assert [first[name][0] for name in loudness[:2]] == ["ltl", "stl"]


def test_what_is_drawn_together_can_be_told_apart():
    names = [one.name for one in SPL if not one.bound_of and unit_of(one.name) == "dB"]
    for chosen in combinations(names, MOST):
        assert len(set(drawn(chosen).values())) == MOST, chosen


def test_a_level_has_its_color_with_a_limit_and_with_other_models():
    with_limit = first_of(SPL, ["laeq_1s_db"])
    assert with_limit[0] == "laeq_1s_db"
    models = load_preset("sound-quality").names
    of_all = [one for each in readings_of(models, 2).values() for one in each.columns]
    beside = first_of(kept_of(of_all))
    for chosen in (with_limit, beside, ["laf_db"], ["laf_left_db", "laf_db"]):
        assert drawn(chosen)["laf_db"] == ("level", False)


@pytest.mark.parametrize("name", ["laf_db", "laeq_db", "laf_left_db"])
@pytest.mark.parametrize("colors", [DARK, CONTRAST_DARK])
def test_the_wall_has_the_color_of_the_history(qtbot, name, colors):
    history = ReadingHistory(SPL, 0.1)
    history.add(rows_of(SPL, range(1, 300)))
    strip = LastMinutes()
    qtbot.addWidget(strip)
    strip.colors = colors  # as the wall, which is dark in every theme
    strip.resize(600, 120)
    strip.show_rows(history, name, (Limit(name, 99.0),))
    picture = strip.grab().toImage()
    places = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
    seen = [picture.pixelColor(*place).name() for place in places]
    assert seen.count(getattr(colors, style_of(name)[0])) > 300


def test_the_distribution_has_the_color_of_its_reading(qtbot):
    pane = DistributionPane(ReadingHistory(SPL, 0.1))
    qtbot.addWidget(pane)
    for name in ("laf_db", "lcf_db", "laf_right_db", "laf_db"):
        pane.column.setCurrentIndex(pane.column.findData(name))
        assert pane.bars.role == style_of(name)[0]


@pytest.mark.parametrize("colors", [LIGHT, DARK, CONTRAST_LIGHT, CONTRAST_DARK])
def test_colors_of_curves_stand_out_from_paper_and_from_each_other(colors):
    roles = "level", "average", "ltl", "stl", "left", "right", "ink", "second", "red", "amber"
    for role in ("level", "average"):
        assert contrast(getattr(colors, role), colors.paper) >= 4.5
        for other in set(roles) - {role}:
            a, b = (
                np.array([int(getattr(colors, one)[i : i + 2], 16) for i in (1, 3, 5)])
                for one in (role, other)
            )
            assert np.abs(a - b).sum() >= 60, (role, other)
