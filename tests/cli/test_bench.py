"""`amt-stream bench`: what a model costs on this machine."""

import json

import pytest
import torch

from amt_stream import Moore2016, Stream
from amt_stream.offline import benchmark


def test_a_table_of_the_forms_that_were_asked_for(run):
    models = "spl,ecma_fluctuation"
    done = run("bench", "--model", models, "--block-ms", "5,10", "--seconds", "0.05")
    assert done.status == 0, done.err
    titles = ("this machine, one core", "thread CPU seconds per second of sound, of all streams")
    assert all(title in done.out for title in titles)
    lines = done.out.splitlines()
    (head,) = (line for line in lines if "block in ms" in line)
    for line in (line for line in lines if "float32" in line):
        assert line.index("float32") == head.index("numbers")
    rows = [line.split() for line in lines]
    forms = [(row[0], row[1]) for row in rows if "float32" in row]
    assert forms == [
        ("spl", "5"),
        ("spl", "10"),
        ("ecma_fluctuation", "5"),
        ("ecma_fluctuation", "10"),
    ]


def test_a_line_of_json_for_each_stage_and_start(run):
    options = "--model zwicker --stages --streams 2 --block-ms 1 --dtype float64 --start --json"
    done = run("bench", *options.split(), "--seconds", "0.02")
    assert done.status == 0, done.err
    machine, *figures, start = map(json.loads, done.out.splitlines())
    assert machine["loop_s"] > 0
    assert machine["products_gflops"] > 0
    assert machine["copies_gb_s"] > 0
    assert [one["stage"] for one in figures] == ["", "levels", "core", "loudness"]
    for one in figures:
        assert (one["streams"], one["block_ms"], one["dtype"]) == (2, 1.0, "float64")
        assert 0 < one["median"] <= one["p99"]
        assert one["of_loop"] == pytest.approx(one["median"] / machine["loop_s"])
    assert start["model"] == "zwicker"
    assert start["imported_s"] > start["built_s"] >= 0
    assert start["resident_mb"] > 50


def test_stages_hear_what_they_hear_in_the_model():
    whole, *stages = benchmark.figures("moore2016", 10, streams=3, seconds=0.01, stages=True)
    assert [one.stage for one in stages] == [
        *("resample", "ear", "spectrum", "excitation", "loudness")
    ]
    state = Stream(Moore2016(48000), (3, 2)).state
    assert whole.state_bytes == sum(value.nbytes for value in state.values())
    assert whole.state_bytes == sum(one.state_bytes for one in stages)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "loud"], "'loud' is none of moore2016"),
        (["--streams", "0"], "'0' is not a whole number from 1 to 4096 streams"),
        (["--block-ms", "1,x"], "'x' is not a number from 0.1 to 1000 ms"),
        (["--dtype", "float16"], "'float16' is none of float32, float64"),
    ],
)
def test_what_cannot_be_timed_is_refused(run, options, sentence):
    done = run("bench", *options)
    assert done.status == 2
    assert sentence in done.err


def test_blocks_of_no_sample_are_refused():
    with pytest.raises(ValueError, match="give 1 of each or more"):
        next(benchmark.figures("spl", 0.001, dtype=torch.float32))
