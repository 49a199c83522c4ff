"""A measurement without an engine and its thread: a test gives it blocks with `take`."""

from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.measurement import Measurement


def measuring(ready, emit, calibration, ears=slice(0, 2), offered=2, **others):
    """It has one listener, to `ears` of as many channels as are offered.

    others: of the listener (description), and of the measurement (epoch, name)
    """
    listener = Listener(ears, offered, calibration, description=others.pop("description", None))
    others = {"epoch": lambda audio_s: 0.0, "model_changed": lambda ready: None, **others}
    return Measurement(ready, [listener], emit=emit, **others)
