"""500 changes of theme, layout, size, device and models in the middle of a measurement."""

import pytest

from amt_monitor.theme import theme
from tests.apps.changes import Changes
from tests.apps.conftest import open_window  # noqa: F401 (a fixture)
from tests.soak.memory import resident_mb

pytestmark = pytest.mark.soak

MOST_MB = 40.0
"""What caches of fonts and pictures of the last sizes may take."""


def test_500_changes_lose_no_frame_and_no_memory(qtbot, open_window, record):  # noqa: F811
    changes, before = Changes(1), theme.choice
    try:
        window = open_window(changes.engine)
        changes.make(qtbot, window, 150)
        first_mb = resident_mb()
        changes.make(qtbot, window, 350)
        grown_mb = resident_mb() - first_mb
    finally:
        theme.choose(before)
    changes.check()
    assert sum(changes.done.values()) == 500
    assert min(changes.done.values()) > 50
    assert grown_mb < MOST_MB
    record(
        "500 changes of a window", f"{grown_mb:.0f} MB from the 150th to the last, no frame lost"
    )
