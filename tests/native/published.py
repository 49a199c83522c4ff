"""The checks of the self-test, on a model whose numbers come from a library or a page."""

from dataclasses import replace

import numpy as np
import torch

from amt_stream.dsp.streaming import fields
from amt_stream.offline.selftest import WAYS, build, trials
from tests.native.library import FS

SAME_VALUE = {"fs", "layout", "ear_filter"}
"""Options with which printed values do not change."""

NOT_IN_C = "sharpness_mean_acum"


def checks(name, channels):
    """The checks of a model that its library can have: at 48 kHz, with its default settings.

    Of those made at another rate or with another filter of the ear, only the printed values.
    """
    for trial in trials([name]):
        rest = trial.options.keys() - SAME_VALUE
        if trial.directly or NOT_IN_C in trial.columns or rest:
            continue
        at_defaults = trial.options["fs"] == FS and "ear_filter" not in trial.options
        readings = tuple(one for one in trial.readings if one.published or at_defaults)
        if readings and len(trial.sound.samples(FS)) == channels:
            options = {k: v for k, v in trial.options.items() if k == "layout"}
            yield replace(trial, readings=readings, options={"fs": FS} | options)


def results(trial, frames_of, block, begin=lambda: None):
    """The results of a check.

    frames_of: gives the frames (frame, column) of the next sound (channel, time)
    block: samples that it takes together
    begin: called before the first block of each sound, as before those that warm a model up
    """

    def elsewhere(name, **options):
        stage = build(name, **options)
        count = len(stage.as_fused().host_outputs)  # its first outputs; then there are readings

        class Elsewhere(type(stage)):
            def step(self, x, state):
                first = self.initial_state(tuple(x.shape[:-1]))
                if all(torch.equal(state[key], value) for key, value in first.items()):
                    begin()
                y, state = super().step(x, state)
                columns = torch.from_numpy(frames_of(x.reshape(-1, x.shape[-1]).numpy()).T)
                given, at = [], 0
                for one in fields(y):
                    lines = 0 if one is None else one.numel() // one.shape[-1]
                    if lines and len(given) < count:
                        one = columns[at : at + lines].reshape(one.shape)
                    at += lines
                    given.append(one)
                return type(y)(*given), state

        stage.__class__, stage.block_size = Elsewhere, block
        return stage

    return [*trial.results(elsewhere, [WAYS["float"]])]


def assert_published(trial, instance, whole=None):
    """Check that a library has the published values, and so has what calculates a whole sound.

    instance: of the library
    whole: gives all numbers of the frames of a sound (channel, time); None for the library alone
    """
    sounds = []

    def begin():
        instance.c.amt_reset(instance.at)
        sounds.append(([], []))

    def of_library(sound):
        blocks, frames = sounds[-1]
        blocks.append(sound.copy())
        frames.append(instance.process(sound)[0])
        return frames[-1]

    block = instance.about.block
    found = results(trial, of_library, block, begin)
    if whole is not None:
        given = iter([part for one in sounds for part in parts_of(whole, *one)])
        found += results(trial, lambda _: next(given), block)
    for result in found:
        assert result.passed, (result.reading.what, result.got, result.problem)
    return found


def parts_of(whole, blocks, frames):
    """What `whole` gives of a sound, divided as the frames of its blocks."""
    numbers = whole(np.concatenate(blocks, axis=1)).reshape(-1, frames[0].shape[1])
    return np.split(numbers, np.cumsum([*map(len, frames)])[:-1])
