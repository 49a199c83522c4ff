"""Rows out of a running engine: iterated over, handed to a function, looked at."""

import asyncio
import gc
import threading
import time
from statistics import median

import numpy as np
import pytest

from amt_stream.dsp.models import Glasberg2002, ModulationSpectrum, Moore2016, ZwickerTimeVarying
from amt_stream.dsp.stages import BS1770
from amt_stream.engine import Engine, PushSource, RowSink, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import JoinedRows, readings_of

FS = 48000
TONE = [Tone(1000.0, level_db=60.0)]


def tone(duration: float | None = 0.5, paced: bool = False) -> SignalSource:
    return SignalSource(TONE, FS, duration, paced)


@pytest.fixture(scope="module")
def loudness():
    return Moore2016(fs=FS, accuracy="coarse")


def all_rows(blocks) -> list[dict]:
    return [row for rows in blocks for row in rows]


@pytest.mark.parametrize("step_ms", [1, 10, 100])
def test_they_are_those_that_the_command_writes(loudness, collector, step_ms):
    collector.hears_tail = True
    engine = Engine(tone(), {"moore2016": loudness}, [collector])
    feed = engine.rows(step_ms)
    with engine:
        found = all_rows(feed)
    table = JoinedRows(readings_of(["moore2016"], 2), step_ms, FS, duration_s=0.5)
    expected = all_rows([*map(table, collector.all), table.rest(0.5)])
    assert found == expected
    assert feed.columns == tuple(found[0])
    assert [row["time_s"] for row in found[:3]] == [0.0, step_ms / 1000, 2 * step_ms / 1000]
    assert found[-1]["time_s"] == 0.5
    assert found[-1]["ltl_phon"] == pytest.approx(60.0, abs=1.0)
    assert found[-1]["calibrated"]
    assert next(feed, None) is None


def test_in_asyncio_they_come_while_other_things_go_on(loudness):
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    async def listen() -> list[dict]:
        counting = asyncio.create_task(count())
        with Engine(tone(0.6, paced=True), loudness) as engine:
            found = [row async for rows in engine.rows(step_ms=20) for row in rows]
        counting.cancel()
        return found

    found = asyncio.run(listen())
    assert [row["time_s"] for row in found] == pytest.approx(np.arange(31) * 0.02)
    assert turns > 10


def test_a_task_that_is_canceled_lets_go_of_them(loudness):
    async def listen() -> None:
        with Engine(tone(None, paced=True), loudness) as engine:
            async with asyncio.timeout(0.3):
                async for _ in engine.rows():
                    pass

    with pytest.raises(TimeoutError):
        asyncio.run(listen())


def test_asked_for_late_they_begin_with_the_present(power_meter, until):
    source, handed = PushSource(FS, 2), []
    with Engine(source, power_meter(), [handed.append], history_s=0.5, ring_s=10.0) as engine:
        source.push(np.zeros((2 * FS, 2)))
        until(lambda: sum(map(len, handed)) == 2000)  # and none is on its way to a sink
        feed = engine.rows(step_ms=10)
        source.push(np.zeros((FS, 2)))
        source.close()
        times = [row["time_s"] for row in all_rows(feed)]
    assert times == pytest.approx(np.arange(199, 301) / 100)


def test_asked_for_at_the_end_they_are_there_too(power_meter):
    with Engine(tone(0.2), power_meter()) as engine:
        assert engine.wait(60)
        assert len(all_rows(engine.rows(step_ms=10))) == 21
        assert engine.latest()["time_s"] == 0.2


def test_whoever_is_too_slow_misses_rows_and_is_told(power_meter, noise, until):
    x = noise(FS)
    source = PushSource(FS, 2)
    engine = Engine(source, power_meter(), ring_s=4.0, sink_slack_s=0.1)
    feed = engine.rows(step_ms=10)
    with engine:
        for at in range(0, FS, 4800):
            source.push(x[at : at + 4800])
            until(lambda: engine.history.count >= (at + 4800) // 48)  # noqa: B023
            time.sleep(0.02)
        first = next(feed)
        source.push(x[:4800])
        source.close()
        rest = all_rows(feed)
        assert engine.wait(60)
    assert feed.missed > 50
    assert feed.missed + len(first) + len(rest) == 111
    times = np.array([row["time_s"] for row in [*first, *rest]])
    after = int(np.argmax(np.diff(times) > 0.015)) + 1
    assert "overload" in [*first, *rest][after]["fault"]


def test_a_source_that_can_wait_waits_for_whoever_reads(power_meter):
    engine = Engine(tone(3.0), power_meter(), sink_slack_s=0.05)
    feed = engine.rows(step_ms=10)
    with engine:
        assert not engine.wait(0.5)
        found = all_rows(feed)
        assert engine.wait(60)
    assert len(found) == 301
    assert feed.missed == engine.health.sink_missed == 0


def test_a_feed_that_nobody_refers_to_holds_nothing_up(power_meter):
    engine = Engine(tone(3.0), power_meter(), sink_slack_s=0.05)
    feed = engine.rows(step_ms=10)
    with engine:
        for _ in feed:
            break
        del feed
        gc.collect()
        assert engine.wait(60)
    assert not [t for t in threading.enumerate() if "rows" in t.name]


def test_one_that_is_closed_ends(power_meter):
    with Engine(tone(None, paced=True), power_meter()) as engine, engine.rows() as feed:
        assert len(next(feed))
        feed.close()
        assert len(all_rows(feed)) <= 20


def test_an_engine_that_is_stopped_ends_them(power_meter):
    with Engine(tone(None, paced=True), power_meter()) as engine:
        feed = engine.rows(step_ms=10)
        stopper = threading.Timer(0.2, engine.stop)
        stopper.start()
        assert len(all_rows(feed)) > 5
    stopper.join()


def test_the_newest_row_can_be_looked_at(loudness, until):
    source = PushSource(FS, 2, calibration=Calibration(130.0))
    engine = Engine(source, loudness)
    assert engine.latest() is None
    with engine:
        assert engine.latest() is None
        source.push(np.zeros((FS // 2, 2)))
        until(lambda: (row := engine.latest()) is not None and row["time_s"] >= 0.4)
        row = engine.latest()
        assert row["calibrated"]
        assert row["stl_sone"] == 0.0
        source.push(np.zeros((480, 2)), lost=FS // 2)
        source.close()
        assert engine.wait(60)
    row = engine.latest()
    assert row["time_s"] == 1.0
    assert "gap" in row["fault"]


def test_readings_that_look_back_are_right_from_the_first_look():
    """Momentary and short-term loudness of the last 0.4 and 3 s."""
    # 1 kHz at -23 dB of a full-scale sine in both channels is -23 LUFS (EBU Tech 3341, case 1).
    source = SignalSource([Tone(1000.0, level_db=130.0 - 23.0)], FS, 10.0, paced=False)
    with Engine(source, BS1770(fs=FS)) as engine:
        assert engine.wait(60)
        row = engine.latest()
    assert row["momentary_lufs"] == pytest.approx(-23.0, abs=0.01)
    assert row["short_term_lufs"] == pytest.approx(-23.0, abs=0.01)
    assert row["time_s"] == 10.0


def test_a_function_is_given_each_row(loudness):
    found = []
    sinks = [RowSink(found.append, step_ms=50, columns=["ltl_phon", "max_*_sone"])]
    with Engine(tone(), loudness, sinks) as engine:
        assert engine.wait(60)
    assert [row["time_s"] for row in found] == pytest.approx(np.arange(11) / 20)
    assert list(found[0]) == [
        *("time_s", "utc", "sample"),
        *("ltl_phon", "max_stl_sone", "max_ltl_sone"),
        *("fault", "settling", "settling_columns", "clipped_columns", "calibrated"),
    ]


def test_a_function_that_fails_is_told_as_a_sink(power_meter, caplog):
    def failing(row) -> None:
        raise RuntimeError("disk full")

    with Engine(tone(2.0), power_meter(), [RowSink(failing, step_ms=10)]) as engine:
        assert engine.wait(60)
    assert engine.health.sink_errors == 5
    assert "failing" in engine.health.note


def test_a_model_without_readings_gives_its_outputs(power_meter):
    models = {"a": power_meter(), "b": power_meter(delay=96)}
    engine = Engine(tone(), models)
    feed = engine.rows(step_ms=10)
    with engine:
        found = all_rows(feed)
    assert [name for name in found[0] if name[1] == "_"] == ["a_stl", "a_ltl", "b_stl", "b_ltl"]
    # 60 dB SPL in both ears together.
    assert found[30]["a_stl"] == pytest.approx(2 * (20e-6 * 1000) ** 2, rel=1e-3)


def test_several_models_stand_in_one_row(loudness):
    engine = Engine(tone(), {"loudness": loudness, "zwicker": ZwickerTimeVarying(FS)})
    feed = engine.rows(columns=["ltl_phon", "zwicker_n_sone"])
    with engine:
        found = all_rows(feed)
    assert len(found) == 6
    assert found[-1]["ltl_phon"] == pytest.approx(60.0, abs=1.0)
    assert found[-1]["zwicker_n_sone"] == pytest.approx(4.0, abs=0.5)


def test_a_swap_for_another_kind_of_model_begins_its_rows(power_meter, until):
    source = PushSource(FS, 2, calibration=Calibration(100.0))
    engine = Engine(source, power_meter(), ring_s=4.0)
    feed = engine.rows(step_ms=10)
    with engine:
        source.push(np.full((FS // 2, 2), 0.1))
        until(lambda: engine.history.count == 500)
        engine.swap(Glasberg2002(fs=FS))
        source.push(np.full((FS // 2, 2), 0.1))
        source.close()
        found = all_rows(feed)
        assert engine.wait(60)
    before = [row for row in found if "stl" in row]
    after = [row for row in found if "gm2002_stl_sone" in row]
    assert len(before) + len(after) == len(found)
    times = [row["time_s"] for row in found]
    assert len(set(times)) == len(times)
    assert 0.45 < before[-1]["time_s"] <= 0.5 <= after[0]["time_s"] < 0.6
    assert after[-1]["gm2002_stl_sone"] > 0.0


def test_the_band_of_a_model_that_gives_one_is_there():
    engine = Engine(tone(0.1), Moore2016(fs=FS, accuracy="coarse", uncertainty_db=1.0))
    assert "ltl_high_phon" in engine.rows().columns


def test_a_model_of_cells_gives_a_row_for_each():
    engine = Engine(tone(0.1), ModulationSpectrum(fs=FS))
    feed = engine.rows()
    assert feed.columns[3:7] == ("ear", "band_hz", "modulation_hz", "rms")
    with pytest.raises(ValueError, match="ModulationSpectrum gives a row for each cell: ask rows"):
        engine.latest()


@pytest.mark.parametrize("step_ms", [0, 0.5, -1, "10"])
def test_a_step_that_cannot_be_is_refused(power_meter, step_ms):
    with pytest.raises(ValueError, match=r"step_ms is .*: give whole milliseconds, 1 or more"):
        Engine(tone(), power_meter()).rows(step_ms)


def test_what_cannot_be_is_refused_at_once(loudness):
    with pytest.raises(ValueError, match="no column is called 'ltl_phone'"):
        Engine(tone(), loudness, [RowSink(print, columns=["ltl_phone"])])
    with pytest.raises(TypeError, match="RowSink: 3 cannot be called: give a function"):
        RowSink(3)
    with pytest.raises(ValueError, match=r"two models give the column .*: give each model an"):
        Engine(tone(), {"a": loudness, "b": loudness}).latest()


def test_rows_wait_for_one_another_where_that_is_wanted_and_are_the_same(loudness):
    found = {}
    for wait_ms in (0.0, 40.0, None):
        batches, function = [], lambda row: None
        sink = RowSink(function, step_ms=10, wait_ms=wait_ms)
        sink.take = batches.append
        # Blocks of a source that can wait are taken together, and so are its rows.
        source = tone(paced=wait_ms is not None)
        with Engine(source, {"moore2016": loudness}, [sink]) as engine:
            assert engine.wait(60)
        numbers = [row | {"utc": None} for row in all_rows(batches)]
        found[wait_ms] = [len(rows) for rows in batches], numbers
    sizes, rows = zip(*found.values(), strict=True)
    assert rows[0] == rows[1] == rows[2]
    # A busy computer may be late with some.
    assert median(sizes[0]) < median(sizes[1]) == 5
    assert max(sizes[2]) > 20
    with pytest.raises(ValueError, match="wait_ms is -1: give milliseconds"):
        RowSink(print, wait_ms=-1)
