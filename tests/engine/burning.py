"""A measurement whose model costs processor time, as a program of its own: it tells its health.

python -m tests.engine.burning SECONDS: of work for each second of sound. Each line on standard
input is answered by a line of JSON.
"""

import json
import sys
from dataclasses import asdict, replace

from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.signals import Tone
from tests.engine.slow_models import Burner


def main() -> None:
    source = SignalSource([Tone(1000.0, level_db=60.0)])
    source.can_wait = False  # as a microphone
    with Engine(source, Burner(float(sys.argv[1])), ladder=()) as engine:
        print("ready", flush=True)
        for _ in sys.stdin:
            health = asdict(replace(engine.health, microphones={}))
            events = [[one.kind, one.text, one.cause] for one in engine.events]
            print(json.dumps({**health, "events": events}), flush=True)


if __name__ == "__main__":
    main()
