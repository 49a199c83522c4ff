"""A sound as programs store it: in each container and encoding, with right and wrong lengths."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tests.data.sound_files import (
    MOST,
    UNKNOWN,
    aiff,
    by_libsndfile,
    caf,
    core_audio_layout,
    decoded,
    encoded,
    rf64,
    samples,
    w64,
    wav,
)

WAVE = "L R C LFE Ls Rs"
FILM = "L C R Ls Rs LFE"
LENGTHS = "right", "too short", "too long", "zero", "-1", "joined"
BITS = {"u8": 8, "s8": 8, "s16": 16, "s24": 24}
ENCODINGS = "s16", "s24", "f32", "f64", "u8", "ulaw"


def extensible(x, **form):
    return wav(x, mask=(1 << x.shape[1]) - 1, **form)


def coded_aiff(x, encoding="s16", **form):
    code = {"f32": b"fl32", "f64": b"fl64", "ulaw": b"ulaw"}.get(encoding)
    return aiff(x, encoding=encoding, code=code, **form)


def film_caf(x, **form):
    """With MPEG 5.1 C, where it has six channels."""
    return caf(x, chan=core_audio_layout(123 << 16 | 6) if x.shape[1] == 6 else b"", **form)


PLAIN = {
    "WAV": (wav, UNKNOWN, WAVE, "usual"),
    "WAVE_EXTENSIBLE": (extensible, UNKNOWN, WAVE, "source"),
    "RF64": (rf64, MOST, WAVE, "usual"),
    "BW64": (partial(rf64, magic=b"BW64"), MOST, WAVE, "usual"),
    "W64": (w64, MOST - 24, WAVE, "usual"),
    "AIFF": (coded_aiff, UNKNOWN, WAVE, "usual"),
    "CAF": (film_caf, -1, FILM, "source"),
}
"""How each is written, its unknown length, the order of 5.1, and who says that order."""

VBR = {"flags": "+qscale", "global_quality": str(4 * 118)}
MP3 = {"container": "mp3", "codec": "libmp3lame", "codec_options": VBR}
PACKED = {
    "FLAC, 16 bits": partial(by_libsndfile, format="FLAC", subtype="PCM_16"),
    "FLAC, 24 bits": partial(by_libsndfile, format="FLAC", subtype="PCM_24"),
    "FLAC from a pipe": partial(encoded, container="flac", to="pipe"),
    "Ogg Vorbis": partial(by_libsndfile, format="OGG", subtype="VORBIS"),
    "Ogg Opus": partial(encoded, container="ogg", codec="libopus"),
    "MP3": partial(encoded, **MP3),
    "MP3 without Xing": partial(encoded, **MP3, write_xing=0, id3v2_version=0),
}


def expanded(raw):
    """Samples of mu-law by ITU-T G.711, as fractions of full scale."""
    code = ~np.frombuffer(raw, np.uint8)
    magnitude = ((code & 15) * 8.0 + 132) * 2.0 ** (code >> 4 & 7) - 132
    return np.where(code & 128, -magnitude, magnitude) / 2**15


def stored(x, encoding):
    """The samples (time, channel) that an encoding keeps of a sound."""
    if encoding == "ulaw":
        return expanded(samples(within(x, encoding), encoding)).reshape(x.shape)
    if encoding not in BITS:
        return x.astype(encoding.replace("f32", "f4").replace("f64", "f8")).astype(float)
    raw = np.frombuffer(samples(within(x, encoding), encoding), np.uint8)
    raw = raw.reshape(*x.shape, -1).astype(np.int64)
    number = (raw << 8 * np.arange(raw.shape[-1])).sum(-1)
    top = 1 << BITS[encoding] - 1
    return (number - top if encoding == "u8" else (number + top) % (2 * top) - top) / top


def within(x, encoding):
    """A sound as a converter gives it, which has ends of range; floats have none.

    libsndfile rounds to 8 bits downwards, which would be an offset of half a step.
    """
    if encoding in ("u8", "s8"):
        return np.clip(np.round(x * 128), -128, 127) / 128
    return x if encoding.startswith("f") else np.clip(x, -1.0, 1 - 2.0**-23)


@dataclass(frozen=True)
class Source:
    """A container, an encoding of PLAIN or "" of PACKED, and what its header says of its length."""

    container: str
    encoding: str = ""
    length: str = "right"

    def __str__(self):
        return ", ".join(filter(None, (self.container, self.encoding, self.length)))

    @property
    def positions(self):
        """Of 5.1, in the order in which the file has them."""
        return (
            PLAIN[self.container][2]
            if self.encoding
            else (FILM if self.container == "Ogg Vorbis" else WAVE)
        )

    @property
    def says_layout(self):
        return not self.encoding or PLAIN[self.container][3] == "source"

    @property
    def has_six_channels(self):
        return not self.container.startswith("MP3")

    @property
    def has_joint(self):
        return self.length == "joined" and not self.has_six_channels

    @property
    def top(self):
        """The largest sample that its encoding has; None if there is none."""
        if self.encoding == "ulaw":
            return 32124 / 2**15
        if self.encoding in BITS:
            return 1 - 2.0 ** (1 - min(BITS[self.encoding], 16))
        return 1 - 2.0**-15 if self.container.startswith("FLAC") else None

    def made(self, x):
        """The bytes of its file, and the samples (time, channel) of another decoder, in the order
        of `positions`, or of WAVE if they are packed.
        """
        if not self.encoding:
            content = PACKED[self.container](within(x, "s24") if self.top else x)
            if self.has_joint:
                return 2 * content, decoded(2 * content)[0]
            times = 1 + (self.length == "joined")
            heard, _ = decoded(content)
            # Of Vorbis, FFmpeg leaves out the last 128 samples, where the sound fades out.
            heard = np.pad(heard, ((0, max(0, len(x) - len(heard))), (0, 0)))
            return times * content, np.tile(heard, (times, 1))
        write, unknown, _, _ = PLAIN[self.container]
        size = len(samples(x, self.encoding))
        said = {"too short": size // 2, "too long": 2 * size, "zero": 0, "-1": unknown}
        write = partial(write, within(x, self.encoding), encoding=self.encoding)
        if self.length == "joined":
            return 2 * write(), np.tile(stored(x, self.encoding), (2, 1))
        return write(size=said.get(self.length)), stored(x, self.encoding)


def coded(encoding, container):
    """An encoding as the container has it: AIFF and CAF have signed samples of 8 bits."""
    return "s8" if encoding == "u8" and container in ("AIFF", "CAF") else encoding


ALL = [
    Source(container, coded(encoding, container), length)
    for container in PLAIN
    for encoding in ENCODINGS
    for length in LENGTHS
    if length != "joined" or encoding == "s16"
] + [Source(container, "", length) for container in PACKED for length in ("right", "joined")]
