"""A measurement whose model costs processor time, as a program of its own: it tells its health.

python -m tests.engine.burning SECONDS: of work for each second of sound. Each line on standard
input is answered by a line of JSON.
"""

import json
import sys
import time
from dataclasses import asdict, replace
from fractions import Fraction

from amt_stream.dsp.streaming import Stage
from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.signals import Tone


class Burner(Stage):
    """Takes so many processor seconds for a second of sound."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.block_size = 480
        self.ratio = Fraction(1, 480)

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        end = time.thread_time() + self.seconds * x.shape[-1] / 48000
        y = x.unflatten(-1, (-1, 480)).square().mean(-1).sum(-2)
        while time.thread_time() < end:
            pass
        return y, state


def main() -> None:
    source = SignalSource([Tone(1000.0, level_db=60.0)])
    source.can_wait = False  # as a microphone
    with Engine(source, Burner(float(sys.argv[1])), ladder=()) as engine:
        print("ready", flush=True)
        for _ in sys.stdin:
            events = [[one.kind, one.text, one.cause] for one in engine.events]
            health = asdict(replace(engine.health, microphones={}))
            print(json.dumps({**health, "events": events}), flush=True)


if __name__ == "__main__":
    main()
