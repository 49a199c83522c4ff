"""What the history costs when rows come, whether a minute of it is shown or eight hours."""

import time

import numpy as np
import pytest

from amt_stream.meters.rows import LoudnessReadings, Rows

HOUR, BLOCK, TURNS = 36_000, 6000, 100
FROM_ROWS = 2
"""The window hands over so many at a time."""


def rows_of(columns, first, count):
    numbers = np.arange(first, first + count)
    noise = np.random.default_rng(first).normal(70, 5, (len(columns), count))
    table = {"time_s": np.round(0.1 * numbers, 6)}
    table["utc"] = np.full(count, np.datetime64("2026-11-22", "ms"))
    table |= {column.name: noise[i] for i, column in enumerate(columns)}
    flags = {"fault": np.zeros(count, np.uint8), "settling": np.zeros(count, bool)}
    return Rows(table | flags | {"calibrated": np.ones(count, bool)})


def costs(qtbot, spans):
    """Seconds to take, draw and paint `FROM_ROWS` rows after eight hours, by the span shown."""
    from amt_monitor.panes.history_pane import HistoryPane
    from amt_stream.views.reading_history import ReadingHistory

    columns = LoudnessReadings().columns
    pane = HistoryPane(ReadingHistory(columns, 0.1))
    qtbot.addWidget(pane)
    pane.resize(1280, 280)
    pane.show()
    qtbot.waitExposed(pane)
    number = 1
    while number < 8 * HOUR:
        pane.take([rows_of(columns, number, BLOCK)])
        number += BLOCK
    found = {}
    for name, span_s in 3 * [*spans.items()]:
        pane.plot.show_until(None, span_s)
        pane.draw(again=True)
        qtbot.wait(100)
        parts = [rows_of(columns, number + 2 * k, FROM_ROWS) for k in range(TURNS)]
        number += 2 * TURNS
        began = time.thread_time()
        for part in parts:
            pane.take([part])
            pane.draw()
            qtbot.wait(1)
        found.setdefault(name, []).append((time.thread_time() - began) / TURNS)
    return {name: float(np.median(taken)) for name, taken in found.items()}


@pytest.mark.bench
def test_eight_hours_cost_no_more_than_a_minute(qtbot):
    median = costs(qtbot, {"1 min": 60.0, "8 h": 28800.0})
    shown = ", ".join(f"{name} {1e3 * cost:.2f} ms" for name, cost in median.items())
    print(f"\nhistory, 1280 x 280, for each {FROM_ROWS} rows, taken, drawn and painted: {shown}")
    assert median["8 h"] <= median["1 min"]
