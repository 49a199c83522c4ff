"""Options bring the models that they need, and say so; what no model has is refused at once."""

import json

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.cli.command import build_parser
from amt_stream.cli.messages import Mistake
from amt_stream.cli.preset import chosen_preset
from amt_stream.meters.needed_models import WantedColumn, models_for
from amt_stream.meters.rows import NoSuchColumn


def chosen(capsys, *typed):
    names = chosen_preset(build_parser().parse_args([*typed])).names
    return names, capsys.readouterr().err


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("typed", "names", "words"),
    [
        ([], ("moore2016",), ""),
        (["--columns", "laeq_db"], ("spl",), "the model is spl (for --columns)"),
        (["--columns", "laf*,ltl_phon"], ("spl", "moore2016"), "spl (for --columns), moore2016 ("),
        (["--columns", "ltl_sone,stl_phon"], ("moore2016",), "moore2016 (for --columns)"),
        (["--columns", "lzeq_1000hz_db"], ("third_octave",), "third_octave (for --columns)"),
        (["--columns", "zwicker_n5_15min_sone"], ("zwicker",), "zwicker (for --columns)"),
        (["--log", "night"], ("moore2016", "spl"), "are moore2016, spl (for --log): --model LIST"),
        (
            ["--log", "night", "--interval", "15min"],
            ("moore2016", "spl"),
            "moore2016, spl (for --interval and --log)",
        ),
        (["--log", "night", "--columns", "ltl_phon"], ("moore2016",), "moore2016 (for --columns)"),
        (["--limit", "who-venues", "--log", "night"], ("spl",), "spl (for --limit and --log)"),
        (["--event", "stl_phon>80"], ("moore2016",), "moore2016 (for --event)"),
        (["--target", "0"], ("bs1770",), "bs1770 (for --target)"),
        (["--model", "zwicker", "--log", "night"], ("zwicker",), ""),
        (["--preset", "low-power", "--log", "night"], ("moore2016",), ""),
        (["--model", "zwicker", "--interval", "1h", "--log", "n"], ("zwicker",), "have no LAeq"),
    ],
)
@pytest.mark.parametrize("command", ["meter", "serve"])
def test_a_live_measurement(capsys, command, typed, names, words):
    found, said = chosen(capsys, command, *typed)
    assert found == names
    assert said.count("\n") == bool(words)
    assert words in said


def test_a_file(capsys):
    assert chosen(capsys, "analyze", "x.wav", "--interval", "1h")[0] == ("moore2016", "spl")
    assert chosen(capsys, "analyze", "x.wav", "--columns", "l90_db")[0] == ("spl",)


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--columns", "laegg_db"], "no column is called 'laegg_db': did you mean"),
        (["--model", "zwicker", "--columns", "laeq_db"], "add a model that has it, spl"),
        (["--model", "spl", "--columns", "lzeq_1000hz_db"], "add a model that has it, third_oct"),
        (["--model", "spl", "--columns", "nothing*"], "no column is called 'nothing*'"),
        (["--preset", "moore2016", "--limit", "laf_db>80"], "laf_db > 80: no column is called"),
        (["--model", "spl", "--target", "-23"], "--target is for bs1770"),
        (["--columns", "laeq_0s_db"], "a window of 0s: give 1s to 24h"),
        (["--limit", "laeq_99h_db>80"], "a window of 99h: give 1s to 24h"),
    ],
)
@pytest.mark.parametrize("command", ["meter", "serve", "analyze x.wav"])
def test_what_no_model_has_is_refused_before_anything_is_opened(capsys, command, typed, words):
    with pytest.raises(Mistake) as refused:
        chosen(capsys, *command.split(), *typed)
    assert words in str(refused.value)


def test_a_measurement_in_python():
    noise = 0.01 * np.random.default_rng(1).standard_normal(48000)
    given = {"fs": 48000, "calibration": 100.0, "step_ms": 500}
    assert measure(noise, columns="laeq_db", **given).columns[3] == "laeq_db"
    found = measure(noise, interval=1, **given)
    assert found.intervals["laeq_db"][0] == found.summary["laeq_db"]
    assert [one["name"] for one in found.header["models"]] == ["moore2016", "spl"]
    assert (
        "zwicker_specific_loudness"
        in measure(noise, outputs="zwicker_specific_loudness", **given).outputs
    )
    assert measure(noise, target_lufs=0.0, **given).header["models"][0]["name"] == "bs1770"
    with pytest.raises(NoSuchColumn, match="'laegg_db': did you mean"):
        measure(noise, columns="laegg_db", **given)


def test_a_column_brings_what_it_is_computed_from():
    needed = models_for([WantedColumn("annoyance_more", "--columns")])
    assert list(needed) == ["zwicker", "ecma_roughness", "ecma_fluctuation", "ecma_tonality"]


def test_the_evening_of_the_readme_has_levels_of_day_and_night(run, sound_file):
    sound_file(0.01 * np.random.default_rng(5).standard_normal(48000 * 3))
    typed = ["meter", "--source", "sound.wav", "--fast", "--full-scale-db", 100, "--quiet"]
    for log in (["--log", "night"], ["--log", "night2", "--interval", "15min"]):
        done = run(*typed, *log)
        assert (
            done.status,
            done.lines[0].startswith("amt-stream: the models are moore2016, spl"),
        ) == (0, True)
        done = run("lden", log[1], "--format", "json")
        assert done.status == 0, done.err
        levels = json.loads(done.out)["whole"]
        (level,) = [v for k, v in levels.items() if k.startswith("l") and v and "coverage" not in k]
        assert 55 < level < 65
    assert run(*typed, "--log", "other", "--model", "zwicker,bs1770").status == 0
    done = run("lden", "other")
    assert done.status == 1
    assert done.lines == [
        "amt-stream: other has no A-weighted level, as it was measured with zwicker, bs1770 "
        "alone: measure with --model zwicker,bs1770,spl"
    ]
    assert run(*typed, "--log", "bare", "--model", "spl", "--columns", "lcf_db").status == 0
    assert "leave --columns out, or add laeq_1s_db" in run("lden", "bare").err
