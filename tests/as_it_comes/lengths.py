"""Reports of headers that say another length, and of pipes."""

import struct

import numpy as np

from tests.as_it_comes.answers import Settings
from tests.as_it_comes.plain import Heard
from tests.as_it_comes.report import Report, quantized
from tests.data.sound_files import (
    UNKNOWN,
    by_libsndfile,
    chunk,
    decoded,
    encoded,
    noise,
    wav,
)

LEVELS = Settings("spl")
BOTH = Settings("spl,bs1770")
LEVEL = ("laeq_db",)


def swelling(seconds=3.0, channels=2, fs=48000):
    """Sound whose last third is 20 dB louder than what comes before: what is left out shows."""
    x = quantized(noise(seconds, channels, fs, rms=0.01))
    x[2 * len(x) // 3 :] *= 8
    return x


def wrapped():
    """As of 5.09 GB whose length has 32 bits: 793 MB."""
    x = swelling()
    size = 4 * len(x) * 793 // 5088 // 4 * 4
    return wav(x, size=size, total=size + 36), Heard(x)


def radio():
    """As of 5.21 GB whose length has 32 bits, at the highest rate that is measured."""
    x = swelling(1.0, fs=192000)
    return wav(x, 192000, size=4 * len(x) // 5, total=4 * len(x) // 5 + 36), Heard(x, 192000)


def lost_power():
    """Chunks of a field recorder before the sound, and what looks like one within it."""
    x = swelling()
    before = chunk(b"bext", bytes(858)) + chunk(b"DMC ", bytes(16))
    content = bytearray(wav(x, encoding="s24", size=0, total=0, before=before))
    at = len(content) // 3
    content[at : at + 8] = b"21P4" + struct.pack("<I", 732840487)
    begin = content.index(b"data") + 8
    raw = np.frombuffer(bytes(content[begin:]), np.uint8).reshape(-1, 2, 3).astype(np.int32)
    whole = (raw[..., 0] << 8 | raw[..., 1] << 16 | raw[..., 2] << 24) / 2.0**31
    return bytes(content), Heard(whole)


def cue_points():
    x = swelling()
    cue = chunk(b"cue ", struct.pack("<I", 1) + bytes(24))
    return wav(x, size=0, total=0, after=cue), Heard(x)


def crashed():
    """As AVAudioFile leaves it: float samples at 16 kHz behind a filler of 4 kB."""
    x = swelling(3.0, 1, 16000)
    filler = chunk(b"FLLR", bytes(4088 - 44))
    return wav(x, 16000, "f32", size=0, total=4088, before=filler), Heard(x, 16000)


def vbr_mp3():
    """Silence at its beginning makes its first frames small."""
    x = np.concatenate([np.zeros((24000, 2)), swelling()])
    options = {"flags": "+qscale", "global_quality": str(4 * 118)}
    content = encoded(
        x, container="mp3", codec="libmp3lame", codec_options=options, write_xing=0, id3v2_version=0
    )
    return content, Heard(*decoded(content))


def flac_of_vlc():
    x = swelling(3.0, 2, 44100)
    return encoded(x, 44100, to="pipe"), Heard(x, 44100)


def chained():
    soft, loud = noise(1.5, rms=0.01), noise(1.5, rms=0.2)
    links = [by_libsndfile(one, "OGG", "VORBIS") for one in (soft, loud)]
    return b"".join(links), Heard(np.concatenate([decoded(one)[0] for one in links]))


def film_pipe():
    x = quantized(noise(2.0, 6, rms=0.03))
    content = encoded(x, container="wav", codec="pcm_s16le", to="pipe")
    assert struct.pack("<I", UNKNOWN) in content[:100]
    return content, Heard(decoded(content)[0], positions="L R C LFE Ls Rs")


def speech_pipe():
    x = swelling(3.0, 1, 16000)
    content = encoded(x, 16000, container="wav", codec="pcm_s16le", to="pipe")
    return content, Heard(decoded(content)[0], 16000)


REPORTS = [
    Report(
        "breakfastquay/rubberband",
        101,
        "Of a WAV of 5.09 GB, whose header cannot say that, only the first part is read.",
        wrapped,
        BOTH,
        ("laeq_db", "integrated_lufs"),
        length=r"its header says \d+ samples, but there are 144000",
    ),
    Report(
        "AlexandreRouma/SDRPlusPlus",
        92,
        "Programs read 5 of 30 minutes of a recording of 5.21 GB.",
        radio,
        LEVELS,
        LEVEL,
        length="its header says 38400 samples, but there are 192000",
    ),
    Report(
        "agfline/wavfix",
        9,
        "After a crash, 2.5 of 55 minutes come back: bytes of the sound look like a chunk.",
        lost_power,
        LEVELS,
        LEVEL,
    ),
    Report(
        "agfline/wavfix",
        12,
        "A recorder that lost power says that its sound has 0 bytes, before a chunk of cues.",
        cue_points,
        LEVELS,
        LEVEL,
    ),
    Report(
        "libsndfile/libsndfile",
        1001,
        "The number of frames of an MP3 is another one than can be read.",
        vbr_mp3,
        LEVELS,
        LEVEL,
    ),
    Report(
        "libsndfile/libsndfile",
        1038,
        "A FLAC that says 0 samples, as VLC writes it, cannot be read.",
        flac_of_vlc,
        BOTH,
        ("laeq_db", "integrated_lufs"),
    ),
    Report(
        "island-io/mila",
        151,
        "A recording after a crash is empty: its header says 0 bytes until it is closed.",
        crashed,
        LEVELS,
        LEVEL,
    ),
    Report(
        "zaps166/QMPlay2",
        94,
        "A chain of Ogg files is not one sound.",
        chained,
        BOTH,
        ("laeq_db", "integrated_lufs"),
        length="it is 2 sounds in a row",
    ),
    Report(
        "swesterfeld/audiowmark",
        17,
        "A WAV that ffmpeg writes into a pipe seems to have 357913941 samples.",
        film_pipe,
        BOTH,
        ("laeq_db", "integrated_lufs"),
    ),
    Report(
        "kkroening/ffmpeg-python",
        118,
        "The header of a WAV from a pipe says a length of 0xffffffff, and is refused.",
        speech_pipe,
        LEVELS,
        LEVEL,
    ),
]
