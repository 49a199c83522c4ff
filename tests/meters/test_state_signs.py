"""The states of a measurement: one word, shape and color each, in one order on all displays."""

import re
from pathlib import Path

import pytest

from amt_monitor.base.theme import DARK
from amt_stream.cli.terminal.palette import COLORS
from amt_stream.meters.rows import FAULT_NAMES
from amt_stream.meters.state_signs import (
    OF_FAULT,
    SIDE,
    SIGNS,
    away_sentence,
    is_away,
    rank_states,
    signs_script,
    states_text,
)

STYLE = Path(__file__).parents[2] / "amt_stream/service/page/static/style.css"
TOLD_APART = ("lost", "uncalibrated", "too slow", "clipped", "settling", "stopped", "paused")
TOLD_APART += ("frozen", "over limit", "running")


def test_each_has_a_shape_and_a_color_of_its_own():
    signs = [SIGNS[name] for name in TOLD_APART]
    assert len({one.glyph for one in signs}) == len({one.shape for one in signs}) == len(signs)
    assert len({(one.color, one.filled) for one in signs}) == len(signs)


def test_each_color_is_in_all_palettes_and_each_shape_in_its_square():
    style = STYLE.read_text(encoding="utf-8")
    for name, sign in SIGNS.items():
        assert getattr(DARK, sign.color).startswith("#"), name
        assert getattr(COLORS["amt-dark"], sign.color).startswith("#"), name
        assert f"--{sign.color}:" in style, name
        places = [at for outline in sign.shape for point in outline for at in point]
        assert min(places) >= 0, name
        assert max(places) <= SIDE, name


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        ({}, "Running"),
        ({"uncalibrated": True}, "Uncalibrated"),
        ({"uncalibrated": True, "settling": True}, "Settling"),
        ({"frozen": True, "settling": True}, "Frozen · settling"),
        ({"faults": ["clip"], "limits": ["over limit"]}, "Clipped · over limit"),
        (
            {"health": ["overloaded"], "faults": ["off", "clip"], "limits": ["below limit"]},
            "Too slow · clipped +1",
        ),
    ],
)
def test_the_worst_comes_first(holds, text):
    assert states_text(rank_states("running", **holds)) == text


def test_faults_and_limits_are_not_told_while_nothing_is_measured():
    holds = {
        "health": ["overloaded"],
        "faults": ["clip"],
        "settling": True,
        "limits": ["over limit"],
    }
    assert rank_states("lost", **holds) == ["lost"]
    assert rank_states("stopped", frozen=True, **holds) == ["stopped", "frozen"]
    assert rank_states("paused", **holds)[0] == "too slow"


def test_each_fault_of_a_row_has_a_state():
    assert {*OF_FAULT} == {*FAULT_NAMES.values()}
    assert {*OF_FAULT.values()} < {*SIGNS}


def test_the_page_gets_the_same_table():
    script = signs_script()
    names = re.search(r"SIGNS = (\{.*\});", script)
    assert names is not None
    assert re.findall(r'"([a-z ]+)": \{', names[1]) == [*SIGNS]


def test_how_long_a_microphone_gives_no_sound():
    note = "'UMIK-1' gives exact zeros: it is muted in the sound server"
    lost = away_sentence("lost", 84.9, "UMIK-1", note)
    assert lost == "Microphone lost 01:24, waiting for UMIK-1"
    silent = away_sentence("silent", 5.2, "UMIK-1", note)
    assert silent == f"Microphone silent 00:05, {note}"
    assert is_away(["silent", "frozen"])
    assert not is_away(["stalled", "paused"])
