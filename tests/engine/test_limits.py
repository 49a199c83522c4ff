"""Limits of a running engine: gaps in the sound, and rows for a program."""

import threading

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, PushSource, RowSink
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows, LimitEvents, readings_of
from amt_stream.sessions.outputs import LatestReadings

FS = 48000
LIMITS = [Limit("laeq_2s_db", 79.9, hysteresis=0.05, name="short"), Limit("laf_db", 90.0)]


@pytest.fixture(scope="module")
def told():
    """Rows of a tone at 80 dB of which half a second is lost, and those that a sink was given."""
    time_s = np.arange(8 * FS) / FS
    tone = (0.1 * np.sin(2 * np.pi * 1000 * time_s)).astype(np.float32)[:, None]
    sunk = []
    sink = RowSink(sunk.append, 100, ["laf_db"], LIMITS)
    source = PushSource(FS, 1, live=False)
    engine = Engine(source, SoundLevel(FS), [sink], calibration=Calibration(100.0))

    def play():
        with source:
            source.push(tone[: 4 * FS])
            source.push(tone[int(4.5 * FS) :], lost=FS // 2)

    feed = engine.rows(100, ["laf_db"], LIMITS)
    with engine:
        player = threading.Thread(target=play)
        player.start()
        rows = list(feed)
        player.join()
    return rows, sunk


def test_a_gap_is_counted_out_and_said(told):
    """The equivalent level stays where it is, within 0.01 dB, and no event tells of the limit."""
    blocks, sunk = told
    assert [row for rows in blocks for row in rows] == sunk
    level = sunk[30]["laeq_2s_db"]
    assert level == pytest.approx(80.0, abs=0.05)
    assert [row["laeq_2s_db"] for row in sunk[10:]] == pytest.approx([level] * 66, abs=0.01)
    gap = [row["time_s"] for row in sunk if "gap" in row["fault"]]
    assert gap == [pytest.approx(4.5, abs=0.11)]
    named = {"laeq_2s_db", "all"}
    said = [row["time_s"] for row in sunk[10:] if named & {*row["settling_columns"].split()}]
    assert (min(said), max(said)) == pytest.approx((4.5, 4.5 + 2.12), abs=0.11)
    assert {row["limit_short"] for row in sunk if row["time_s"] > 2.1} == {"red"}
    unknown = [row["time_s"] for row in sunk if row["limit_laf_90"] == "unknown"]
    assert unknown == [row["time_s"] for row in sunk if row["laf_db"] is None] + gap
    tell = LimitEvents(LIMITS)
    events = [event for rows in blocks for event in tell(rows)]
    assert [event.text.split(":")[0] for event in events] == ["short is amber", "short is red"]


@pytest.mark.parametrize(
    ("lost_s", "missed", "verdict"), [(0, 0, "kept"), (0.04, 0, "kept"), (3, 3.0, "not known")]
)
def test_a_limit_is_not_kept_where_sound_is_missing_at_the_end(lost_s, missed, verdict):
    """As of a microphone that somebody muted: no row tells of it."""
    limits = [Limit(name, 90.0) for name in ("laeq_db", "laf_db", "laeq_1s_db")]
    rows = JoinedRows(readings_of(["spl"], 1), 100, FS, limits=limits)
    source, latest = PushSource(FS, 1, live=False), LatestReadings(rows)
    models = {"spl": SoundLevel(FS)}
    with Engine(source, models, [latest], calibration=Calibration(100.0)) as engine:
        with source:
            source.push(
                np.full((5 * FS, 1), 0.01, np.float32) * (-1.0) ** np.arange(5 * FS)[:, None]
            )
            source.push(np.zeros((0, 1), np.float32), lost=round(lost_s * FS))
        engine.wait()
    for one in latest.stood():
        told = one.to_dict()
        assert told["unjudged_s"] == pytest.approx(missed, abs=0.11)
        assert told["counted_s"] == pytest.approx(5.1 + missed, abs=0.11)
        assert (told["verdict"], told["state"] == "green") == (verdict, verdict == "kept")
