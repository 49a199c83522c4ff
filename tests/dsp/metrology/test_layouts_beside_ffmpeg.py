"""Loudness of programmes of several channels beside that of ffmpeg's filter ebur128.

Both give channels beside the listener 1.41 and none for low-frequency effects. ffmpeg weighs every
back and side channel with 1.41; ITU-R BS.1770-5 weighs what is farther back than 120 degrees, or
30 degrees high, with 1.
"""

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.dsp.channel_layout import layout_named
from tests.data.ffmpeg_meter import by_ffmpeg

FS = 48000
SECONDS = 2


def programme(channels):
    """Noise of another level in each channel (time, channel)."""
    random = np.random.default_rng(channels)
    levels = 10 ** (np.linspace(-20, -32, channels) / 20)
    return (levels * random.normal(0, 1, (SECONDS * FS, channels))).astype(np.float32)


def by_us(x, positions):
    return measure(x, FS, "bs1770", layout=positions, step_ms=100).summary["integrated_lufs"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("mono", "M"),
        ("stereo", "L R"),
        ("2.1", "L R LFE"),
        ("3.0", "L R C"),
        ("3.1", "L R C LFE"),
        ("quad", "L R Ls Rs"),
        ("quad(side)", "L R Ls Rs"),
        ("5.0", "L R C Ls Rs"),
        ("5.1", "L R C LFE Ls Rs"),
        ("5.1(side)", "L R C LFE Ls Rs"),
    ],
)
def test_both_read_the_same_where_the_rules_are_the_same(theirs, ours):
    x = programme(len(ours.split()))
    assert by_us(x, ours) == pytest.approx(by_ffmpeg(x, theirs), abs=0.02)


@pytest.mark.parametrize(
    ("theirs", "ours", "behind"),
    [
        ("4.0", "L R C Cs", "Cs"),
        ("6.1", "L R C LFE Cs Ls Rs", "Cs"),
        ("7.1", "L R C LFE Lrs Rrs Lss Rss", "Lrs Rrs"),
        ("5.1.4", "L R C LFE Ls Rs Ltf Rtf Ltr Rtr", "Ltr Rtr"),
    ],
)
def test_behind_the_listener_ffmpeg_weighs_more(theirs, ours, behind):
    x = programme(len(ours.split()))
    louder = x.copy()
    louder[:, [layout_named(ours).positions.index(one) for one in behind.split()]] *= np.sqrt(1.41)
    assert by_ffmpeg(x, theirs) == pytest.approx(by_us(louder, ours), abs=0.02)
    assert by_ffmpeg(x, theirs) - by_us(x, ours) > 0.05
