"""Sound files as programs write them, with right and wrong headers; and an independent decoder.

Containers are put together here byte by byte, so that each field can be wrong; what is packed is
encoded and decoded by PyAV (FFmpeg).
"""

import io
import struct
from typing import Any

import av
import numpy as np
import soundfile

FS = 48000
GUID = bytes.fromhex("0000000010008000 00aa00389b71")
W64_GUID = bytes.fromhex("f3acd3118cd100c04f8edb8a")
UNKNOWN, MOST = (1 << 32) - 1, (1 << 64) - 1

ENCODINGS = {
    "u8": ("PCM_U8", 8, 1),
    "s8": ("PCM_S8", 8, 1),
    "s16": ("PCM_16", 16, 1),
    "s24": ("PCM_24", 24, 1),
    "s32": ("PCM_32", 32, 1),
    "f32": ("FLOAT", 32, 3),
    "f64": ("DOUBLE", 64, 3),
    "alaw": ("ALAW", 8, 6),
    "ulaw": ("ULAW", 8, 7),
}
"""libsndfile's name, bits and WAVE format of each encoding."""


def noise(seconds=1.0, channels=2, fs=FS, seed=1, rms=0.1):
    """Noise (time, channel), of which each channel is 3 dB softer than the one before."""
    x = np.random.default_rng(seed).standard_normal((round(seconds * fs), channels))
    return rms * x * 10 ** (-3 * np.arange(channels) / 20)


def samples(x, encoding="s16", big=False):
    """The bytes of sound in a plain encoding."""
    stream = io.BytesIO()
    form = {
        "format": "RAW",
        "subtype": ENCODINGS[encoding][0],
        "endian": "BIG" if big else "LITTLE",
    }
    soundfile.write(stream, x, FS, **form)
    return stream.getvalue()


def chunk(name, content, size=None, big=False):
    """A chunk of RIFF or IFF; its length is said to be `size`."""
    said = len(content) if size is None else size
    return name + struct.pack(">I" if big else "<I", said) + content + bytes(len(content) % 2)


def wave_format(channels, fs=FS, encoding="s16", mask=None, valid=None, big=False):
    """The content of the chunk "fmt ", extensible with a mask."""
    _, bits, tag = ENCODINGS[encoding]
    block = channels * bits // 8
    order = ">" if big else "<"
    if mask is None:
        return struct.pack(f"{order}HHIIHH", tag, channels, fs, fs * block, block, bits)
    head = struct.pack(f"{order}HHIIHH", 0xFFFE, channels, fs, fs * block, block, bits)
    return head + struct.pack(f"{order}HHIH", 22, valid or bits, mask, tag) + GUID


def wav(x, fs=FS, encoding="s16", size=None, total=None, before=b"", after=b"", **form):
    """A WAVE file; its lengths of sound and of all are said to be `size` and `total`.

    before, after: chunks around the sound; form: arguments of `wave_format`
    """
    big = form.get("big", False)
    head = chunk(b"fmt ", wave_format(x.shape[1], fs, encoding, **form), big=big)
    body = head + before + chunk(b"data", samples(x, encoding, big), size, big) + after
    said = len(body) + 4 if total is None else total
    return (b"RIFX" if big else b"RIFF") + struct.pack(">I" if big else "<I", said) + b"WAVE" + body


def rf64(x, fs=FS, encoding="s16", size=None, magic=b"RF64", after=b"", **form):
    """An RF64 or BW64 file; its length of sound is said to be `size`."""
    sound = samples(x, encoding)
    said = len(sound) if size is None else size
    head = chunk(b"fmt ", wave_format(x.shape[1], fs, encoding, **form))
    ds64 = chunk(b"ds64", struct.pack("<QQQI", said + 72 & MOST, said, 0, 0))
    body = b"WAVE" + ds64 + head + chunk(b"data", sound, UNKNOWN) + after
    return magic + struct.pack("<I", UNKNOWN) + body


def w64(x, fs=FS, encoding="s16", size=None, after=b"", **form):
    """A Wave64 file; its length of sound is said to be `size`, without the head of the chunk."""

    def part(name, content, said=None):
        said = len(content) if said is None else said
        return name + W64_GUID + struct.pack("<Q", said + 24) + content + bytes(-len(content) % 8)

    sound = samples(x, encoding)
    body = part(b"fmt ", wave_format(x.shape[1], fs, encoding, **form)) + part(b"data", sound, size)
    wave = b"wave" + W64_GUID
    riff = b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000")
    return riff + struct.pack("<Q", 40 + len(body)) + wave + body + after


def extended(number):
    """A whole number as 80-bit floating point."""
    shift = 63 - (number.bit_length() - 1)
    return struct.pack(">HQ", 16383 + 63 - shift, number << shift)


def aiff(
    x, fs=FS, encoding="s16", size=None, frames=None, code=None, chan=b"", after=b"", first=b""
):
    """An AIFF file, AIFF-C with a `code` such as b"sowt"; `size` is its length of sound.

    frames: number of samples that COMM says; chan: content of CHAN; first: chunks before COMM
    """
    sound = samples(x, encoding, big=code != b"sowt")
    if frames is None:
        block = x.shape[1] * ENCODINGS[encoding][1] // 8
        frames = len(x) if size is None else UNKNOWN if size == UNKNOWN else size // block
    comm = struct.pack(">hIh", x.shape[1], frames, ENCODINGS[encoding][1]) + extended(fs)
    comm += code + b"\0\0" if code else b""
    said = None if size is None else min(size + 8, UNKNOWN)
    body = chunk(b"COMM", comm, big=True)
    body += chunk(b"CHAN", chan, big=True) if chan else b""
    body += chunk(b"SSND", bytes(8) + sound, said, big=True) + after
    return chunk(b"FORM", (b"AIFC" if code else b"AIFF") + body, big=True)


def caf(x, fs=FS, encoding="s16", size=None, chan=b"", after=b"", big=True):
    """A Core Audio file; its length of sound is said to be `size` (-1: unknown)."""

    def part(name, content, said=None):
        return name + struct.pack(">q", len(content) if said is None else said) + content

    bits = ENCODINGS[encoding][1]
    law = {"alaw": b"alaw", "ulaw": b"ulaw"}.get(encoding)
    flags = 0 if law else (encoding[0] == "f") + 2 * (not big)
    block = x.shape[1] * bits // 8
    desc = struct.pack(">d4sIIIII", fs, law or b"lpcm", flags, block, 1, x.shape[1], bits)
    said = size if size is None or size < 0 else size + 4
    parts = part(b"desc", desc) + (part(b"chan", chan) if chan else b"")
    return (
        b"caff\0\1\0\0" + parts + part(b"data", bytes(4) + samples(x, encoding, big), said) + after
    )


def au(x, fs=FS, encoding="s16", size=None, big=True):
    """An AU file; its length of sound is said to be `size`."""
    codes = {"ulaw": 1, "s8": 2, "s16": 3, "s24": 4, "s32": 5, "f32": 6, "f64": 7, "alaw": 27}
    sound = samples(x, encoding, big)
    said = len(sound) if size is None else size
    head = struct.pack(
        ">IIIIII" if big else "<IIIIII", 0, 24, said, codes[encoding], fs, x.shape[1]
    )
    return (b".snd" if big else b"dns.") + head[4:] + sound


def core_audio_layout(tag=0, bitmap=0, labels=()):
    """The content of the chunks "chan" and "CHAN"."""
    each = b"".join(struct.pack(">II3f", label, 0, 0, 0, 0) for label in labels)
    return struct.pack(">III", tag, bitmap, len(labels)) + each


def encoded(x, fs=FS, container="flac", codec=None, layout=None, to=None, rate=None, **options):
    """The bytes of a file that FFmpeg writes, into something that cannot seek if `to` is "pipe".

    options: of the container; `codec_options` those of the encoder
    """
    stream: Any = io.BytesIO()
    target = Pipe(stream) if to == "pipe" else stream
    more = options.pop("codec_options", {})
    texts = {key: str(value) for key, value in options.items()}
    with av.open(target, "w", format=container, options=texts) as file:
        track = file.add_stream(codec or container, rate=fs, options=more)
        track.layout = layout or {1: "mono", 2: "stereo", 6: "5.1"}[x.shape[1]]
        if rate:
            track.bit_rate = rate
        resampler = av.AudioResampler(track.format, track.layout, fs)
        queue, done = av.AudioFifo(), 0
        for at in range(0, len(x), fs):
            block = np.ascontiguousarray(x[at : at + fs], np.float32)
            frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), "flt", track.layout.name)
            frame.sample_rate = fs
            for one in resampler.resample(frame):
                one.pts = None
                queue.write(one)
        size = track.codec_context.frame_size or 4096
        while (frame := queue.read(size) or queue.read(0, partial=True)) is not None:
            frame.pts = done
            done += frame.samples
            file.mux(track.encode(frame))
        file.mux(track.encode(None))
    return stream.getvalue()


class Pipe:
    """Takes bytes, and cannot go back."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, data):
        return self._stream.write(data)


def by_libsndfile(x, format, subtype, fs=FS):
    """The bytes of a file that libsndfile writes."""
    stream = io.BytesIO()
    soundfile.write(stream, x, fs, subtype, format=format)
    return stream.getvalue()


class Pieces(io.RawIOBase):
    """A stream that gives bytes in pieces of any size, as a pipe may."""

    def __init__(self, content, seed=0, most=3000):
        self._content, self._at = content, 0
        self._random, self._most = np.random.default_rng(seed), most

    def fileno(self):
        raise OSError("it is no file")

    def read(self, count=-1):
        first, self._at = self._at, self._at + int(self._random.integers(1, self._most))
        return self._content[first : self._at]


def decoded(content):
    """Samples (time, channel) and rate of a file by FFmpeg, which goes on behind damage."""
    blocks = []
    with av.open(io.BytesIO(content)) as file:
        track = file.streams.audio[0]
        channels = track.codec_context.layout.nb_channels
        resampler = av.AudioResampler("dbl", track.codec_context.layout, track.rate)
        for packet in file.demux(track):
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                continue
            for frame in frames:
                for one in resampler.resample(frame):
                    blocks.append(one.to_ndarray().reshape(-1, channels))
    return np.concatenate(blocks), track.rate
