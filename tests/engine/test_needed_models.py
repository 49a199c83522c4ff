"""Which models an overload switches off, which never, and what rows say of those that are off."""

import time
from fractions import Fraction

import pytest

from amt_stream.dsp.streaming import Stage
from amt_stream.engine import Engine, RowSink, SignalSource
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.meters.triggers import trigger_from_text
from amt_stream.sessions.outputs import LatestReadings

FS = 48000
LIMIT = limit_from_text("dear_value<-1")


class Sleeper(Stage):
    """Takes so many seconds for a second of sound, without the processor."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.block_size = 480
        self.ratio = Fraction(1, 480)

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        time.sleep(self.seconds * x.shape[-1] / FS)
        return x.unflatten(-1, (-1, 480)).square().mean(-1).sum(-2), state


def slow(**seconds: float) -> dict[str, Stage]:
    return {name: Sleeper(one) for name, one in seconds.items()}


def live() -> SignalSource:
    source = SignalSource()
    source.can_wait = False  # as a microphone
    return source


def told(engine: Engine, kind: str) -> list[str]:
    return [event.text for event in engine.events if event.kind == kind]


def off_in(engine: Engine) -> set[str]:
    """The models that the note says are off."""
    words = engine.health.note.partition(": ")[2].split("; ")[0].split(", ")
    return {word.removesuffix(" off") for word in words if word.endswith(" off")}


def test_the_dearest_goes_whichever_its_place_and_the_last_one_stays(until):
    models = slow(dear=0.9, cheap=0.3, mid=0.6)
    with Engine(live(), models, ladder=["models"]) as engine:
        until(lambda: off_in(engine) == {"dear"})
        models["mid"].seconds = models["cheap"].seconds = 1.2
        until(lambda: len(off_in(engine)) == 2)
        until(lambda: "nothing more can be omitted" in told(engine, "overload")[-1])
        assert len(off_in(engine)) == 2
        assert "parts of it are dropped" in engine.health.note


@pytest.mark.parametrize("way", ["limit", "columns", "option"])
def test_what_somebody_needs_stays_however_dear(until, way):
    rows: list[dict] = []
    how = {"limits": [LIMIT]} if way == "limit" else {}
    how |= {"columns": ["dear_value"]} if way == "columns" else {}
    needed = ["dear"] if way == "option" else []
    models = slow(dear=0.9, cheap=0.3)
    sinks = [RowSink(rows.append, **how)]
    with Engine(live(), models, sinks, ladder=["models"], needed=needed) as engine:
        until(lambda: off_in(engine) == {"cheap"})
        count = len(rows)
        until(lambda: len(rows) > count + 10)
        assert rows[-1]["dear_value"] is not None
        if way == "limit":
            assert rows[-1][LIMIT.state] == "green"
        if way != "columns":
            assert rows[-1]["cheap_value"] is None
            assert "off" in rows[-1]["fault"]


def test_where_all_are_needed_sound_is_dropped_and_none_is_off(until):
    models = slow(dear=0.9, cheap=0.9)
    with Engine(live(), models, ladder=["models"], needed=[*models]) as engine:
        until(lambda: engine.health.lost_samples)
        assert not off_in(engine)
        assert engine.health.dropped_samples == engine.health.lost_samples


def test_a_limit_that_is_added_later_switches_its_model_on_again(until):
    seen: list[dict] = []
    rows: list[dict] = []
    models = slow(dear=0.9, cheap=0.3)
    with Engine(live(), models, [RowSink(seen.append)], ladder=["models"]) as engine:
        until(lambda: seen and seen[-1]["dear_value"] is None)
        judge = RowSink(rows.append, limits=[LIMIT])
        engine.attach(judge)
        until(lambda: any("dear is on again" in text for text in told(engine, "overload")))
        until(lambda: rows and rows[-1][LIMIT.state] == "green")
        assert {row[LIMIT.state] for row in rows if row["dear_value"] is None} == {"unknown"}
        until(lambda: off_in(engine) == {"cheap"})
        engine.detach(judge)
        assert not engine._sinks.needed


def test_what_is_needed_must_be_a_model(power_meter):
    with pytest.raises(ValueError, match=r"needed is .'loud'.: give names of models: a, b"):
        Engine(live(), {"a": power_meter(), "b": power_meter()}, needed=["loud"])
    with pytest.raises(ValueError, match="give names of models"):
        Engine(live(), {"a": power_meter()}, needed="a")


NAMES = ("moore2016", "spl", "zwicker")


def table(asked=None, **preset) -> Table:
    made = Preset(NAMES, **preset)
    sound = Sound("mic", FS, (1, 2), [], None)
    return Table(made, made.models(FS, 2), sound, asked or RowSettings())


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (table, set()),
        (lambda: table(limits=(limit_from_text("laeq_15min_db>85"),)), {"spl"}),
        (lambda: table(triggers=(trigger_from_text("zwicker_n_sone>4"),)), {"zwicker"}),
        (lambda: table(RowSettings(columns="ltl_*,laf_db")), {"moore2016", "spl"}),
        (lambda: table(RowSettings(interval=60)), set(NAMES)),
    ],
)
def test_limits_triggers_columns_and_intervals_need_their_models(made, needed):
    one = made()
    assert one.rows.needed == needed
    assert LatestReadings(one.rows).needed == needed


def test_what_a_column_is_computed_from_is_needed_too():
    made = Preset(("zwicker", "ecma", "spl"), limits=(limit_from_text("annoyance_zwicker>9"),))
    sound = Sound("mic", FS, (1, 2), [], None)
    rows = Table(made, made.models(FS, 2), sound, RowSettings()).rows
    assert rows.needed == {"zwicker", "ecma"}
