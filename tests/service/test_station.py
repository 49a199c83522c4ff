"""A station by itself: what becomes of transports that fail, and of a loop that is too slow."""

import asyncio
import itertools
import time

import pytest

from amt_stream.engine import Engine, am_tone_source
from amt_stream.meters.presets import Preset, load_preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.service import Station
from amt_stream.service.dispatcher import MOST_ON_WAY
from amt_stream.service.transports.transport import Unhindered


class Keeping(Unhindered):
    """Keeps all messages."""

    name = "keeping"

    def __init__(self):
        self.messages = []

    async def open(self, wire):
        self.wire = wire

    def send(self, message):
        self.messages.append(message)

    @property
    def rows(self):
        return [one.content for one in self.messages if one.kind == "row"]


class Failing(Keeping):
    name = "failing"

    def send(self, message):
        raise RuntimeError("the line is cut")


class Halting(Keeping):
    """Stands still for once, and with it the loop."""

    name = "halting"

    def send(self, message):
        if message.kind == "row" and not self.rows:
            time.sleep(MOST_ON_WAY / 1000 + 1.0)
        super().send(message)


class Asking(Keeping):
    """Gives a command once there is a row, and keeps the reply."""

    name = "asking"

    def __init__(self, command, **arguments):
        super().__init__()
        self.command, self.asked = {"command": command, **arguments}, None

    @property
    def reply(self):
        done = self.asked is not None and self.asked.done()
        return self.asked.result().content if done else None

    @property
    def headers(self):
        return [one.content for one in self.messages if one.kind == "header"]

    def send(self, message):
        super().send(message)
        if self.asked is None and message.kind == "row":
            self.asked = asyncio.ensure_future(self.wire.answer(self.command))


def station(transports, step_ms, preset=None, columns="laf_db", duration=None):
    preset = preset or load_preset("noise-control").with_names(("spl",))

    def make(preset, sink_of, wait_for):
        source = am_tone_source(duration=duration)
        models = preset.models(source.fs, 2)
        sound = Sound(source.name, source.fs, (1, 2), [source.calibration], None)
        table = Table(preset, models, sound, RowSettings(step_ms, columns=columns))
        return Engine(source, models, [sink_of(table)]), table

    return Station(make, preset, transports)


def test_a_transport_that_fails_stops_no_other(caplog):
    keeping, failing = Keeping(), Failing()
    asyncio.run(station([failing, keeping], 10).serve(lambda: len(keeping.rows) > 50))
    state = [one.content for one in keeping.messages if one.kind == "state"][-1]
    assert state["transports"]["failing"]["note"] == "failing cannot send: the line is cut"
    assert state["transports"]["keeping"]["note"] == ""
    assert caplog.text.count("failing cannot send") == 1  # once, not with each message


def test_headers_after_a_swap_tell_of_it():
    """One for each model that is set otherwise; the first of them too."""
    asking = Asking("swap", settings={"field": "diffuse"})
    served = station([asking], 100, Preset(("moore2016", "zwicker")), None)
    asyncio.run(served.serve(lambda: len(asking.headers) > 2))
    fields = [[model["field"] for model in one["models"]] for one in asking.headers]
    assert fields == [["free"] * 2, ["diffuse"] * 2, ["diffuse"] * 2]


def test_a_calibration_of_a_row_that_there_is_not_changes_no_header():
    asking = Asking("calibrate", full_scale_db=50, microphone="door")
    served = station([asking], 100)
    asyncio.run(served.serve(lambda: asking.reply is not None))
    assert "no microphone is called 'door'" in asking.reply["error"]
    assert served.table.sound.calibration == [am_tone_source().calibration]


@pytest.mark.parametrize("command", ["leave_out", "take_in"])
def test_an_impulse_is_refused_where_no_model_counts_any(command):
    asking = Asking(command, time_s=0.1)
    asyncio.run(station([asking], 100).serve(lambda: asking.reply is not None))
    assert (asking.reply["done"], asking.reply["error"]) == (
        False,
        f"{command} is for the models impulses and rating, and not for spl: add --model rating, or "
        "leave it out",
    )


@pytest.mark.parametrize(("command", "began_s"), [("leave_out", 0.1), ("take_in", 30.0)])
def test_an_impulse_that_there_is_not_is_refused(command, began_s):
    asking = Asking(command, time_s=began_s)
    preset = load_preset("noise-control").with_names(("impulses",))
    served = station([asking], 100, preset, "impulse_s")
    asyncio.run(served.serve(lambda: asking.reply is not None))
    assert (asking.reply["done"], asking.reply["error"]) == (
        False,
        f"{command}: no impulse that can be left out began at {began_s:g} s: give the impulse_s of "
        "a row; of each half hour the 16 most prominent can be left out",
    )


def test_what_comes_after_the_end_of_the_sound_is_refused():
    """Also before the end is noticed and told."""

    class Late(Keeping):
        name, asked = "late", None

        def send(self, message):
            super().send(message)
            if message.kind == "summary":
                asked = (
                    {"command": "mark", "text": "door"},
                    {"command": "reset_readings"},
                    {"command": "pause"},
                )
                self.asked = [asyncio.ensure_future(self.wire.answer(one)) for one in asked]

    late = Late()
    served = station([late], 10, duration=0.5)
    asyncio.run(served.serve(lambda: late.asked is not None and all(a.done() for a in late.asked)))
    replies = [one.result().content for one in late.asked]
    assert [(one["command"], one["done"]) for one in replies] == [
        (name, False) for name in ("mark", "reset_readings", "pause")
    ]
    assert all(
        "ended" in one["error"] or "no measurement is running" in one["error"] for one in replies
    )
    assert not [one for one in late.messages if one.kind == "event"]


def test_rows_that_the_loop_is_too_slow_for_are_left_out_and_told():
    halting = Halting()
    asyncio.run(station([halting], 1).serve(lambda: len(halting.rows) > MOST_ON_WAY + 300))
    rows = halting.rows
    gaps = [(a, b) for a, b in itertools.pairwise(rows) if b["sample"] - a["sample"] > 48]
    assert gaps
    assert {after["fault"] for _, after in gaps} == {"overload"}
    missed = sum((after["sample"] - before["sample"]) // 48 - 1 for before, after in gaps)
    state = [one.content for one in halting.messages if one.kind == "state"][-1]
    assert 0 < missed == state["transports"]["halting"]["missed_rows"]
