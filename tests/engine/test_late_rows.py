"""What displays say of a limit while no row comes: it is not judged by the last one."""

import threading

import pytest

from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.signals import Tone
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions.outputs import LatestReadings
from amt_stream.views.view_state import ViewState
from tests.engine.conftest import FULL_SCALE
from tests.engine.slow_models import FS

LIMIT = limit_from_text("laf_db>85")


@pytest.mark.parametrize("waits", [False, True])
def test_a_limit_is_not_known_while_rows_are_late(until, waits):
    source = SignalSource([Tone(1000.0, level_db=60.0)])
    source.can_wait = waits
    preset, free = Preset(("spl",), limits=(LIMIT,)), threading.Event()
    models = preset.models(FS, 2)
    latest = LatestReadings(
        Table(preset, models, Sound("mic", FS, (1, 2), [], None), RowSettings()).rows
    )

    def sink(frames) -> None:
        free.wait(20)
        latest(frames)

    def state() -> str:
        view = ViewState.at(engine, latest)
        return "" if view is None else view.values.get(LIMIT.state, "")

    free.set()
    with Engine(source, models, [sink], calibration=FULL_SCALE) as engine:
        until(lambda: state() == "green")
        free.clear()
        if waits:  # its sound waits as well, so that none is unmeasured
            until(lambda: latest.late_s > 1.2)
            assert state() == "green"
        else:
            until(lambda: state() == "unknown")
            assert latest.late_s > 1.0
            assert latest.row[LIMIT.state] == "green"
        free.set()
        until(lambda: latest.late_s < 0.5)
        assert state() in ("green", "unknown")  # sound was dropped meanwhile
