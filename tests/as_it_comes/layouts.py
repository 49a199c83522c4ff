"""Reports of what a channel is for."""

import numpy as np

from tests.as_it_comes.answers import Settings
from tests.as_it_comes.plain import Heard
from tests.as_it_comes.report import PRINTED, Report, quantized, tone
from tests.data import sound_files
from tests.data.sound_files import noise, wav

PROGRAMME = Settings("bs1770", None)
LOUDNESS = ("integrated_lufs",)
EBU = {"L": -28.0, "R": -28.0, "C": -24.0, "Ls": -30.0, "Rs": -30.0}
"""EBU Tech 3341, signal 6: peak of a 1 kHz sine in each channel, together -23.0 LUFS."""


def ebu_signal(positions, lfe_db=-200.0):
    levels = [EBU.get(name, lfe_db) for name in positions.split()]
    return np.stack([tone(level) for level in levels], axis=1)


def ladder(positions):
    """Noise that is 3 dB softer in each channel than in the one before, with a loud LFE."""
    names = positions.split()
    x = noise(2.0, len(names), rms=0.05)
    return x * [4.0 if name == "LFE" else 1.0 for name in names]


def five():
    x = quantized(ebu_signal("L R C Ls Rs"))
    return wav(x), Heard(x, positions="L R C Ls Rs")


def three_and_one():
    x = ladder("L R C Cs")
    return wav(x, encoding="f32", mask=0x107), Heard(x, positions="L R C Cs")


def seven():
    x = ladder("L R C LFE Lrs Rrs Lss Rss")
    return wav(x, encoding="f32", mask=0x63F), Heard(x, positions="L R C LFE Lrs Rrs Lss Rss")


def extensible():
    x = quantized(ebu_signal("L R C LFE Ls Rs", lfe_db=-10.0))
    return wav(x, mask=0x60F), Heard(x, positions="L R C LFE Ls Rs")


def six_of_flac():
    x = quantized(ladder("L R C LFE Ls Rs"))
    content = sound_files.encoded(x)
    return content, Heard(sound_files.decoded(content)[0], positions="L R C LFE Ls Rs")


def eight_of_vorbis():
    """FFmpeg and libsndfile decode the same samples, in another order of channels."""
    positions = "L C R Lss Rss Lrs Rrs LFE"
    content = sound_files.by_libsndfile(ladder(positions), "OGG", "VORBIS")
    return content, Heard(sound_files.decoded(content)[0], positions="L R C LFE Lrs Rrs Lss Rss")


def film_order():
    positions = "L C R Ls Rs LFE"
    x = ladder(positions)
    chan = sound_files.core_audio_layout(123 << 16 | 6)
    return sound_files.caf(x, encoding="f32", chan=chan), Heard(x, positions=positions)


REPORTS = [
    Report(
        "jiixyj/libebur128",
        15,
        "Five channels of EBU Tech 3341, signal 6, read -23.7 LUFS: the fourth counts as LFE.",
        five,
        PROGRAMME,
        LOUDNESS,
        {"integrated_lufs": -23.0},
        PRINTED,
    ),
    Report(
        "jiixyj/libebur128",
        118,
        "The one surround channel of 3/1, behind the listener, has no known weight.",
        three_and_one,
        PROGRAMME,
        LOUDNESS,
    ),
    Report(
        "jiixyj/libebur128",
        119,
        "Of 7.1, the channels after the sixth do not count.",
        seven,
        PROGRAMME,
        LOUDNESS,
    ),
    Report(
        "mikrosimage/loudness_validator",
        57,
        "In a WAVE_FORMAT_EXTENSIBLE file of 5.1, LFE is the fourth channel, not the last one.",
        extensible,
        PROGRAMME,
        LOUDNESS,
        {"integrated_lufs": -23.0},
        PRINTED,
    ),
    Report(
        "csteinmetz1/pyloudnorm",
        41,
        "5.1 is refused, as it has more than five channels.",
        six_of_flac,
        PROGRAMME,
        LOUDNESS,
    ),
    Report(
        "vgmstream/vgmstream",
        1274,
        "Channels of Ogg Vorbis come in an order of its own.",
        eight_of_vorbis,
        PROGRAMME,
        LOUDNESS,
    ),
    Report(
        "roc-streaming/roc-toolkit",
        693,
        "Each format that libsndfile reads has another order of channels.",
        film_order,
        Settings("bs1770,spl"),
        ("integrated_lufs", "laeq_db"),
    ),
]
