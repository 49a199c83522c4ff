"""Which models an overload switches off, which never, and what rows say of those that are off."""

import pytest

from amt_stream.engine import Engine, RowSink, SignalSource
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.meters.triggers import trigger_from_text
from amt_stream.sessions.outputs import LatestReadings
from tests.engine.given_time import engine_of, slow
from tests.engine.slow_models import FS

LIMIT = limit_from_text("dear_value<-1")


def told(engine: Engine, kind: str) -> list[str]:
    return [event.text for event in engine.events if event.kind == kind]


def off_in(engine: Engine) -> set[str]:
    """The models that the note says are off."""
    words = engine.health.note.partition(": ")[2].split("; ")[0].split(", ")
    return {word.removesuffix(" off") for word in words if word.endswith(" off")}


def all_rows(rows: list[dict], engine: Engine, until) -> list[dict]:
    """The rows up to now."""
    until(lambda: rows and rows[-1]["time_s"] > engine.history.read().time_s[-1] - 0.2)
    return rows


def test_the_dearest_goes_whichever_its_place_and_the_last_one_stays(clock):
    models = slow(clock, dear=0.9, cheap=0.3, mid=0.6)
    with engine_of(clock, models, ladder=["models"]) as engine:
        clock.go_on(3.0)
        assert off_in(engine) == {"dear"}
        models["mid"].seconds = models["cheap"].seconds = 1.2
        clock.go_on(2.0)
        assert off_in(engine) == {"dear", "mid"}
        clock.go_on(4.0)
        assert off_in(engine) == {"dear", "mid"}
        assert "nothing more can be omitted" in told(engine, "overload")[-1]
        assert "parts of it are dropped" in engine.health.note


@pytest.mark.cases(2)
@pytest.mark.parametrize("way", ["limit", "columns", "option"])
def test_what_somebody_needs_stays_however_dear(clock, until, way):
    rows: list[dict] = []
    how = {"limits": [LIMIT]} if way == "limit" else {}
    how |= {"columns": ["dear_value"]} if way == "columns" else {}
    needed = ["dear"] if way == "option" else []
    sinks = [RowSink(rows.append, **how)]
    models = slow(clock, dear=0.9, cheap=0.3)
    with engine_of(clock, models, sinks, ladder=["models"], needed=needed) as engine:
        clock.go_on(5.0)
        assert off_in(engine) == {"cheap"}
        last = all_rows(rows, engine, until)[-1]
        assert last["dear_value"] is not None
        if way == "limit":
            # Another model lacks that time, and the limit's own does not.
            assert {row[LIMIT.state] for row in rows[1:]} == {"green"}
        if way != "columns":
            assert last["cheap_value"] is None
            assert "off" in last["fault"]


def test_where_all_are_needed_sound_is_dropped_and_none_is_off(clock):
    models = slow(clock, dear=0.9, cheap=0.9)
    with engine_of(clock, models, ladder=["models"], needed=[*models]) as engine:
        clock.go_on(6.0)
        assert not off_in(engine)
        assert engine.health.dropped_samples == engine.health.lost_samples > 0


def test_a_limit_that_is_added_later_switches_its_model_on_again(clock, until):
    seen: list[dict] = []
    rows: list[dict] = []
    models = slow(clock, dear=0.9, cheap=0.3)
    with engine_of(clock, models, [RowSink(seen.append)], ladder=["models"]) as engine:
        clock.go_on(4.0)
        assert all_rows(seen, engine, until)[-1]["dear_value"] is None
        judge = RowSink(rows.append, limits=[LIMIT])
        engine.attach(judge)
        clock.go_on(8.0)
        assert any("dear is on again" in text for text in told(engine, "overload"))
        assert off_in(engine) == {"cheap"}
        states = [row[LIMIT.state] for row in all_rows(rows, engine, until)]
        assert states[-1] == "green"
        assert {row[LIMIT.state] for row in rows if row["dear_value"] is None} == {"unknown"}
        engine.detach(judge)
        assert not engine._sinks.needed


def test_what_is_needed_must_be_a_model(power_meter):
    with pytest.raises(ValueError, match=r"needed is .'loud'.: give names of models: a, b"):
        Engine(SignalSource(), {"a": power_meter(), "b": power_meter()}, needed=["loud"])
    with pytest.raises(ValueError, match="give names of models"):
        Engine(SignalSource(), {"a": power_meter()}, needed="a")


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
