"""The options of `stipa`."""

from dataclasses import dataclass

from amt_stream.cli.options.parser import ListsDevices
from amt_stream.core.values import Choice, NotAllowed, Number
from amt_stream.meters.setting import changed, setting, switch
from amt_stream.meters.specification import (
    CalibrationSettings,
    CorrectionSettings,
    LiveInputSettings,
)

OCTAVES = 7


def parse_levels(text: str) -> list[float]:
    """Read a level for each octave. Raises NotAllowed for anything else."""
    try:
        levels = [float(one) for one in text.split(",")]
    except ValueError:
        levels = []
    if len(levels) != OCTAVES or not all(-50 <= one <= 150 for one in levels):
        raise NotAllowed(
            "give seven levels in dB SPL, from 125 Hz to 8 kHz, such as 50,48,45,42,40,36,30"
        )
    return levels


@dataclass(frozen=True)
class StipaOptions(LiveInputSettings, CalibrationSettings, CorrectionSettings, ListsDevices):
    duration: float | None = changed(
        LiveInputSettings,
        "duration",
        about="measure for this many seconds; 15 are the least for a valid STI",
        usual="25, or the whole file",
    )
    no_play: bool = switch("--no-play", "only measure: another device plays the test signal")
    play_on: str | None = setting(
        "--play-on DEVICE", "output that plays, by a part of its name", usual="the default one"
    )
    play_level: float = setting(
        "--play-level DBFS",
        "RMS level of the signal that is played or written, relative to full scale",
        Number(-80, -17, "dB"),
        default=-20.0,
    )
    write: str | None = setting(
        "--write FILE.wav",
        "write 100 s of the test signal, which can be repeated without a seam, and exit",
    )
    force: bool = switch("--force", "overwrite an existing file")
    seed: int = setting(
        "--seed N", "of the noise in the test signal", Number(0, 2**32 - 1, whole=True), default=1
    )
    noise: list[float] | None = setting(
        "--noise LEVELS",
        "add noise by calculation that was measured apart and is not there now: its level in each "
        "of the seven octaves in dB SPL, separated by commas",
        parse=parse_levels,
    )
    noise_first: bool = switch(
        "--noise-first",
        "measure the noise for 10 s before the test signal plays, print its levels for --noise, "
        "and exit",
    )
    position: str | None = setting("--position NAME", "name of the position", usual="by the time")
    save: str | None = setting(
        "--save FILE.json",
        "add the result to the positions in this file",
        lack="a file: add --save FILE.json",
    )
    report: str | None = setting(
        "--report FILE.html",
        "write a report of all positions in the file of --save, with their mean and the lowest",
        needs="save",
    )
    format: str = setting(
        "--format", "format of the result", Choice(("text", "json")), default="text"
    )
