"""A recording in three lines of Python: its loudness, and specific loudness by ERB number.

python apps/measure.py              a tone of 1 kHz at 60 dB SPL, for one second
python apps/measure.py speech.wav 110   a sound file whose full-scale sine is 110 dB SPL
"""

import sys

import numpy as np

from amt_stream import Measured, measure
from amt_stream.dsp.scales import erb_number_to_hz

FS = 48000


def measured(arguments: list[str]) -> Measured:
    """The file named on the command line, or else the tone."""
    if arguments:
        path, *level = arguments
        calibration = float(level[0]) if level else None
        return measure(path, calibration=calibration, step_ms=100, outputs=["specific_loudness"])
    pascal = 0.02 * np.sqrt(2) * np.sin(2 * np.pi * 1000 * np.arange(FS) / FS)
    return measure(pascal, FS, calibration="pascal", step_ms=100, outputs=["specific_loudness"])


def main() -> None:
    m = measured(sys.argv[1:])
    for time_s, sone, phon in zip(m.time_s, m["ltl_sone"], m["ltl_phon"], strict=True):
        print(f"{time_s:6.1f} s {sone:7.3f} sone {phon:6.1f} phon")
    loudest = m["specific_loudness"].max(axis=(0, 1)).argmax()
    cam = m.axes["specific_loudness"][1].values[loudest]
    print(f"most at {cam:.2f} Cam, {erb_number_to_hz(cam):.0f} Hz")
    print(f"maximum {m.summary['max_ltl_phon']} phon")


if __name__ == "__main__":
    main()
