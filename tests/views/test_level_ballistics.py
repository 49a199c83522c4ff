"""The input level: one value with the ballistics of a meter."""

import math

import pytest

from amt_stream.views.level_ballistics import LevelBallistics


def test_it_rises_at_once_and_falls_by_20_db_a_second():
    ear = LevelBallistics()
    assert ear.text == "-"
    ear.follow(1.0, 80.0)
    assert ear.text == "80.0"
    ear.follow(1.5, 40.0)
    assert ear.level == pytest.approx(70.0)
    ear.follow(4.0, 40.0)
    assert ear.level == pytest.approx(40.0)
    ear.follow(4.1, 95.0)
    assert (ear.level, ear.held) == (95.0, 95.0)


def test_the_maximum_is_held_for_two_seconds():
    ear = LevelBallistics()
    for tenth in range(41):
        ear.follow(tenth / 10, 90.0 if tenth == 0 else 40.0)
        if tenth <= 20:
            assert ear.held == 90.0
    assert ear.held < 60.0


def test_a_sound_that_starts_again_starts_the_meter_again():
    ear = LevelBallistics()
    ear.follow(10.0, 90.0, clipped=True)
    ear.follow(0.5, 30.0)
    assert (ear.level, ear.held, ear.clipped) == (30.0, 30.0, False)
    ear.follow(0.6, -120.0)
    assert ear.text != "silence"
    ear.follow(60.0, -math.inf)
    assert ear.level == -math.inf or ear.text == "silence"


def test_the_time_of_the_hold_is_a_choice():
    top = LevelBallistics(hold_s=5.0)
    top.follow(0.0, 4.0)
    top.follow(4.9, 1.0)
    assert top.held == 4.0
    top.follow(5.1, 1.0)
    assert top.held == 1.0
