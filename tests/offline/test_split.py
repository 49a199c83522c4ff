"""A long sound in several processes: the numbers of one piece."""

import math

import numpy as np
import pytest
import soundfile

from amt_stream import measure
from amt_stream.offline import split
from amt_stream.offline.jobs import each

FS = 48000


def swelling(seconds, channels=2):
    random = np.random.default_rng(7)
    t = np.arange(round(seconds * FS)) / FS
    swell = 0.5 + 0.4 * np.sin(2 * np.pi * 0.7 * t)[:, None]
    return (0.05 * swell * random.standard_normal((len(t), channels))).astype(np.float32)


def test_parts_agree_with_one_piece(monkeypatch, tmp_path):
    """Of noise, to which parts run in; in silence after it long-term loudness still falls.

    With so short a run-in state in double precision is not quite forgotten: a number that lies
    between two of its last digits may get the other one.
    """
    monkeypatch.setattr(split, "RUN_IN", 0.8)
    monkeypatch.setattr(split, "LEAST_RUN_IN_S", 0.1)
    monkeypatch.setattr(split, "WORTH", 0.2)
    mended = []
    of_parts = split._Parts.__next__

    def counted(parts):
        given = of_parts(parts)
        mended.append(parts.mended)
        return given

    monkeypatch.setattr(split._Parts, "__next__", counted)
    x = swelling(10.0137)
    x[round(5.4 * FS) :] = 0.0
    soundfile.write(tmp_path / "x.wav", x, FS, "FLOAT")
    given = {"models": "moore2016", "calibration": 100.0, "accuracy": "coarse"}
    alone = measure(tmp_path / "x.wav", **given)
    together = measure(tmp_path / "x.wav", **given, jobs=2)
    assert len(mended) > 3
    assert 0 < mended[-1] < len(mended)
    agree(together, alone, rtol=5e-7, few=10)
    assert together.summary | {"date": ""} == alone.summary | {"date": ""}


def agree(together, alone, rtol, few=math.inf):
    """Whether all numbers agree within `rtol`, and all but a `few` are equal; all else is equal."""
    assert together.columns == alone.columns
    for name in alone.columns:
        if alone[name].dtype == np.float64:
            np.testing.assert_allclose(together[name], alone[name], rtol=rtol, err_msg=name)
            same = together[name] == alone[name]
            assert np.count_nonzero(~same & ~np.isnan(alone[name])) <= few, name
        else:
            np.testing.assert_array_equal(together[name], alone[name], err_msg=name)


@pytest.mark.parametrize(
    "models",
    [
        pytest.param("zwicker", marks=pytest.mark.soak),
        pytest.param("bs1770", marks=pytest.mark.soak),
        pytest.param("spl,gm2002,third_octave,spectrum", marks=pytest.mark.soak),
    ],
)
def test_parts_of_other_models_agree_to_the_last_digits(monkeypatch, models):
    monkeypatch.setattr(split, "WORTH", 0.3)
    seconds = {"zwicker": 10.5, "bs1770": 20.5}.get(models, 120.5)
    apart = []
    monkeypatch.setattr(
        split, "each", lambda *given, **to: apart.append(given) or each(*given, **to)
    )
    x = swelling(seconds, 1)
    alone = measure(x, FS, models, calibration=100.0, step_ms=100)
    together = measure(x, FS, models, calibration=100.0, step_ms=100, jobs=2)
    assert apart
    assert len(together) == len(alone) == 10 * seconds + 1
    agree(together, alone, rtol=1e-6)


@pytest.mark.quick
def test_a_short_sound_is_one_piece(monkeypatch):
    monkeypatch.setattr(split, "each", None)
    assert len(measure(swelling(1.0), FS, calibration=100.0, jobs=2)) == 1001


def test_no_part_is_run_of_which_nobody_wants_rows(monkeypatch):
    monkeypatch.setattr(split, "LEAST_RUN_IN_S", 0.1)
    monkeypatch.setattr(split, "WORTH", 0.1)
    monkeypatch.setattr(split, "each", None)
    found = measure(swelling(9.0), FS, models="spl", calibration=100.0, jobs=2, to_s=0.1)
    assert found.rows["time_s"][-1] == 0.1
