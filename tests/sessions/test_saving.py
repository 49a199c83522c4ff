"""A measurement that was in no log, kept as a session: what was read is still there."""

import numpy as np
import pytest

from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Rows
from amt_stream.offline.measure import measure
from amt_stream.sessions import SessionError, save_session, verify
from amt_stream.sessions.results import read_results

FS = 48000
KEPT = ("time_s", "utc", "laf_db", "fault", "settling", "calibrated")


@pytest.fixture(scope="module")
def measured():
    noise = 0.01 * np.random.default_rng(4).standard_normal((FS, 2))
    return measure(noise, FS, "spl", calibration=100.0, step_ms=100)


def test_what_a_screen_kept_is_a_session_that_is_intact(tmp_path, measured):
    rows = Rows({name: measured.rows[name] for name in KEPT})
    marks = [Event("mark", 4800, 0.1, 1.8e9, text="here")]
    path = save_session(
        tmp_path / "kept",
        rows,
        measured.header,
        summary=measured.summary,
        events=marks,
        settings={"layout": "wide"},
    )
    found = read_results(path)
    np.testing.assert_array_equal(found.rows["laf_db"], rows["laf_db"])
    np.testing.assert_array_equal(found.rows["settling"], rows["settling"])
    assert found.rows["sample"].tolist() == [round(t * FS) for t in rows["time_s"]]
    assert list(found.columns) == ["laf_db"]
    assert found.summary == measured.summary
    assert [event.text for event in found.marks] == ["here"]
    assert found.settings["layout"] == "wide"
    assert verify(path).word == "intact"


def test_nothing_is_overwritten(tmp_path, measured):
    path = save_session(tmp_path / "kept", measured.rows, measured.header)
    with pytest.raises(SessionError, match="is a session already"):
        save_session(path, measured.rows, measured.header)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "a.txt").write_text("mine")
    with pytest.raises(SessionError, match=r"is not a session \(it has"):
        save_session(tmp_path / "else", measured.rows, measured.header)
    assert read_results(path).summary == {}
