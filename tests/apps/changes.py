"""Changes of a window in the middle of a measurement, one after another as a seed says."""

import time
from dataclasses import replace

import numpy as np

from amt_monitor.base.theme import CHOICES
from amt_monitor.window.pane_updater import COLLECT_MS
from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.stages import SoundLevel, ThirdOctaves
from amt_stream.engine import Engine, SignalSource, Tone

FS = 48000
STAGES = {
    "moore2016": Moore2016(FS, specific_loudness=True),
    "spl": SoundLevel(FS),
    "third_octave": ThirdOctaves(FS),
}
MODELS = [("moore2016",), ("moore2016", "spl"), ("spl", "third_octave")]


class Numbered:
    """A sink that says whether the frames of each model follow each other."""

    def __init__(self):
        self.samples, self.broken, self.count = {}, 0, 0

    def __call__(self, frames):
        found = np.asarray(frames.sample)
        last, step = self.samples.get(frames.model, (None, None))
        whole = found if last is None else np.concatenate([[last], found])
        steps = np.diff(whole)
        if len(steps):
            step = steps[0] if step is None else step
            self.broken += int((steps != step).sum())
        self.samples[frames.model] = found[-1], step
        self.count += len(found)


class Changes:
    """A measurement of one of two tones with one of three sets of models, and its changes.

    newest: the sink and the engine that were made last; the earlier ones are checked and let go
    made: how many engines there were
    """

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)
        self._kept, self.made, self.done = [], 0, {}

    @property
    def newest(self):
        return self._kept[-1]

    def engine(self, wanted):
        sink = Numbered()
        level = 70.0 if wanted.device == "another" else 60.0
        stages = {name: STAGES[name] for name in wanted.models or MODELS[0]}
        source = SignalSource([Tone(1000.0, level_db=level)], FS)
        engine = Engine(source, stages, [sink])
        self._kept.append((sink, engine))
        self.made += 1
        return engine

    def make(self, qtbot, window, count):
        for _ in range(count):
            kinds = (self._theme, self._layout, self._size, self._device, self._models)
            kind = kinds[self._random.integers(len(kinds))]
            kind(window)
            self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1
            self._pass_some(qtbot, window)

    def rest(self, qtbot, window):
        """The same state each time: what a window takes depends on its size and its models."""
        window.resize(1024, 768)
        self._begin(window, models=MODELS[0], device=None)
        self._pass_some(qtbot, window)
        window.area.restore_default()
        qtbot.wait(2 * COLLECT_MS)

    def check(self):
        for sink, engine in self._kept:
            assert not sink.broken
            assert not engine.health.lost_samples
            assert engine.error is None
        del self._kept[:-1]  # an engine that is kept keeps its frames too

    def _pass_some(self, qtbot, window):
        def seen():
            window.measurement.poll()
            return (
                not window.measurement.busy
                and window.measurement.engine is self.newest[1]
                and window.area.begun == window.measurement.begun
            )

        qtbot.waitUntil(seen, timeout=30000)
        self.check()
        sink = self.newest[0]
        count = sink.count
        qtbot.waitUntil(lambda: sink.count > count + 20, timeout=30000)

    def _theme(self, window):
        window.choose_theme(CHOICES[self._random.integers(len(CHOICES))])

    def _size(self, window):
        width, height = self._random.integers((800, 520), (1280, 1000)).tolist()
        window.resize(width, height)

    def _layout(self, window):
        docks = [*window.area.docks.values()]
        one, other = (docks[k] for k in self._random.choice(len(docks), 2, replace=False))
        match int(self._random.integers(4)):
            case 0:
                one.toggleViewAction().trigger()
            case 1:
                window.tabifyDockWidget(one, other)
                other.raise_()
            case 2:
                one.open_alone()
                one.pane.window().close()
            case 3:
                window.area.restore_default()

    def _device(self, window):
        self._begin(window, device=self._other([None, "another"], "device", window))

    def _models(self, window):
        self._begin(window, models=self._other(MODELS, "models", window))

    def _other(self, choices, name, window):
        left = [one for one in choices if one != getattr(window.measurement.request, name)]
        return left[self._random.integers(len(left))]

    def _begin(self, window, **asked):
        request = replace(window.measurement.request, resumed=None, log=None, **asked)
        made = self.made  # before the thread that makes the engine can count it
        window.targets.measurement.begin(request)
        while self.made == made:  # the engine is made in a thread
            window.measurement.poll()
            time.sleep(0.005)
