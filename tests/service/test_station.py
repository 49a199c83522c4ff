"""A station by itself: what becomes of transports that fail, and of a loop that is too slow."""

import asyncio
import itertools
import time

from amt_stream.engine import Engine, am_tone_source
from amt_stream.presets import load_preset
from amt_stream.service import Station
from amt_stream.service.station import MOST_ON_WAY
from amt_stream.service.transport import Unhindered
from amt_stream.table import Sound, Table


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


def station(transports, step_ms):
    preset = load_preset("noise-control").with_names(("spl",))

    def make(preset, sink_of):
        source = am_tone_source()
        models = preset.models(source.fs, 2)
        sound = Sound(source.name, source.fs, (1, 2), [source.calibration], None)
        table = Table(preset, models, sound, step_ms, columns="laf_db")
        return Engine(source, models, [sink_of(table)]), table

    return Station(make, preset, transports)


def test_a_transport_that_fails_stops_no_other(caplog):
    keeping, failing = Keeping(), Failing()
    asyncio.run(station([failing, keeping], 10).serve(lambda: len(keeping.rows) > 50))
    state = [one.content for one in keeping.messages if one.kind == "state"][-1]
    assert state["transports"]["failing"]["note"] == "failing cannot send: the line is cut"
    assert state["transports"]["keeping"]["note"] == ""
    assert caplog.text.count("failing cannot send") == 1  # once, not with each message


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
