"""Results of the running measurement."""

from typing import TYPE_CHECKING

from amt_monitor.reading_history import ReadingHistory
from amt_monitor.view_state import models_told, sound_told
from amt_stream.meters.rows import header
from amt_stream.sessions.results import Results
from amt_stream.sessions.saving import whole_rows

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings


def results_of(
    engine: "Engine", readings: "FollowedReadings", history: ReadingHistory
) -> Results | None:
    """The rows of the window and their header [main-thread].

    None without rows. They have the columns that the window draws, of the last eight hours, and the
    statistics of the whole time.
    """
    sound, models = sound_told(engine), models_told(engine)
    told = header(readings.rows, models, engine.calibration, sound)
    names = [column.name for column in history.columns]
    rows = history.rows(names, history.begin_s, history.now_s)
    if not len(rows):
        return None
    told["columns"] = [one for one in told["columns"] if one["name"] in names]
    rows = whole_rows(rows, told)
    (last,) = rows.where(slice(-1, None))
    summary = readings.summary(models, engine.calibration, sound)
    source = {"kind": type(engine.source).__name__, "name": engine.source.name}
    settings = {"source": source | {"live": engine.source.live}}
    return Results(engine.source.name, told, rows, last, summary, readings.events, settings)
