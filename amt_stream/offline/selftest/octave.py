"""Checks of octave levels (IEC 61260-1:2014)."""

from functools import partial

from amt_stream.offline.selftest.third_octave import at_middle, at_side, one_pascal, outside

LIMITS = {10**0.0375: (-0.4, 0.5), 10**0.075: (-0.4, 0.7), 10**0.1125: (-0.4, 1.4)}
"""Limits of attenuation in dB, by the ratio of frequency to midband frequency."""

_midband = partial(at_middle, model="octave")
_limited = partial(at_side, 4000, 10**3.6, model="octave")
_attenuated = partial(outside, 500, 10**2.7, edge=10**0.15, last=10, model="octave")

CHECKS = (
    one_pascal("octave", "octave_lzf_1000hz_db"),
    _midband(31.5, 10**1.5, duration=4.0),
    _midband(1000, 1000.0),
    _midband(16000, 10**4.2),
    _midband(16000, 10**4.2, fs=44100),
    *(_limited(ratio**way, limits) for ratio, limits in LIMITS.items() for way in (-1, 1)),
    _attenuated(10**0.3),
    _attenuated(10**-0.3),
)
