"""The engine inside another program: print the loudness five times a second.

python apps/embed.py                a tone of 60 dB SPL, for two seconds
python apps/embed.py speech.wav     a sound file, played as if it came live
"""

import sys

from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.engine import Engine, FileSource, Frames, SignalSource, Source, Tone

EVERY_MS = 200


def show(frames: Frames) -> None:
    """A sink: called with each block of rows, from a thread of its own."""
    for i in range(len(frames)):
        if round(frames.time_s[i] * 1000) % EVERY_MS == 0:
            ltl = float(frames.values.ltl[i])
            phon = float(sone_to_phon(ltl, "iso532-3"))
            uncalibrated = "" if frames.calibrated else "  uncalibrated"
            print(f"{frames.time_s[i]:6.1f} s {ltl:7.3f} sone {phon:6.1f} phon{uncalibrated}")


def main() -> int:
    source: Source
    if len(sys.argv) > 1:
        source = FileSource(sys.argv[1])
    else:
        source = SignalSource([Tone(1000.0, level_db=60.0)], duration=2.0)
    with Engine(source, Moore2016(fs=source.fs), sinks=[show]) as engine:
        engine.wait()
    print(f"load {engine.health.load:.2f}, overruns {engine.health.overruns}", file=sys.stderr)
    return 1 if engine.error else 0


if __name__ == "__main__":
    sys.exit(main())
