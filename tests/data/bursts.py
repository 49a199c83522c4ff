"""Tone bursts, and how far the default ear filter is from the linear-phase one on each."""

import numpy as np
import torch

from amt_stream import aligned
from amt_stream.dsp.scales import P0, sone_to_phon

MS = (1, 2, 5, 10, 20, 50, 100)
HZ = (100, 250, 1000, 4000, 8000)
DB_SPL = (40, 60, 80)
BEFORE_S, AFTER_S = 0.07, 0.1


def burst(ms, hz, db_spl, ramp_ms, fs):
    """Pascal (time,): a burst of `ms` from its start on, with raised-cosine ramps inside it."""
    n = np.arange(round(ms * fs / 1000))
    x = np.sqrt(2) * P0 * 10 ** (db_spl / 20) * np.sin(2 * np.pi * hz * n / fs)
    ramp = round(ramp_ms * fs / 1000)
    edge = np.sin(np.pi / 2 * (np.arange(ramp) + 0.5) / max(ramp, 1)) ** 2
    x[:ramp] *= edge
    x[n.size - ramp :] *= edge[::-1]
    return np.pad(x, (round(BEFORE_S * fs), round(AFTER_S * fs)))


def off_by_burst(make, ramps_ms, fs=32000, ears=2):
    """Phon from the linear-phase form, of the maxima of STL and LTL, by (ms, hz, db, ramp).

    make: model of an ear filter
    """
    models = [make(phase).float() for phase in ("mixed", "linear")]
    off = {}
    for ms in MS:
        keys = [
            (ms, hz, db, ramp) for hz in HZ for db in DB_SPL for ramp in ramps_ms if 2 * ramp <= ms
        ]
        if not keys:
            continue
        sound = torch.tensor(np.stack([burst(*key, fs) for key in keys]), dtype=torch.float32)
        sound = sound[:, None].expand(-1, ears, -1).contiguous()
        with torch.no_grad():
            mixed, linear = (
                [sone_to_phon(v.double().amax(-1).numpy(), model.edition) for v in (y.stl, y.ltl)]
                for model in models
                for y in [aligned(model, sound)]
            )
        for k, key in enumerate(keys):
            off[key] = tuple(float(a[k] - b[k]) for a, b in zip(mixed, linear, strict=True))
    return off
