"""A whole sound in one call: the numbers of the command, in arrays."""

import json
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import amt_stream
from amt_stream import Calibration, Moore2016, aligned, measure, measure_files
from amt_stream.dsp.channel_layout import layout_named
from amt_stream.engine.sources import SourceError
from amt_stream.meters.catalog import CatalogError
from amt_stream.meters.limits import Limit, LimitError
from amt_stream.meters.presets import PresetError
from amt_stream.meters.rows import NoSuchColumn, Rows
from amt_stream.meters.specification import ModelSettings, RowSettings
from amt_stream.offline.jobs import each
from amt_stream.offline.measure import MeasureSettings

ROOT = Path(__file__).parents[2]
FS = 48000
COARSE = {"accuracy": "coarse"}
ALL = "moore2016,gm2002,zwicker,bs1770,spl"


def speech_like(seconds, channels=2, seed=0):
    """Noise that swells and fades, differently in each channel, in float32."""
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * FS)) / FS
    swell = 0.5 + 0.4 * np.sin(2 * np.pi * 3 * t)[:, None]
    weights = 0.05 / (1 + np.arange(channels))
    return (swell * weights * random.standard_normal((len(t), channels))).astype(np.float32)


@pytest.fixture
def sound(tmp_path):
    """Sound of 1.3 s, and a file that holds the same."""
    x = speech_like(1.3)
    soundfile.write(tmp_path / "x.wav", x, FS, "FLOAT")
    return x, tmp_path / "x.wav"


def test_an_array_reads_bitwise_as_analyze_of_the_same_sound(forks, sound):
    """All five models: every cell, the header and the summary, but for the name of the source."""
    x, path = sound
    chosen = ["--model", ALL, "--full-scale-db", "110", "--step-ms", "20"]
    done = forks.run("analyze", path, *chosen, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    m = measure(x, FS, ALL, calibration=110.0, step_ms=20)
    first, *told, last = lines
    assert len(told) == len(m) == 66
    assert list(m.rows) == told
    header, summary = (next(iter(line.values())) for line in (first, last))
    assert {**m.header, "source": None} == {**header, "source": None}
    of_itself = {"name", "date", "sound"}
    assert {k: v for k, v in m.summary.items() if k not in of_itself} == {
        k: v for k, v in summary.items() if k not in of_itself
    }


def test_however_the_same_sound_is_given(sound):
    x, path = sound
    expected = measure(x, FS, "zwicker,spl", calibration=100.0)
    scale = Calibration(100.0).pascal_per_unit
    for m in (
        measure(path, models=["zwicker", "spl"], calibration=100.0),
        measure(str(path), models="zwicker, spl", calibration=[100.0, Calibration(100.0)]),
        measure(torch.from_numpy(x), FS, "zwicker,spl", calibration=100.0),
        measure(x.astype(np.float64), FS, "zwicker,spl", calibration=Calibration(100.0)),
    ):
        for name in expected.columns:
            assert np.array_equal(m[name], expected[name], equal_nan=m[name].dtype.kind in "fM"), (
                name
            )
    # In float64 a sample times the scale, and not in float32.
    pascal = measure(x.astype(np.float64) * scale, FS, "zwicker,spl", calibration="pascal")
    for name in ("zwicker_n_sone", "laf_db", "lcpeak_db"):
        np.testing.assert_allclose(pascal[name], expected[name], rtol=2e-5)


def test_pascal_may_be_beyond_one_and_is_calibrated():
    """A tone of 1 kHz with 10 Pa rms is 113.98 dB, and neither clipped nor a fault."""
    t = np.arange(2 * FS) / FS
    m = measure(
        10 * np.sqrt(2) * np.sin(2 * np.pi * 1000 * t), FS, "spl", calibration="pascal", from_s=1
    )
    assert m.summary["laeq_db"] == pytest.approx(113.979, abs=0.003)
    assert not m["fault"].any()
    assert m["calibrated"].all()


def test_pcm_is_taken_by_its_full_scale(tmp_path):
    x = (speech_like(0.5) * 32768).astype(np.int16)
    soundfile.write(tmp_path / "pcm.wav", x, FS, "PCM_16")
    of_file = measure(tmp_path / "pcm.wav", models="spl")
    assert np.array_equal(measure(x, FS, "spl")["laf_db"], of_file["laf_db"], equal_nan=True)
    assert not of_file["calibrated"].any()


def test_a_calibration_for_each_channel():
    x = speech_like(1.0)
    m = measure(x, FS, "spl", calibration=[100.0, 90.0])
    left = measure(x[:, 0], FS, "spl", calibration=100.0)
    right = measure(x[:, 1], FS, "spl", calibration=90.0)
    assert np.array_equal(m["laf_left_db"], left["laf_db"], equal_nan=True)
    assert np.array_equal(m["laf_right_db"], right["laf_db"], equal_nan=True)
    assert [one["full_scale_db_spl"] for one in m.header["calibration"]] == [100.0, 90.0]


def test_outputs_along_their_axes():
    """Those of the model itself, of the latest frame that is not after a row."""
    x = speech_like(0.6) * np.float32(Calibration(100.0).pascal_per_unit)
    names = ["specific_loudness", "excitation_db", "stl_ears"]
    m = measure(x, FS, calibration="pascal", step_ms=25, outputs=names)
    model = Moore2016(fs=FS, specific_loudness=True, excitation_db=True)
    pascal = torch.from_numpy(x.T.copy())[None]
    with torch.inference_mode():
        whole = aligned(model, torch.nn.functional.pad(pascal, (0, FS // 1000)))
    assert m["specific_loudness"].shape == (25, 2, 150)
    for name, tolerance in (("specific_loudness", 1e-4), ("excitation_db", 1e-3)):
        expected = getattr(whole, name)[0, :, : 25 * 25 : 25].transpose(0, 1).numpy()
        np.testing.assert_allclose(m[name], expected, atol=tolerance, rtol=1e-4)
    np.testing.assert_allclose(m["stl_ears"].sum(1), m["stl_sone"], rtol=1e-5, atol=1e-6)
    ear, erb_number = m.axes["specific_loudness"]
    assert (ear.name, ear.values.tolist()) == ("ear", [1, 2])
    assert (erb_number.values[0], erb_number.values[-1]) == (1.75, 39.0)
    assert erb_number.center_hz[55] == pytest.approx(987.9, abs=0.5)  # 15.5 Cam


def test_outputs_of_several_models_at_different_rates():
    """Specific loudness in sone/Bark adds up to the loudness before its low-passes."""
    t = np.arange(FS) / FS
    x = 0.02 * np.sin(2 * np.pi * 1000 * t)
    names = ["zwicker_specific_loudness", "gm2002_ltl_ears"]
    asked = {"calibration": 100.0, "outputs": names}
    m = measure(x, FS, "zwicker,gm2002", step_ms=10, **asked)
    loudness = m["zwicker_specific_loudness"].sum((1, 2)) * 0.1
    assert loudness[50:90] == pytest.approx(m["zwicker_n_sone"][50:90], rel=0.02)
    np.testing.assert_allclose(m["gm2002_ltl_ears"].sum(1), m["gm2002_ltl_sone"], rtol=1e-5)
    (channel, bark) = m.axes["zwicker_specific_loudness"]
    assert (channel.name, bark.name, bark.values[[0, -1]].tolist()) == (
        "channel",
        "bark",
        [0.1, 24],
    )
    part = measure(x, FS, "zwicker,gm2002", step_ms=10, from_s=0.4, to_s=0.6, **asked)
    assert part.time_s[[0, -1]].tolist() == [0.4, 0.6]
    for name in names:
        assert np.array_equal(part[name], m[name][40:61])


def test_columns_and_settings():
    x = speech_like(1.0)
    m = measure(x, FS, columns=["ltl_*"], field="diffuse", **COARSE, step_ms=100)
    assert {"ltl_sone", "ltl_phon"} <= set(m.columns)
    asked = {"columns": "ltl_phon, max_*_phon", "outputs": "stl_ears,ltl_ears", "step_ms": 100}
    some = measure(x, FS, **asked)
    assert some.columns[3:6] == ("ltl_phon", "max_stl_phon", "max_ltl_phon")
    assert list(some.outputs) == ["stl_ears", "ltl_ears"]
    assert "stl_sone" not in m.columns
    assert m.header["models"][0]["field"] == "diffuse"
    assert m.header["models"][0]["accuracy"] == "coarse"
    assert len(m) == len(m.time_s) == 11
    assert repr(m).startswith("<Measured array: 11 rows of ltl_sone")
    with pytest.raises(KeyError, match="'stl': there are time_s, "):
        m["stl"]


def test_a_programme_and_its_target():
    x = speech_like(1.0, channels=1)
    once, twice = (
        measure(x, FS, "bs1770", target_lufs=-14.0, dual_mono=dual) for dual in (False, True)
    )
    at_zero = measure(x, FS, "bs1770", target_lufs=0)
    assert at_zero.summary["integrated_lu"] == at_zero.summary["integrated_lufs"]
    change = twice.summary["integrated_lufs"] - once.summary["integrated_lufs"]
    assert change == pytest.approx(3.01, abs=0.01)
    assert once.header["models"][0] == {"name": "bs1770", "target_lufs": -14.0, "dual_mono": False}
    with pytest.raises(ValueError, match="dual_mono is for bs1770, and the model is spl: leave it"):
        measure(x, FS, "spl", dual_mono=True)


def test_a_spectrum_has_a_row_for_each_cell():
    m = measure(speech_like(0.3), FS, "dau1997", step_ms=100)
    assert {"ear", "band_hz", "modulation_hz"} <= set(m.columns)
    assert len(m) > len(np.unique(m.time_s)) > 2
    assert m.to_xarray().sizes["row"] == len(m)


def test_data_frames_and_data_sets():
    pandas = pytest.importorskip("pandas")
    m = measure(speech_like(0.5), FS, calibration=100.0, step_ms=50, outputs=["specific_loudness"])
    frame = m.to_pandas()
    assert list(frame) == list(m.columns)
    assert isinstance(frame, pandas.DataFrame)
    assert np.array_equal(frame["ltl_phon"], m["ltl_phon"])
    assert frame.attrs["models"][0]["name"] == "moore2016"
    data = m.to_xarray()
    assert data.specific_loudness.dims == ("time_s", "ear", "erb_number")
    assert data.specific_loudness.attrs["units"] == "sone/Cam"
    assert data.ltl_phon.attrs["units"] == "phon"
    at = data.ltl_sone.sel(time_s=0.25)
    assert float(at) == m["ltl_sone"][5]
    assert float(data.center_hz.sel(erb_number=1.75)) == pytest.approx(47.516, abs=0.001)


def test_a_data_set_goes_to_a_file_and_back(tmp_path):
    import xarray

    m = measure(speech_like(0.5), FS, calibration=100.0, step_ms=50, outputs=["specific_loudness"])
    path = tmp_path / "sound.nc"
    m.to_xarray().to_netcdf(path, engine="scipy")
    with xarray.open_dataset(path, engine="scipy") as data:
        np.testing.assert_array_equal(data.ltl_phon, m["ltl_phon"])
        np.testing.assert_array_equal(data.specific_loudness, m["specific_loudness"])
        assert json.loads(data.attrs["header"]) == json.loads(json.dumps(m.header))


def test_many_sounds_are_one_data_frame(tmp_path):
    soundfile.write(tmp_path / "one.wav", speech_like(0.2), FS, "FLOAT")
    found = measure_files([tmp_path / "one.wav", tmp_path / "none.wav"], "spl")
    frame = amt_stream.to_pandas(found)
    assert frame.loc[0, "name"].endswith("one.wav")
    assert frame.loc[0, "laeq_db"] == found[0].summary["laeq_db"]
    assert "none.wav" in frame.loc[1, "error"]
    assert amt_stream.to_pandas(found[:1])["error"].tolist() == [None]


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named_with_its_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    m = measure(speech_like(0.1), FS, "spl")
    with pytest.raises(ModuleNotFoundError, match=rf'{package}.* pip install "amt_stream\[data\]"'):
        getattr(m, f"to_{package}")()


def test_several_files_of_which_one_fails(tmp_path):
    paths = [tmp_path / f"{name}.wav" for name in ("one", "none", "two", "three")]
    for k, path in enumerate(paths):
        if path.stem != "none":
            soundfile.write(path, speech_like(0.2, seed=k), FS, "FLOAT")
    alone = measure_files(paths, models="spl", jobs=1)
    together = measure_files(paths, models="spl", jobs=2)
    for found in (alone, together):
        assert [type(one).__name__ for one in found] == [
            "Measured",
            "SourceError",
            *["Measured"] * 2,
        ]
        assert f"there is no file {paths[1]}" in str(found[1])
        for path, one in zip(paths, found, strict=True):
            if path.stem != "none":
                assert one.header["source"]["name"] == str(path)
                expected = measure(path, models="spl")["laf_db"]
                assert np.array_equal(one["laf_db"], expected, equal_nan=True)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.zeros((2, FS)),
            r"the shape \(2, 48000\), no fewer channels than samples: give",
        ),
        (np.zeros((2, 2)), r"the shape \(2, 2\), no fewer channels than samples: give"),
        (torch.zeros(2, FS), r"give \(time, channel\), as x\.T"),
        (np.zeros((FS, 2, 1)), r"the shape \(48000, 2, 1\): give \(time,\) or \(time, channel\)"),
        (np.float64(0.1), r"the shape \(\): give \(time,\) or"),
        (np.zeros(0), r"the shape \(0,\): give one sample or more"),
        (np.zeros((0, 2)), r"the shape \(0, 2\): give one sample or more"),
        (np.zeros(FS, np.int64), "array has the type int64: give fractions of full scale"),
        ([[0.0], [0.0, 0.0]], "array is not an array .*: give numbers"),
        (torch.zeros(FS, dtype=torch.bfloat16), "array is not an array .*BFloat16.*: give numbers"),
        (np.zeros((FS, 4)), r"array has 4 channels: choose one \(channels 1\), or two as left"),
        (np.zeros(FS, complex), "array has the type complex128: give fractions of full scale"),
        (np.array([0, np.nan, 0]), r"nan at sample 1 .* \(replace_invalid=True\)"),
    ],
)
def test_arrays_that_are_refused(x, message):
    with pytest.raises(SourceError, match=message):
        measure(x, FS)


@pytest.mark.parametrize("fs", [48000.0, np.float32(48000), np.int32(48000)])
def test_however_the_rate_and_the_numbers_are_given(fs):
    x = speech_like(0.05)
    expected = measure(x, FS, "zwicker")["zwicker_n_sone"]
    for given in (x, x.tolist(), np.asfortranarray(x), torch.from_numpy(x).requires_grad_()):
        assert np.array_equal(measure(given, fs, "zwicker")["zwicker_n_sone"], expected)


def test_one_sample():
    m = measure(np.zeros(1), FS)
    assert (m.time_s.tolist(), m["ltl_sone"].tolist()) == ([0.0], [0.0])
    assert m.header["source"]["duration_s"] == round(1 / FS, 6)


SILENCE = np.zeros(4800)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": SILENCE}, ValueError, "fs is missing: give the sampling rate"),
        ({"x": SILENCE, "fs": 44100.5}, SourceError, "fs is 44100.5: give the sampling rate"),
        ({"x": SILENCE, "fs": -1}, SourceError, "fs is -1: give"),
        ({"x": "x.wav", "fs": FS}, ValueError, "fs is 48000: a file has its own"),
        ({"x": "."}, SourceError, "^. is a folder: give a sound file"),
        ({"x": "x.wav", "calibration": "pascal"}, ValueError, "a file holds fractions of full"),
        ({"x": SILENCE, "fs": FS, "models": "moore"}, CatalogError, "did you mean moore2016"),
        ({"x": SILENCE, "fs": FS, "feild": "free"}, TypeError, "'feild': did you mean field"),
        ({"x": SILENCE, "fs": FS, "field": "fre"}, ValueError, "fre"),
        ({"x": SILENCE, "fs": FS, "columns": ["ltl_son"]}, NoSuchColumn, "did you mean ltl_sone"),
        (
            {"x": SILENCE, "fs": FS, "models": "zwicker", "columns": ["laeq_db"]},
            NoSuchColumn,
            "that has it, spl",
        ),
        ({"x": SILENCE, "fs": FS, "outputs": ["ltl"]}, ValueError, "no output of moore2016 is cal"),
        ({"x": SILENCE, "fs": FS, "calibration": "dB"}, ValueError, 'a number of dB SPL, or "pasc'),
        ({"x": SILENCE, "fs": FS, "calibration": [1, 2]}, ValueError, "2 calibrations for 1 chan"),
        ({"x": SILENCE, "fs": FS, "models": ()}, PresetError, "the models are none: give one or"),
        ({"x": SILENCE, "fs": FS, "models": "spl,spl"}, PresetError, "are spl, spl: .* each once"),
        ({"x": SILENCE, "fs": FS, "step_ms": 0}, ValueError, "step_ms is 0: give whole millisec"),
        ({"x": SILENCE, "fs": FS, "step_ms": 2.5}, ValueError, "step_ms is 2.5: give whole mill"),
        ({"x": SILENCE, "fs": FS, "from_s": -1}, ValueError, "from_s is -1: give seconds of sou"),
        ({"x": SILENCE, "fs": FS, "to_s": "1"}, ValueError, "to_s is '1': give seconds of sound"),
        ({"x": []}, ValueError, "fs is missing: give .* of the list in hertz, or inst"),
        ({"x": SILENCE, "fs": 100}, SourceError, "fs is 100: give a sound of 1000 to 768000 Hz"),
        ({"x": SILENCE, "fs": FS, "models": 3}, TypeError, "models is 3: give a name, or"),
        ({"x": SILENCE, "fs": FS, "outputs": [3]}, TypeError, r"outputs is \[3\]: give a name"),
        ({"x": SILENCE, "fs": FS, "accuracy": 3}, ValueError, "accuracy is 3: give"),
        ({"x": SILENCE, "fs": FS, "step": 3}, TypeError, "no setting 'step': did you mean step_ms"),
        ({"x": SILENCE, "fs": FS, "model": "spl"}, TypeError, "'model': did you mean models"),
        ({"x": ["a.wav", "b.wav"]}, TypeError, "a list of paths: measure_files takes several"),
        ({"x": SILENCE, "fs": FS, "columns": [3]}, TypeError, r"columns is \[3\]: give a name"),
        (
            {"x": SILENCE, "fs": FS, "correction": 3},
            TypeError,
            "correction is 3: give a Correction",
        ),
        (
            {"x": SILENCE, "fs": FS, "limits": [3]},
            LimitError,
            "3 is not a limit: give a Limit, the",
        ),
        ({"x": SILENCE, "fs": FS, "limits": 3}, LimitError, "3 is not a limit: give a Limit, the"),
        ({"x": SILENCE, "fs": FS, "from_s": 0.1}, ValueError, "array ends at 0.1 s, and from_s is"),
        (
            {"x": SILENCE, "fs": FS, "models": "bs1770", "target_lufs": "loud"},
            ValueError,
            "target_lufs is 'loud': give a loudness in LUFS",
        ),
        (
            {"x": SILENCE, "fs": FS, "models": "bs1770", "target_lufs": np.nan},
            ValueError,
            "target_lufs is nan: give a loudness in LUFS",
        ),
        ({"x": SILENCE, "fs": FS, "jobs": 0}, ValueError, "jobs is 0: give a whole number"),
        (
            {"x": SILENCE, "fs": FS, "models": "bs1770", "calibration": "pascal"},
            ValueError,
            "bs1770 takes fractions of full scale",
        ),
        (
            {"x": SILENCE.astype(np.int16), "fs": FS, "calibration": "pascal"},
            ValueError,
            "an array of int16 is not in pascal",
        ),
    ],
)
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        measure(**arguments)


def test_one_limit_needs_no_list():
    m = measure(SILENCE, FS, "spl", calibration=100.0, limits=Limit("laf_db", 85.0))
    assert [limit["name"] for limit in m.summary["limits"]] == ["laf_85"]


def test_jobs_that_are_refused():
    for jobs in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="give a whole number of processes, 1 or more"):
            list(each(str, [1, 2], jobs))


def test_the_thread_that_asks_stays_as_it_was():
    measure(SILENCE, FS, "spl")
    assert np.float64(1e-310) * 1.0 > 0


def test_the_example(forks, tmp_path):
    soundfile.write(tmp_path / "x.wav", speech_like(0.3), FS, "FLOAT")
    for arguments in ([], [str(tmp_path / "x.wav"), "110"]):
        done = forks.run(ROOT / "apps/measure.py", *arguments, options=["program"])
        assert done.returncode == 0, done.stderr
        *lines, most, maximum = done.stdout.decode().splitlines()
        assert len(lines) == (4 if arguments else 11)
        if not arguments:
            assert most == "most at 15.50 Cam, 988 Hz"
            assert float(maximum.split()[1]) == pytest.approx(60, abs=0.5)
    assert len((ROOT / "apps/measure.py").read_text(encoding="utf-8").splitlines()) < 40


def test_settings_of_rows_and_models_are_arguments():
    """The types of `measure` name what the specification declares."""
    named = MeasureSettings.__annotations__.keys()
    of_models = {one.name for one in fields(ModelSettings)} - {"model", "preset", "stages"}
    assert {one.name for one in fields(RowSettings)} | of_models <= named


def test_an_array_says_what_its_channels_are_for():
    """EBU Tech 3341, case 6, in the order of Ogg; loudness of both ears is that of L and R."""
    levels = 10 ** (np.array([-28, -24, -28, -30, -30, -12]) / 20)
    x = np.outer(np.sin(2 * np.pi * 1000 * np.arange(FS) / FS), levels)
    said = {"step_ms": 100, "layout": "L C R Ls Rs LFE"}
    m = measure(x, FS, "bs1770", **said)
    assert m.summary["integrated_lufs"] == pytest.approx(-23.0, abs=0.05)
    assert m.header["source"]["layout"] == {
        "positions": ["L", "C", "R", "Ls", "Rs", "LFE"],
        "origin": "user",
    }
    same = measure(x, FS, "bs1770", **said | {"layout": layout_named("L C R Ls Rs LFE")})
    assert same.summary["integrated_lufs"] == m.summary["integrated_lufs"]
    with pytest.warns(RuntimeWarning, match=r"^array is 5.1 \(.*\): spl hears channel 1 \(L\) as"):
        both = measure(x, FS, "bs1770,spl", calibration=100.0, **said)
    assert both.summary["integrated_lufs"] == m.summary["integrated_lufs"]
    assert both.header["models"][1]["channels"] == [1, 3]
    alone = measure(x, FS, "spl", calibration=100.0, channels=[1, 3], step_ms=100)
    assert both.summary["laeq_db"] == alone.summary["laeq_db"]
    np.testing.assert_array_equal(both["laf_left_db"], alone["laf_left_db"])
    with pytest.warns(RuntimeWarning, match="array does not say what its 6 channels are for") as w:
        usual = measure(x, FS, "bs1770", step_ms=100)
    assert w[0].filename == __file__
    assert usual.header["source"]["layout"]["origin"] == "usual"
    assert usual.summary["integrated_lufs"] > -18
    with pytest.raises(SourceError, match=r"layout 7\.1 .* has 8 channels, and array has 6: give"):
        measure(x, FS, "bs1770", layout="7.1")
    with pytest.raises(ValueError, match=r"the layout '5\.7' is unknown"):
        measure(x, FS, "bs1770", layout="5.7")
    with pytest.raises(ValueError, match="nobody says what the 9 channels are for: give their lay"):
        measure(np.zeros((FS, 9)), FS, "bs1770")


def test_parts_of_a_programme_agree_with_one_piece():
    """In several processes, each model with its own channels."""
    rng = np.random.default_rng(1)
    x = (0.02 * rng.standard_normal((30 * 8000, 6))).astype(np.float32)
    said = {"step_ms": 100, "layout": "L C R Ls Rs LFE", "calibration": 100.0}
    with pytest.warns(RuntimeWarning):
        whole, parts = (measure(x, 8000, "bs1770,spl", **said, jobs=jobs) for jobs in (1, 2))
    for name in ("momentary_lufs", "laf_db", "laf_right_db"):
        np.testing.assert_array_equal(parts[name], whole[name])


def test_rows_of_a_long_sound_take_little_more_than_their_numbers(monkeypatch):
    """A sound of hours comes in 100,000 blocks, each with rows: they are joined as they come."""
    counts = []
    joined = Rows.concatenated.__func__

    def concatenated(cls, parts, columns):
        counts.append(len(parts))
        return joined(cls, parts, columns)

    monkeypatch.setattr(Rows, "concatenated", classmethod(concatenated))
    sound = np.random.default_rng(4).standard_normal(30 * 8000) / 100
    m = measure(sound, 8000, "spl", 100.0, step_ms=10)
    assert max(counts) < 12
    np.testing.assert_array_equal(m["time_s"], np.arange(3001) / 100)
