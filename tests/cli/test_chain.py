"""A chain of stages in a TOML file, run by the commands: rows of what its last stage gives."""

import io
import json

import numpy as np
import pytest
import torch

from amt_stream.cli.command import build_parser, run_chosen
from amt_stream.dsp.compose import Chain
from amt_stream.dsp.stages import Gain, GammatoneFilterbank, IHCEnvelope, SoundLevel
from amt_stream.dsp.stream import aligned
from amt_stream.meters.calibration import Calibration
from tests.cli.test_rows import VALIDATOR

FS = 16000
BANDS = """
[model]
name = "chain"

[[model.stages]]
type = "GammatoneFilterbank"
fc = [500.0, 1000.0, 2000.0]

[[model.stages]]
type = "IHCEnvelope"
"""
LEVELS = """
[model]
name = "chain"

[[model.stages]]
type = "Gain"
factor = 2.0

[[model.stages]]
type = "SoundLevel"
"""


@pytest.fixture
def rows_of(capsys, tmp_path):
    """The rows that a command prints of a sound heard by a chain, read by pandas."""
    import pandas

    def run(chain, command, *arguments):
        path = tmp_path / "mine.toml"
        path.write_text(chain)
        typed = [*command, *arguments, "--preset", path, "--format", "csv", "--keep-offset"]
        args = build_parser().parse_args([*map(str, typed), "--full-scale-db", "100"])
        assert run_chosen(args) == 0
        return pandas.read_csv(io.StringIO(capsys.readouterr().out), comment="#")

    return run


@pytest.fixture
def noise(sound_file):
    """0.5 s in two channels, and the file that holds them."""
    x = (0.02 * np.random.default_rng(4).standard_normal((FS // 2, 2))).astype(np.float32)
    pascal = torch.from_numpy(x.T.copy())[None] * Calibration(100.0).pascal_per_unit
    return sound_file(x, FS), pascal


def test_rows_are_what_the_chain_gives(rows_of, noise):
    path, pascal = noise
    got = rows_of(BANDS, ["analyze", path], "--step-ms", 10)
    bank = GammatoneFilterbank([500.0, 1000.0, 2000.0], fs=FS)
    y = aligned(Chain(bank=bank, hair_cells=IHCEnvelope(fs=FS)), pascal)
    keys = ["time_s", "utc", "sample", "channel", "band"]
    assert list(got.columns) == [
        *keys,
        "value",
        "fault",
        "settling",
        "settling_columns",
        "clipped_columns",
        "calibrated",
    ]
    assert got.groupby("sample").size().unique().tolist() == [6]
    for (sample, channel, band), rows in got.groupby(["sample", "channel", "band"]):
        if sample < y.shape[-1]:
            expected = y[0, channel - 1, band - 1, sample].item()
            assert rows["value"].item() == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert got["calibrated"].all()


def test_the_outputs_of_a_last_stage_that_names_them(rows_of, noise):
    path, pascal = noise
    got = rows_of(LEVELS, ["analyze", path], "--step-ms", 10)
    assert list(got.columns[3:6]) == ["output", "channel", "band"]
    y = Chain(gain=Gain(2.0), level=SoundLevel(FS))(pascal)
    assert set(got["output"]) == set(y._fields)
    bands = got.groupby("output")["band"].max().to_dict()
    assert bands == {name: value.shape[-2] for name, value in y._asdict().items()}
    last = got[(got["sample"] == 4800) & (got["channel"] == 2)]
    power = last.loc[last["output"] == "power", "value"].to_numpy()
    # Frames stand for their end: the one at 0.3 s is the 30th.
    np.testing.assert_allclose(power, y.power[0, 1, :, 29], rtol=1e-5)


def test_its_rows_fit_the_schema(noise, tmp_path):
    out = tmp_path / "rows.jsonl"
    path, _ = noise
    (tmp_path / "mine.toml").write_text(LEVELS)
    typed = ["analyze", path, "--preset", tmp_path / "mine.toml", "--out", out, "--step-ms", 100]
    assert run_chosen(build_parser().parse_args([*map(str, typed)])) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        VALIDATOR.validate(line)
    assert lines[0]["header"]["models"] == [{"name": "chain"}]


def test_the_meter_gives_the_same(rows_of, noise):
    import pandas

    path, _ = noise
    expected = rows_of(BANDS, ["analyze", path], "--step-ms", 10)
    got = rows_of(BANDS, ["meter", "--source", path, "--fast"], "--step-ms", 10)
    pandas.testing.assert_frame_equal(got.drop(columns="utc"), expected.drop(columns="utc"))


def test_an_option_of_a_meter_is_refused(run, noise, tmp_path):
    (tmp_path / "mine.toml").write_text(BANDS)
    done = run("analyze", noise[0], "--preset", "mine.toml", "--target", "-23")
    assert (done.status, done.out) == (1, "")
    assert "--target is for bs1770, and the model is a chain: leave it out" in done.lines[-1]


def test_there_is_nothing_to_see_of_it(run, tmp_path):
    (tmp_path / "mine.toml").write_text(BANDS)
    done = run("meter", "--terminal", "--source", "demo", "--preset", "mine.toml")
    assert (done.status, done.out) == (2, "")
    assert "which no meter shows: write its rows with --format csv or jsonl" in done.lines[-1]
