"""500 changes of theme, layout, size, device and models in the middle of a measurement."""

import gc

import pytest
from pyqtgraph.util.garbage_collector import GarbageCollector

from amt_monitor.base.theme import theme
from tests.apps.changes import Changes
from tests.apps.conftest import open_window  # noqa: F401 (a fixture)
from tests.conftest import memory
from tests.soak.memory import resident_mb

pytestmark = pytest.mark.soak

MOST_MB = 40.0
"""What caches of fonts and pictures of the last sizes may take."""


@pytest.fixture
def collector(qapp):
    """Garbage is collected as in the program: by a timer, not by the thread that makes some."""
    one = GarbageCollector()
    gc.freeze()
    yield
    one.timer.stop()
    gc.enable()
    gc.unfreeze()


def test_500_changes_lose_no_frame_and_no_memory(qtbot, collector, open_window, record):  # noqa: F811
    changes, before = Changes(1), theme.choice
    try:
        window = open_window(changes.engine)
        sizes = []
        for count in (150, 350):
            changes.make(qtbot, window, count)
            changes.rest(qtbot, window)
            memory.give_back()
            sizes.append(resident_mb())
        grown_mb = sizes[1] - sizes[0]
    finally:
        theme.choose(before)
    changes.check()
    assert sum(changes.done.values()) == 500
    assert min(changes.done.values()) > 50
    assert grown_mb < MOST_MB
    record(
        "500 changes of a window", f"{grown_mb:.0f} MB from the 150th to the last, no frame lost"
    )
