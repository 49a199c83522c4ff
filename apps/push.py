"""A program that hands in its own sound: 16-bit PCM in blocks of 20 ms, as from a network.

python apps/push.py        a tone of 60 dB SPL, for two seconds
"""

from collections.abc import Iterator

import numpy as np

from amt_stream import Calibration, Engine, Moore2016, PushSource

FS, BLOCK = 48000, 960
CALIBRATION = Calibration(100.0, source="known to the program")


def packets() -> Iterator[np.ndarray]:
    """The tone, 40 dB below a full-scale sine, in both channels."""
    tone = 0.01 * np.sin(2.0 * np.pi * 1000.0 * np.arange(2 * FS) / FS)
    pcm = np.round(tone * 32768).astype(np.int16)
    yield from np.stack([pcm, pcm], axis=1).reshape(-1, BLOCK, 2)


def main() -> None:
    # These packets come as fast as they can be read; live=True is for those that come in time.
    source = PushSource(FS, 2, "network", live=False, calibration=CALIBRATION)
    with Engine(source, Moore2016(fs=FS)) as engine:
        with source:
            for packet in packets():
                source.push(packet)
        engine.wait()
    row = engine.latest() or {}
    print(f"{engine.health.samples} samples heard, the last row is {row}")


if __name__ == "__main__":
    main()
