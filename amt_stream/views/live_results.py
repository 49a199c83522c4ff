"""Results of the running measurement."""

from typing import TYPE_CHECKING

from amt_stream.meters.rows import header
from amt_stream.sessions.results import Results
from amt_stream.sessions.saving import whole_rows
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import describe_models, describe_source

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
    sound, models = describe_source(engine), describe_models(engine)
    described = header(readings.rows, models, engine.calibration, sound)
    names = [column.name for column in history.columns]
    rows = history.rows(names, history.begin_s, history.now_s)
    if not len(rows):
        return None
    described["columns"] = [one for one in described["columns"] if one["name"] in names]
    rows = whole_rows(rows, described)
    (last,) = rows.where(slice(-1, None))
    summary = readings.summary(models, engine.calibration, sound)
    source = {"kind": type(engine.source).__name__, "name": engine.source.name}
    settings = {"source": source | {"live": engine.source.live}}
    return Results(engine.source.name, described, rows, last, summary, readings.events, settings)
