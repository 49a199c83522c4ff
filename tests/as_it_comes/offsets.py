"""Reports of a constant offset."""

import numpy as np

from tests.as_it_comes.answers import Settings
from tests.as_it_comes.plain import Heard
from tests.as_it_comes.report import Report, murmur, quantized
from tests.data.sound_files import wav

LEVELS = Settings("spl")
ALL = "laeq_db", "lzeq_db", "lcpeak_db", "lafmax_db"


def decaying(start, tau_s, seconds, fs):
    return start * np.exp(-np.arange(round(seconds * fs)) / fs / tau_s)[:, None]


def phone():
    """It dies down within 0.5 s, so that it is no constant one."""
    x = murmur(3.0, 1, 44100, rms=0.05)
    return wav(x + decaying(0.3, 0.05, 3.0, 44100), 44100), Heard(x, 44100)


def atom_echo():
    x = murmur(3.0, 1, 16000, rms=1e-3)
    return wav(quantized(x - 0.03), 16000), Heard(x, 16000)


def analyzer():
    x = murmur(4.0, rms=1e-4)
    return wav(x + decaying(0.05, 5.0, 4.0, 48000), encoding="s24"), Heard(x)


def empty_slots():
    """Channels 3 and 4 have no microphone."""
    x = murmur(2.0, 4, rms=0.01)
    x[:, 2:] = 0.0
    x -= np.array([0.0, 0.0, 0.48, 0.48])
    return wav(quantized(x)), Heard(x[:, :2])


REPORTS = [
    Report(
        "gkasten/drrickorang",
        22,
        "A severe offset at the start, which dies down within 0.5 s, distorts the measurement.",
        phone,
        LEVELS,
        ("laeq_db",),
    ),
    Report(
        "esphome/esphome",
        10259,
        "A microphone with a negative offset reads -30 dB where its noise is at -60 dB.",
        atom_echo,
        LEVELS,
        ALL,
        offset=(-0.03,),
    ),
    Report(
        "dechamps/ASIO401",
        17,
        "The noise floor takes 20 s to settle, because of an offset that fades.",
        analyzer,
        LEVELS,
        ("laeq_db",),
        within={"laeq_db": 0.3},  # while it fades, it is a sound
        offset=(0.0476, 0.0476),
    ),
    Report(
        "thesofproject/sof",
        686,
        "Of four channels of 16 bits, the two without a microphone have an offset of -0.48.",
        empty_slots,
        Settings("spl", channels="1,2"),
        ALL,
    ),
]
