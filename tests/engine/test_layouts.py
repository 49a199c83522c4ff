"""An engine whose models hear the channels of a known layout."""

import numpy as np
import pytest

from amt_stream import BS1770, Calibration, Engine, PushSource, SoundLevel
from amt_stream.dsp.channel_layout import layout_named
from amt_stream.engine.inputs.faults import FaultSource
from amt_stream.engine.sources import SourceError
from amt_stream.meters.correction import Correction
from amt_stream.meters.source_description import SourceDescription

FS = 48000
OGG = "L C R Ls Rs LFE"
LEVELS = 10 ** (np.array([-28, -24, -28, -30, -30, -12]) / 20)
"""EBU Tech 3341, case 6, -23 LUFS, beside loud low-frequency effects."""


def case_6():
    return np.outer(np.sin(2 * np.pi * 1000 * np.arange(FS) / FS), LEVELS).astype(np.float32)


def last_row(engine, source, x):
    """The last row of a measurement of this sound."""
    feed = engine.rows(step_ms=100)
    with engine, source:
        source.push(x)
        source.close()
        rows = [rows for rows in feed if len(rows)]
        assert engine.wait(60), engine.error
    return rows[-1]


def told(layout=None):
    """A source of six channels, which may say what they are for."""
    source = PushSource(FS, 6, live=False)
    if layout is not None:
        source.description = source.description.with_layout(layout_named(layout))
    return source


def test_each_model_hears_its_own_channels():
    models = {"bs1770": BS1770(FS, OGG), "spl": SoundLevel(FS)}
    source = told(OGG)
    engine = Engine(source, models, calibration=Calibration(100.0))
    assert engine.heard.channels == (1, 2, 3, 4, 5, 6)
    assert [engine.heard.channels_of(name) for name in models] == [engine.heard.channels, (1, 3)]
    x = case_6()
    x[:, 2] *= 0.5
    last = last_row(engine, source, x)
    assert last["momentary_lufs"][-1] == pytest.approx(-23.55, abs=0.05)
    assert last["laf_left_db"][-1] == pytest.approx(72.0, abs=0.1)
    assert last["laf_right_db"][-1] == pytest.approx(66.0, abs=0.1)


def test_a_program_says_the_layout():
    source = told()
    engine = Engine(source, BS1770(FS, OGG), layout=OGG)
    assert source.description.layout == layout_named(OGG)
    assert source.description.layout.origin == "user"
    # What the source finds out later about its sound does not change that.
    source.description = SourceDescription.of_signal(6).ended(FS)
    assert source.description.layout == layout_named(OGG)
    assert source.description.found == FS
    last = last_row(engine, source, case_6())
    assert last["momentary_lufs"][-1] == pytest.approx(-23.0, abs=0.05)


def test_a_model_for_another_layout_is_refused():
    with pytest.raises(ValueError, match=r"was built for 5\.1 \(L R C LFE Ls Rs\), and .* is 5\.1"):
        Engine(told(OGG), BS1770(FS, "5.1"))
    engine = Engine(told(OGG), BS1770(FS, OGG))
    with pytest.raises(ValueError, match=r"was built for 6\.0 \(.*\), and .* is 5\.1"):
        engine.swap(BS1770(FS, "6.0"))
    Engine(told(OGG), BS1770(FS, weights=[1.0] * 6))
    Engine(told(), BS1770(FS, "6.0"))  # nobody says that it is not
    with pytest.raises(ValueError, match="was built for 2 channels and gets 6: build it for 6, or"):
        Engine(told(), BS1770(FS))
    with pytest.raises(SourceError, match="has 6 channels: choose one"):
        Engine(told(), SoundLevel(FS))
    with pytest.raises(SourceError, match="has 8 channels, and pushed sound has 6: give the pos"):
        Engine(told(), BS1770(FS, "7.1"), layout="7.1")
    with pytest.raises(ValueError, match="each of several microphones is a sound of its own"):
        Engine(told(), SoundLevel(FS), microphones=3, layout="5.1")
    with pytest.raises(ValueError, match="layout is 'stereo', and each of several microphones"):
        Engine([PushSource(FS, 1, "a"), PushSource(FS, 1, "b")], SoundLevel(FS), layout="stereo")


def test_calibrations_and_corrections_are_those_of_the_channels_that_are_heard():
    models = {"bs1770": BS1770(FS, OGG), "spl": SoundLevel(FS)}
    each = [Calibration(100.0 + number) for number in range(6)]
    source = told(OGG)
    engine = Engine(source, models, calibration=each)
    assert engine.calibration == tuple(each)
    last = last_row(engine, source, case_6())
    assert last["laf_left_db"][-1] == pytest.approx(72.0, abs=0.1)
    assert last["laf_right_db"][-1] == pytest.approx(74.0, abs=0.1)
    with pytest.raises(ValueError, match="3 calibrations given: give one, or one for each channel"):
        Engine(told(OGG), models, calibration=each[:3])
    flat = Correction((100.0, 1000.0, 10000.0), (0.0, 0.0, 0.0), "mic.txt")
    engine = Engine(told(OGG), models, correction=[flat] * 6)
    assert len(engine.calibration) == 6


def test_chosen_channels_of_a_programme():
    source = told(OGG)
    engine = Engine(source, BS1770(FS, "Ls Rs"), channels=(4, 5))
    last = last_row(engine, source, case_6())
    both = -30 + 1.49
    assert last["momentary_lufs"][-1] == pytest.approx(both, abs=0.05)
    source = told(OGG)
    engine = Engine(source, BS1770(FS, "L Ls Rs"), channels=(1, 4, 5))
    last = last_row(engine, source, case_6())
    energy = 10 ** (-31.01 / 10) + 10 ** (both / 10)
    assert last["momentary_lufs"][-1] == pytest.approx(10 * np.log10(energy), abs=0.05)


def test_a_source_that_is_wrapped_keeps_its_layout():
    inner = told(OGG)
    wrapped = FaultSource(inner, [])
    assert wrapped.description.layout == layout_named(OGG)
    Engine(wrapped, BS1770(FS, "5.1"), layout="5.1")
    assert wrapped.description.layout == inner.description.layout == layout_named("5.1")
