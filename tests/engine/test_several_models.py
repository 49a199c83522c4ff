"""Several models that hear one source: each as if it were alone."""

import numpy as np
import pytest

from amt_stream.dsp.models import ZwickerTimeVarying
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault

FS = 48000
TONES = [Tone(1000.0, level_db=60.0), Tone(300.0, level_db=70.0, ear="left")]


class ByModel:
    """A sink that keeps what each model gave."""

    def __init__(self):
        self.frames = {}

    def __call__(self, frames):
        self.frames.setdefault(frames.model, []).append(frames)

    def column(self, model, name):
        return np.concatenate([getattr(one, name) for one in self.frames[model]])


def run(model, duration=0.5, **options):
    sink = ByModel()
    with Engine(SignalSource(TONES, FS, duration, paced=False), model, [sink], **options) as engine:
        assert engine.wait(60), engine.error
    return sink, engine


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_each_gives_what_it_gives_alone(power_meter, run_in):
    models = {
        "power": power_meter(),
        "late": power_meter(delay=960),
        "zwicker": ZwickerTimeVarying(FS),
    }
    together, engine = run(models, run_in=run_in)
    assert set(together.frames) == set(models)
    for name, model in models.items():
        alone, _ = run(model, run_in=run_in)
        for column in ("time_s", "sample", "fault", "settling"):
            np.testing.assert_array_equal(together.column(name, column), alone.column("", column))
        history = engine.histories[name]
        assert history.count == len(alone.column("", "time_s"))
    np.testing.assert_array_equal(
        np.concatenate([f.values.n for f in together.frames["zwicker"]], axis=-1),
        np.concatenate([f.values.n for f in run(models["zwicker"])[0].frames[""]], axis=-1),
    )
    assert engine.models == models
    assert engine.model is models["power"]
    assert engine.history is engine.histories["power"]


def test_a_reset_a_calibration_and_a_gap_reach_all(scripted, power_meter, noise, until):
    sink = ByModel()
    x = noise(4800)

    def heard(ms):
        names = ("a", "b")
        until(lambda: all(n in sink.frames and len(sink.column(n, "fault")) >= ms for n in names))

    def script(deliver):
        deliver(x)
        deliver(x, lost=480)
        heard(180)
        engine.reset_filters()
        engine.calibrate(Calibration(120.0))
        deliver(x)

    models = {"a": power_meter(), "b": power_meter(delay=96)}
    engine = Engine(scripted(script, live=False), models, [sink])
    with engine:
        assert engine.wait(60), engine.error
    for name in models:
        frames = sink.frames[name]
        assert frames[0].stretch == 0
        assert frames[-1].stretch == 2
        assert frames[-1].calibrated
        assert np.any(sink.column(name, "fault") & Fault.GAP)
    assert engine.health.lost_samples == 480


def test_one_of_them_can_be_swapped(scripted, power_meter, noise, until):
    sink = ByModel()
    models = {"a": power_meter(), "b": power_meter()}
    new = power_meter(delay=48)

    def script(deliver):
        deliver(noise(4800))
        until(lambda: sum(map(len, sink.frames.get("b", ()))) > 50)
        engine.swap(new, "b")
        deliver(noise(4800))

    engine = Engine(scripted(script, live=False), models, [sink])
    with engine:
        assert engine.wait(60), engine.error
    assert engine.models == {"a": models["a"], "b": new}
    assert sink.frames["a"][-1].stretch == 0
    assert sink.frames["b"][-1].stretch == 1
    with pytest.raises(ValueError, match="no model is called 'c': there are a, b"):
        engine.swap(new, "c")


def test_on_one_channel_a_meter_of_channels_and_one_of_ears_take_turns(
    scripted, power_meter, noise, until
):
    sink = ByModel()
    x = noise(4800, channels=1)
    models = [ZwickerTimeVarying(FS), power_meter(), ZwickerTimeVarying(FS)]

    def script(deliver):
        for swapped, model in enumerate(models):
            if swapped:
                engine.swap(model)
            deliver(x)
            deliver(x)
            until(lambda: sink.frames and sink.frames[""][-1].stretch >= swapped)  # noqa: B023

    source = scripted(script, channels=1, live=False)
    both = [Calibration(100.0), Calibration(106.0)]
    engine = Engine(source, models[0], [sink], calibration=both)
    with engine:
        assert engine.wait(60), engine.error
    frames = sink.frames[""]
    assert [frames[k].stretch for k in (0, -1)] == [0, 2]
    ears = next(f for f in frames if f.stretch == 1)
    assert np.ptp(ears.level_db, axis=0)[-1] == pytest.approx(6.0, abs=0.01)
    for one in (frames[0], frames[-1]):
        assert one.values.n.shape[0] == 1
        np.testing.assert_array_equal(one.level_db[0], one.level_db[1])


def test_one_channel_is_one_meter_where_each_channel_has_its_own():
    tone = [Tone(1000.0, level_db=60.0)]
    sink = ByModel()
    model = ZwickerTimeVarying(FS)
    source = SignalSource(tone, FS, 0.1, paced=False)
    with Engine(source, model, [sink], channels=(1,)) as engine:
        assert engine.wait(60), engine.error
    frames = sink.frames[""][0]
    assert frames.values.n.shape[0] == 1
    assert frames.level_db.shape[0] == 2
    np.testing.assert_array_equal(frames.level_db[0], frames.level_db[1])


def test_no_model_is_refused():
    with pytest.raises(ValueError, match="no model given: give one Stage"):
        Engine(SignalSource(), {})
