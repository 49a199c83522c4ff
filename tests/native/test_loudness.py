"""Readings of loudness in C: those of the rows, which count the same sound in Python."""

import re

import numpy as np
import pytest
import torch

from amt_stream import Stream, measure
from amt_stream.meters import catalog
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.native.plan import host_plan, model_for
from tests.native.library import FS, ZWICKER, Instance, columns_of, units_of

MOORE = ["stl", "ltl", "stl_phon", "ltl_phon", "max_stl", "max_ltl", "max_stl_phon", "max_ltl_phon"]
MOORE += [f"ltl_n{percent}_phon" for percent in PERCENTS]
CHANNELS = {"zwicker": 2, "moore2016": 2, "gm2002": 1}


def rising_and_falling(channels, fs=FS):
    """Noise that becomes nearly silent, then silent, and comes back."""
    steps = np.repeat(10.0 ** np.array([-1.7, -4, -9, -2.5]), fs * 7 // 10)
    noise = np.random.default_rng(4).standard_normal((channels, len(steps)))
    return (steps * noise * [[1.0], [0.3]][:channels]).astype(np.float32)


def rows_of(model, name):
    """The column of the rows with the numbers of a column in C."""
    base, side = re.fullmatch(r"(.+?)(_left|_right)?", name).groups(default="")
    base, unit = base.removesuffix("_phon"), "phon" if base.endswith("_phon") else "sone"
    prefix = {"zwicker": "zwicker_", "gm2002": "gm2002_", "moore2016": ""}[model]
    return f"{prefix}{base}{side}_{unit}"


def are_those_of_the_rows(model, sound, fs, names, frames, frame_s, latency_s):
    """Check columns of frames (frame, column) against the rows at the same times."""
    columns = {name: rows_of(model, name) for name in names if "_ear_" not in name}
    rows = measure(sound.T, fs, model, calibration="pascal", columns=list(columns.values()))
    at = np.round((rows["time_s"] + latency_s) / frame_s).astype(int)
    at = at[at < len(frames)]
    assert len(at) > 270
    for name, column in columns.items():
        found = frames[at, names.index(name)]
        # Rows have seven digits.
        np.testing.assert_allclose(found, rows[column][: len(at)], rtol=1e-6, atol=1e-9)


def in_python(model, sound, fs):
    """Frames of the plan by this process, and its columns."""
    plan = host_plan(model, fs, len(sound), 0.01)
    whole = sound[:, : sound.shape[1] // plan.block * plan.block]
    with torch.inference_mode():
        stream = Stream(model_for(model, fs, len(sound)), plan.lead)
        outputs = stream(torch.from_numpy(whole).reshape(*plan.lead, -1))
    return plan, columns_of(outputs, len(plan.columns))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("model", "fs"), [*((model, FS) for model in CHANNELS), ("zwicker", 44100)]
)
def test_the_plan_has_the_numbers_of_the_rows(model, fs):
    sound = rising_and_falling(CHANNELS[model], fs)
    plan, frames = in_python(model, sound, fs)
    names = [one.name for one in plan.columns]
    are_those_of_the_rows(model, sound, fs, names, frames, plan.frame_s, plan.latency_s)


@pytest.mark.parametrize("model", CHANNELS)
def test_its_columns_say_what_they_are(model):
    columns = host_plan(model, FS, CHANNELS[model], 0.01).columns
    names = [one.name for one in columns]
    expected = MOORE
    if model == "zwicker":
        expected = [f"{name}_{side}" for name in ZWICKER for side in ("left", "right")]
    assert set(names) == set(expected) | {name for name in names if "_ear_" in name}
    assert len(names) == len(set(names))
    units = [one["unit"] for one in units_of([re.sub("_(left|right)$", "", n) for n in names])]
    assert [one.unit for one in columns] == units


def test_the_library_has_the_numbers_of_the_rows_from_each_reset_on(library):
    sound = rising_and_falling(1)
    one, info = Instance(library), library.info
    one.whole(10 * sound[:, :54321], 1000)
    one.c.amt_reset(one.at)
    frames = one.whole(sound, 777)
    names = [column.name for column in info.columns]
    given = names, frames, info.frame_s, info.latency_s
    are_those_of_the_rows("zwicker", sound, FS, *given)


def test_nothing_is_known_before_the_sound():
    """The frames of these models begin before it, and do not count there."""
    plan, frames = in_python("moore2016", rising_and_falling(2)[:, : FS // 2], FS)
    before = round(plan.latency_s / plan.frame_s)
    names = [one.name for one in plan.columns]
    readings = frames[:, [k for k, name in enumerate(names) if "max" in name or "_n" in name]]
    assert np.isnan(readings[:before]).all()
    assert np.isfinite(readings[before:]).all()
    assert (frames[:before, names.index("stl_phon")] == 0).all()
    assert plan.input_unit == catalog.entry("moore2016").input_unit
