"""A meter on a computer that is too slow: its limit, what was asked for, and its sound."""

import sys

import numpy as np
import pytest

from tests.cli.slow_meter import (
    LIMIT,
    OPTIONS,
    WINDOW_S,
    refuse_a_state_of_what_was_not_measured,
    refuse_a_verdict_on_what_was_dropped,
    refuse_another_cause,
    refuse_what_is_off,
    told_while_held,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")

MODELS = "--model", "moore2016,gm2002,zwicker,ecma,daniel_weber,bs1770,spl"
HELD_S = 6.0


@pytest.fixture
def noise(sound_file):
    sound = 0.05 * np.random.default_rng(3).standard_normal((60 * 48000, 2))
    return sound_file(sound.astype(np.float32))


def test_a_file_loses_nothing_and_its_limit_is_judged_all_the_time(begin, noise):
    with begin("meter", "--source", noise, *MODELS, *OPTIONS) as meter:
        told = told_while_held(meter, HELD_S)
    refuse_what_is_off(told)
    refuse_another_cause(told)
    times = [row["time_s"] for row in told.rows]
    np.testing.assert_allclose(times, np.arange(len(times)) / 10, atol=1e-9)
    states = [row[LIMIT] for row in told.rows if row["time_s"] >= WINDOW_S]
    assert set(states) == {"green"}
    assert ", 0 samples lost," in told.said
    assert "missing" not in told.summary
    assert told.summary["limits"][0]["verdict"] == "kept"


def test_a_microphone_is_never_green_on_what_was_dropped(begin, noise, playing):
    with (
        playing(noise),
        begin("meter", "--source", "mic", "-d", "virtual_mic", *MODELS, *OPTIONS) as meter,
    ):
        told = told_while_held(meter, HELD_S)
    refuse_what_is_off(told)
    refuse_another_cause(told)
    refuse_a_state_of_what_was_not_measured(told.rows)
    refuse_a_verdict_on_what_was_dropped(told)
