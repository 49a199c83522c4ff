"""Levels in C: the frames of the models in Python, however the sound is cut."""

import numpy as np
import pytest
import torch

from amt_stream import Stream
from amt_stream.core.built_ahead import cache_folder
from amt_stream.meters import catalog
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.programme import COLUMNS, ProgrammeLoudness
from amt_stream.meters.accumulators.sound_level import LEVELS, RUNNING, SoundLevelMeter
from amt_stream.native import NativeModel
from amt_stream.native.library import Library
from amt_stream.native.plan import host_plan
from amt_stream.native.prebuilt import library_path
from tests.native.clap import heard, host_of, plugin_of
from tests.native.library import (
    FS,
    HOST,
    Instance,
    columns_of,
    compiled,
    exported,
    goes_on,
    refuses_damage,
)

MODELS = {"bs1770": 2, "spl": 2, "third_octave": 1, "octave": 2}
LEVELS_DB = tuple(name.removesuffix("_db") for name in RUNNING)
READINGS = {
    "bs1770": len(COLUMNS),
    "spl": 2 * (len(LEVELS) + len(RUNNING) + 1 + len(PERCENTS)),
    "third_octave": 0,
    "octave": 0,
}


OTHERS = [pytest.param(name, marks=pytest.mark.soak) for name in MODELS if name != "spl"]


@pytest.fixture(scope="module", params=["spl", *OTHERS])
def model(request):
    return request.param


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp(model)
    exported(folder, model, MODELS[model], HOST)
    return folder


@pytest.fixture(scope="module")
def library(model, request):
    """The library of a model; for levels, a model in Python builds it at its first use."""
    if model == "spl":
        return request.getfixturevalue("built_at_first_use")
    folder = request.getfixturevalue("folder")
    return Library(compiled(folder, model, HOST, folder / f"{model}.so"))


@pytest.fixture(scope="module")
def built_at_first_use(model, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        meter = NativeModel(model, channels=MODELS[model])
        (path,) = cache_folder().iterdir()
        assert library_path(model, FS, MODELS[model], 10.0) == path
    assert Library(path).info == meter.info
    return Library(path)


@pytest.fixture(scope="module")
def sound(model):
    """Noise of half a second, with a part that is nearly silent."""
    noise = 0.02 * np.random.default_rng(3).standard_normal((MODELS[model], FS // 2))
    noise[:, 10000:15000] *= 1e-3
    return noise.astype(np.float32)


def in_python(model, sound):
    with torch.inference_mode():
        stage = catalog.entry(model).build(FS, layout=len(sound))
        return Stream(stage, (1, len(sound)))(torch.from_numpy(sound)[None])


def test_its_frames_are_those_of_python_however_the_sound_is_cut(model, library, sound):
    whole = Instance(library).whole(sound, FS)
    right = columns_of(in_python(model, sound), len(library.info.columns))
    assert whole.shape[1] == right.shape[1] + READINGS[model]
    np.testing.assert_allclose(whole[:, : right.shape[1]], right, rtol=4e-7, atol=1e-16)
    for step in (1, 479, 1000):
        np.testing.assert_array_equal(Instance(library).whole(sound, step), whole)


def test_a_saved_state_goes_on_within_a_block(library, sound):
    goes_on(library, sound, 12345)


def test_a_damaged_state_is_refused_and_nothing_changes(library, sound):
    refuses_damage(library, sound, 100)


@pytest.mark.soak
@pytest.mark.parametrize("model", ["bs1770"], indirect=True)
def test_readings_of_programme_loudness_are_those_of_the_rows(library):
    """Of a programme with a quiet part that the gates leave out, and with one above 0 LUFS."""
    random = np.random.default_rng(7)
    steps = np.repeat(10.0 ** np.array([-1, -2.5, -4.5, -1.3, 0.0]), FS * 2)
    sound = (steps * random.standard_normal((2, len(steps)))).astype(np.float32)
    energy, *peaks = (x[0].numpy() for x in in_python("bs1770", sound))
    rows = ProgrammeLoudness(columns=COLUMNS).update(energy, *peaks)
    frames = Instance(library).whole(sound, 12345)
    np.testing.assert_allclose(frames[:, -len(COLUMNS) :].T, rows, rtol=4e-7)
    assert [column.name for column in library.info.columns][-8:-5] == [
        "momentary",
        "short_term",
        "integrated",
    ]


@pytest.mark.soak
@pytest.mark.parametrize("model", ["bs1770"], indirect=True)
def test_a_clap_plug_in_has_the_lowest_level_for_what_is_not_known(
    folder, library, sound, tmp_path
):
    plugin = plugin_of(folder, "bs1770", tmp_path)
    about, values = heard(host_of(folder, tmp_path / "host"), plugin, sound, 480)
    frames = Instance(library).whole(sound, FS)
    names = [column.name for column in library.info.columns]
    assert [line.split("|")[0] for line in about[2:]] == [*names, "invalid"]
    assert np.isnan(frames[:, names.index("short_term")]).all()  # it takes 3 s
    np.testing.assert_array_equal(values[:, :-1], np.where(np.isfinite(frames), frames, -200))


@pytest.mark.parametrize("model", ["spl"], indirect=True)
def test_levels_are_those_of_the_rows(library):
    """Of each channel alone, of a sound that rises and falls."""
    random = np.random.default_rng(9)
    steps = np.repeat(10.0 ** np.array([-2, -4, -1]), 2 * FS)
    sound = (steps * random.standard_normal((2, len(steps))) * [[1.0], [0.1]]).astype(np.float32)
    frames, names = Instance(library).whole(sound, 12345), [c.name for c in library.info.columns]
    outputs = in_python("spl", sound)
    for channel, side in enumerate(("left", "right")):
        percentiles = [f"laf{percent}" for percent in PERCENTS]
        meter = SoundLevelMeter([*RUNNING, "lae_db", *(f"{name}_db" for name in percentiles)])
        powers = [x[0, channel].numpy() for x in outputs]
        rows = meter.update(*powers)
        places = [names.index(f"{name}_{side}") for name in (*LEVELS_DB, "lae", *percentiles)]
        np.testing.assert_allclose(frames[:, places].T, rows, rtol=4e-7)
        places = [names.index(f"{name}_{side}") for name in LEVELS]
        np.testing.assert_allclose(frames[:, places].T, level_db(powers[1]), rtol=4e-7)


def test_its_columns_say_what_they_are(model, library):
    names = [column.name for column in library.info.columns]
    assert len(names) == len(set(names))
    expected = {
        "bs1770": ["energy", "true_peak_left", "true_peak_right", "sample_peak_left"],
        "spl": [
            "mean_square_a_left",
            "power_af_right",
            "highest_zi_left",
            "laeq_right",
            "lae_left",
        ],
        "third_octave": ["mean_square_6_3hz", "power_f_1000hz", "highest_s_20000hz"],
        "octave": ["mean_square_31_5hz_left", "power_f_1000hz_right"],
    }
    assert set(expected[model]) <= set(names)
    assert library.info.input_unit == catalog.entry(model).input_unit


def test_layouts_without_an_object_are_refused():
    assert host_plan("bs1770", 22050, 6, 0.01).frames == 2
    with pytest.raises(ValueError, match="channels"):
        host_plan("bs1770", FS, 200, 0.01)
