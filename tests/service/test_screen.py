"""What the server decides that a page shows."""

import pytest

from amt_stream.service.message import Message
from amt_stream.service.screen import Screens

COLUMNS = [{"name": "laf_db", "unit": "dB"}, {"name": "integrated_lufs", "unit": "LUFS"}]
LIMIT = {"name": "loud", "column": "laf_db", "above": 80}
HEADER = {"columns": COLUMNS, "source": {"name": "UMIK-1"}, "limits": [LIMIT], "step_ms": 1000}
ROW = {"time_s": 2.0, "laf_db": 85.25, "integrated_lufs": -23.0, "limit_loud": "red"}
ROW |= {"settling": False, "settling_columns": "", "calibrated": True, "fault": ""}
HEALTH = {"device_state": "running", "overloaded": False, "note": "", "load": 0.1}


class Told:
    """The screen after some messages, at a time that the test chooses."""

    def __init__(self, state="measuring", health=(), row=(), **more):
        self.now = 100.0
        self.screens = Screens(lambda: self.now)
        self.take("header", HEADER)
        self.take("row", ROW | dict(row))
        self.take("state", {"state": state, "health": HEALTH | dict(health), "why": [], **more})

    def take(self, kind, content):
        self.screens.take(Message(kind, content))

    def shown(self, after_s=0.0):
        self.now = 100.0 + after_s
        (message,) = self.screens.messages()
        return message.content

    def words(self, after_s=0.0):
        return "{word}{also}".format_map(self.shown(after_s)["chip"])


def test_a_row_is_shown_until_the_next_one_is_late():
    told = Told()
    reading = {"text": "85.2", "last": "", "doubts": [], "grey": False}
    assert told.shown(1.9)["readings"]["laf_db"] == reading
    assert told.shown(1.9)["limits"][0]["word"] == "Over the limit"
    assert told.words(1.9) == "Over limit"
    assert (told.shown()["late_after_s"], told.shown()["stale_after_s"]) == (2.0, 3.0)
    late = told.shown(2.1)
    assert late["readings"]["laf_db"] == reading | {"text": "---", "last": "85.2"}
    assert late["limits"][0]["word"] == "Not known yet"
    assert told.words(2.1) == "Running"
    assert told.shown(3.1)["readings"]["laf_db"]["doubts"] == ["stale"]


def test_a_row_of_a_measurement_that_stopped_stays_and_is_grey():
    told = Told("stopped")
    assert told.shown(60.0)["readings"]["laf_db"]["text"] == "85.2"
    assert told.shown(1.0)["readings"]["laf_db"]["grey"]
    assert told.shown()["limits"][0]["word"] == "Not known: stopped"


@pytest.mark.parametrize("state", ["measuring", "paused"])
def test_a_lost_microphone_is_said_with_the_time_since_then(state):
    told = Told(state, {"device_state": "lost", "note": "unplugged"})
    shown = told.shown(61.0)
    assert shown["chip"]["word"] == "Lost"
    assert shown["banner"] == "Microphone lost 01:01, waiting for UMIK-1"
    assert shown["note"] == "load 10 %"
    assert shown["readings"]["laf_db"]["text"] == "---"
    assert shown["readings"]["laf_db"]["doubts"][0] == "lost"


@pytest.mark.parametrize(
    ("row", "level", "programme"),
    [
        ({"calibrated": False}, ["uncalibrated"], []),
        ({"fault": "gap overload"}, ["gap"], ["gap"]),
        ({"fault": "off", "laf_db": None}, ["switched off"], []),
        ({"settling": True, "settling_columns": "laf_db"}, ["settling"], []),
        ({"settling": True, "settling_columns": "all"}, ["settling"], ["settling"]),
    ],
)
def test_each_reading_has_its_doubts(row, level, programme):
    readings = Told(row=row).shown()["readings"]
    assert readings["laf_db"]["doubts"] == level
    assert readings["integrated_lufs"]["doubts"] == programme
    assert readings["laf_db"]["grey"] == (level != ["uncalibrated"])


def test_a_fault_is_a_state_for_two_rows():
    told = Told(row={"fault": "clip"})
    told.take("row", ROW)
    assert told.words(1.9) == "Clipped \N{MIDDLE DOT} over limit"
    told.take("row", ROW)
    assert told.words(2.1) == "Over limit"


def test_the_status_line_and_what_stands_in_its_place():
    note = {"note": "the processor is slow", "slow_because": "the processor was hot"}
    log = {"path": "hall.log", "note": "the disk is full"}
    told = Told(health=note | {"lost_samples": 3}, logs=[log])
    parts = ["the processor is slow", "load 10 %, too slow: the processor was hot"]
    parts += ["3 samples lost", "log in hall.log (the disk is full)"]
    assert told.shown()["note"] == " \N{MIDDLE DOT} ".join(parts)
    told.take("state", {"state": "waiting", "why": ["no microphone", "the disk is full"]})
    assert told.shown(5.0)["banner"] == "Waiting for the microphone: no microphone (00:05)"
    assert told.shown()["note"] == "the disk is full"
    told.take("state", {"state": "failed", "error": "it broke", "why": []})
    assert told.shown(5.0)["banner"].startswith("The measurement failed: it broke (")


def test_a_tone_that_was_not_renewed_for_long_is_old():
    columns = [{"name": name, "unit": "dB"} for name in ("kt_db", "ki_db")]
    told = Told()
    told.take("header", HEADER | {"columns": columns, "limits": []})
    for age_s, doubts in ((9.9, []), (12.0, ["12 s old"])):
        told.take("row", ROW | {"kt_db": 3.0, "ki_db": 2.0, "tone_age_s": age_s})
        readings = told.shown()["readings"]
        assert (readings["kt_db"]["doubts"], readings["kt_db"]["grey"]) == (doubts, bool(doubts))
        assert readings["kt_db"]["text"] == "3.0"
        assert not readings["ki_db"]["grey"]
