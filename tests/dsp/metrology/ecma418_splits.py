"""Roughness and fluctuation strength of sound in parts: the values of the whole."""

import torch

from amt_stream import Rebuffer, Stream
from tests.dsp.chunks import pushed


def is_the_same_in_any_split(model, lead, x, cuts):
    """Check specific values (frame, band) with `x` cut by each of `cuts`; returns the largest."""
    with torch.no_grad():
        whole = model(x).specific
        for sizes in cuts:
            pieces = pushed(Rebuffer(Stream(model, lead)), x, sizes)
            y = torch.cat([piece.specific for piece in pieces])
            assert y.equal(whole[: len(y)])
    return whole.max()


def resumes_and_rows_stay_apart(make, x, frames):
    """Check that a copy of a stream goes on after so many frames, with the last row reset.

    Returns its specific values (row, frame, band).

    x: envelopes of three rows (3, 2, 53, time)
    """
    stage = make().double()
    first, rest = x[..., : 30 * frames], x[..., 30 * frames :]
    with torch.no_grad():
        whole = stage(x).specific
        live = Stream(stage, (3, 2, 53))
        live(first)
        again = Stream(make().double(), (3, 2, 53))
        again.load_state_dict(live.state_dict())
        again.reset(torch.tensor([False, False, True]))
        y = again(rest).specific
        assert y[:2].equal(whole[:2, frames:])
        assert y[2].equal(stage(rest[2]).specific)
    return y
