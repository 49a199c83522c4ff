"""Reports of sound at and beyond full scale."""

import numpy as np

from tests.as_it_comes.answers import Settings
from tests.as_it_comes.plain import Heard
from tests.as_it_comes.report import FFMPEG, Report, murmur, quantized, tone
from tests.data.sound_files import by_libsndfile, decoded, encoded, wav

BOTH = Settings("bs1770,spl")
PROGRAMME = Settings("bs1770", None)
PEAKS = "integrated_lufs", "true_peak_dbtp", "sample_peak_dbfs"
ALL = *PEAKS, "laeq_db", "lcpeak_db"


def loud(seconds=2.0, peak=1.0):
    """A limited master: noise that is often near its highest value."""
    return peak * np.tanh(6 * murmur(seconds, rms=0.15))


def hot_mp3():
    content = encoded(loud(peak=1.2), container="mp3", codec="libmp3lame", rate=128000)
    x, fs = decoded(content)
    assert np.abs(x).max() > 1.3
    return content, Heard(x, fs)


def above_zero():
    x = 2.2 * loud()
    return by_libsndfile(x, "WAV", "FLOAT"), Heard(x)


def spike():
    x = murmur(1.2, rms=0.02)
    x[30000:30960] *= 10 ** (85 / 20)
    return wav(x, encoding="f32"), Heard(x)


def far_beyond():
    x = 10 ** (55 / 20) * loud()
    return wav(x, encoding="f32"), Heard(x)


def mix():
    x = np.stack([tone(3.0), tone(3.0, hz=440.0)], axis=1)
    return wav(x, encoding="f32"), Heard(x)


def pascal():
    """94 dB in pascal, where 1 is 1 Pa."""
    x = np.stack([np.sqrt(2) * tone(0.0)] * 2, axis=1)
    return wav(x, encoding="f64"), Heard(x, full_scale_db=90.9691)


def master():
    x = quantized(np.clip(1.05 * loud(), -1, 1))
    return wav(x), Heard(x)


REPORTS = [
    Report(
        "jiixyj/loudness-scanner",
        22,
        "An MP3 has sample peaks above 1: 1.377, where its WAV has 1.",
        hot_mp3,
        BOTH,
        ALL,
    ),
    Report(
        "jiixyj/loudness-scanner",
        22,
        "The same as a WAV, which is clipped.",
        master,
        BOTH,
        ALL,
        clipped=True,
    ),
    Report(
        "slhck/ffmpeg-normalize",
        92,
        "A file of 0.38 LUFS is refused, because integrated loudness may not be above 0.",
        above_zero,
        PROGRAMME,
        PEAKS,
        origin=FFMPEG,
    ),
    Report(
        "slhck/ffmpeg-normalize",
        110,
        "1.2 s of speech with a true peak of 62.45 dB is refused.",
        spike,
        PROGRAMME,
        PEAKS,
    ),
    Report(
        "slhck/ffmpeg-normalize",
        163,
        "The level of a float WAV that is 55 dB beyond full scale is that of its clipped copy.",
        far_beyond,
        BOTH,
        ALL,
    ),
    Report(
        "audacity/audacity",
        4750,
        "A mix of float samples beyond 1 is taken as clipped.",
        mix,
        BOTH,
        ALL,
    ),
    Report(
        "dancasimiro/WAV.jl",
        23,
        "Float samples outside -1 to 1, such as pascal, are clamped.",
        pascal,
        Settings("spl", 90.9691),
        ("laeq_db", "lcpeak_db"),
        {"laeq_db": 94.0},
    ),
]
