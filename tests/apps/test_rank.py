"""A layout gives space by rank: what is of equal rank is equally large, in windows of any size."""

import pytest

from amt_monitor.panes.reading_pane import ReadingPane
from tests.apps.texts import LAYOUTS, engine_of

SIZES = (1280, 800), (1920, 1080), (3840, 2160)


def main_numbers(window):
    """Pixels of the main number of each model's pane that is in front, and the pane's width."""
    docks = [dock for dock in window.area.docks.values() if dock.is_seen]
    docks = [dock for dock in docks if isinstance(dock.pane, ReadingPane)]
    found = {}
    for dock in docks:
        _, number = dock.pane.grid._large[0]
        found[dock.kind.name] = number.digits.font().pixelSize(), dock.width(), dock.height()
    return found


def is_matched(window):
    sizes = {pixels for pixels, _, _ in main_numbers(window).values()}
    return len(sizes) == 1


def unranked(window, size):
    """What is not by rank: "" if all is, else in words."""
    numbers = main_numbers(window).values()
    widths = [width for _, width, _ in numbers]
    areas = [width * height / (size[0] * size[1]) for _, width, height in numbers]
    found = [] if is_matched(window) else ["unequal numbers"]
    found += ["unequal widths"] if max(widths) >= 1.7 * min(widths) else []
    found += ["a quarter of the window for one model"] if max(areas) >= 0.25 else []
    return ", ".join(found)


@pytest.mark.cases(1)
@pytest.mark.parametrize("layout", ["loudness and level", "five models", "sound quality"])
def test_main_numbers_of_all_models_are_equally_large(qtbot, open_window, layout):
    window = open_window(engine_of(layout))
    window.first_start.skip.click()
    before = 0
    for size in SIZES:
        window.resize(*size)
        qtbot.waitUntil(lambda size=size: (window.width(), window.height()) == size)
        window.area.restore_default()
        qtbot.waitUntil(lambda: len(main_numbers(window)) == len(LAYOUTS[layout][0]))
        qtbot.waitUntil(lambda size=size: not unranked(window, size), timeout=10000)
        (pixels,) = {pixels for pixels, _, _ in main_numbers(window).values()}
        assert pixels >= max(26, before), size
        before = pixels


def test_a_pane_that_a_user_made_small_does_not_make_the_others_small(qtbot, open_window):
    window = open_window(engine_of("five models"))
    window.first_start.skip.click()
    window.resize(1920, 1080)
    window.area.restore_default()
    qtbot.waitUntil(lambda: len(main_numbers(window)) == 5 and is_matched(window), timeout=10000)
    (before,) = {pixels for pixels, _, _ in main_numbers(window).values()}
    window.area.docks["spl"].open_alone()
    others = {name for name in LAYOUTS["five models"][0] if name != "spl"}
    qtbot.waitUntil(lambda: others <= main_numbers(window).keys())
    grid = window.area.docks["zwicker"].pane.grid
    grid.resize(grid.minimumSize())
    qtbot.waitUntil(lambda: grid.groups[0][0].digits.font().pixelSize() < before)
    others -= {"zwicker"}
    sizes = [main_numbers(window)[name][0] for name in others]
    assert min(sizes) >= before / 2
