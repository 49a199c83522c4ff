"""Reports of microphones that are muted, or whose gain another program turns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Happening:
    """What happens to a microphone while it is measured.

    place, number: project and number of the public report
    what: what was reported, in a sentence
    percent: the volume of its source: before, and later; 0 is muted
    """

    place: str
    number: int
    what: str
    percent: tuple[int, int]

    def __str__(self):
        return f"{self.place.rpartition('/')[2]}-{self.number}"


HAPPENINGS = [
    Happening(
        "kcat/openal-soft",
        516,
        "A muted microphone goes on giving samples, and nothing tells them from sound.",
        (100, 0),
    ),
    Happening(
        "spatialaudio/python-sounddevice",
        196,
        "All samples of a recording are 0, where the system does not permit to use a microphone.",
        (0, 0),
    ),
    Happening(
        "atuline/WLED",
        58,
        "A digital microphone gives zeros for its first 262144 cycles.",
        (0, 100),
    ),
    Happening(
        "linuxmint/cinnamon",
        9524,
        "The volume of a microphone changes by itself.",
        (100, 50),
    ),
    Happening(
        "jitsi/jitsi-meet",
        10675,
        "A conference turns the volume of the system's microphone down.",
        (100, 80),
    ),
    Happening(
        "bigbluebutton/bigbluebutton",
        3086,
        "A conference turns the volume of the system's microphone up.",
        (64, 100),
    ),
    Happening(
        "ferdium/ferdium-app",
        1151,
        "A call turns the level of an input from 75 to 92 %.",
        (75, 92),
    ),
]
