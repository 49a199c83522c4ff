"""Sound is read to its end, whatever its header says of its length."""

import os
import struct
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from amt_stream.engine import FileSource, SourceError, StdinSource
from amt_stream.offline.analysis import CheckedFile
from tests.data.sound_files import (
    FS,
    UNKNOWN,
    W64_GUID,
    Pieces,
    aiff,
    au,
    by_libsndfile,
    caf,
    chunk,
    decoded,
    encoded,
    noise,
    rf64,
    samples,
    w64,
    wav,
    wave_format,
)

X, MORE = noise(0.7), noise(0.4, seed=2)
N, BYTES = len(X), 4 * len(X)
STORED = np.frombuffer(samples(X), "<i2").reshape(-1, 2).astype(np.float32) / 2**15
LIST = chunk(b"LIST", b"INFOISFT" + struct.pack("<I", 4) + b"abc\0")
TAG = b"TAG" + bytes(125)
"""An ID3v1 tag, as programs append it to anything."""

PLAIN = {
    "wav": wav,
    "rifx": partial(wav, big=True),
    "extensible": partial(wav, mask=3),
    "rf64": rf64,
    "bw64": partial(rf64, magic=b"BW64"),
    "w64": w64,
    "aiff": aiff,
    "sowt": partial(aiff, code=b"sowt"),
    "caf": caf,
    "little-endian caf": partial(caf, big=False),
    "au": au,
    "little-endian au": partial(au, big=False),
}
WIDE = ("rf64", "bw64", "w64", "caf")
"""Containers whose lengths have 64 bits."""

MP3 = {"container": "mp3", "codec": "libmp3lame"}
VBR = {**MP3, "codec_options": {"flags": "+qscale", "global_quality": str(4 * 118)}}
PACKED = {
    "flac": partial(encoded, container="flac"),
    "flac of a pipe": partial(encoded, container="flac", to="pipe"),
    "vorbis": partial(by_libsndfile, "OGG", "VORBIS"),
    "opus": partial(encoded, container="ogg", codec="libopus"),
    "flac in ogg": partial(encoded, container="ogg", codec="flac"),
    "mp3": partial(encoded, **MP3, rate=128000),
    "vbr": partial(encoded, **VBR),
    "vbr without xing": partial(encoded, **VBR, write_xing=0, id3v2_version=0),
}
PACKED["vorbis"] = lambda x, fs=FS: by_libsndfile(x, "OGG", "VORBIS", fs)


@pytest.fixture
def read(tmp_path):
    """The sound of a file and its description: once read, twice checked, and through a pipe."""

    def read(content, through_pipe=True):
        path = tmp_path / "sound"
        path.write_bytes(content)
        source = FileSource(path, paced=False)
        sound = np.concatenate(list(source.blocks(0.2)))
        source.stop()
        known = source.duration_s
        assert known is None or known == len(sound) / source.fs or source.cut_off
        assert source.description.found == len(sound)
        recording = CheckedFile(path)
        assert replace(recording.description, offset=()) == source.description
        np.testing.assert_array_equal(np.concatenate(list(recording.blocks())), sound)
        if through_pipe:
            piped, description = of_pipe(content)
            np.testing.assert_array_equal(piped, sound)
            assert description.length_words == source.description.length_words
        return sound, source.description

    return read


def of_pipe(content, seed=0):
    source = StdinSource(None, stream=Pieces(content, seed))
    return np.concatenate(list(source.blocks())), source.description


def level_db(x):
    return 10 * np.log10(np.mean(np.square(x, dtype=float)))


LENGTHS = {
    "right": BYTES,
    "too short": 4 * 1000,
    "half": BYTES // 2,
    "too long": 5 * BYTES,
    "zero, as after a crash": 0,
    "minus one": -1,
}


@pytest.mark.cases(9)
@pytest.mark.parametrize("said", LENGTHS)
@pytest.mark.parametrize("name", PLAIN)
def test_all_that_is_there_is_read(read, name, said):
    size = LENGTHS[said]
    if size < 0:
        size = -1 if "caf" in name else (1 << 64) - 1 - 24 if name in WIDE else UNKNOWN
    sound, description = read(PLAIN[name](X, size=size))
    np.testing.assert_array_equal(sound, STORED)
    is_right = said in ("right", "zero, as after a crash", "minus one")
    words = "" if is_right else f"its header says {size // 4} samples, but there are {N}"
    assert description.length_words == words
    assert bool(description.cut_off) == (said == "too long")
    assert description.promised == (None if size in (0, -1) or size > 9 * BYTES else size // 4)


@pytest.mark.parametrize(
    ("make", "encoding"), [(wav, "u8"), (aiff, "s8"), (caf, "ulaw"), (rf64, "u8"), (au, "ulaw")]
)
def test_what_looks_like_the_head_of_a_chunk_is_sound(read, make, encoding):
    """Its name is of letters, as samples of 8 bits may be, and its length leads beyond the end."""
    x = np.full((20000, 1), 0.1)
    letters = {"u8": 65 / 128 - 1, "s8": 65 / 128, "ulaw": -0.0555}[encoding]
    x[5000:5004] = letters
    sound, description = read(make(x, 8000, encoding=encoding, size=5000))
    assert len(sound) == 20000
    assert description.length_words == "its header says 5000 samples, but there are 20000"


@pytest.mark.parametrize("size", [0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0x7F000000, 0xFFFFFFFF])
def test_a_length_that_was_not_known_is_no_mistake(read, size):
    """As sox, arecord, ffmpeg and libsndfile write it that write into a pipe."""
    sound, description = read(wav(X, size=size, total=size))
    assert (len(sound), description.promised, description.length_words) == (N, None, "")


def test_the_length_of_all_says_nothing(read):
    for total in (0, 4, UNKNOWN):
        assert read(wav(X, total=total))[1].length_words == ""


@pytest.mark.parametrize(
    ("make", "after"),
    [
        (wav, LIST),
        (wav, chunk(b"id3 ", b"ID3\4" + bytes(99)) + LIST),
        (wav, chunk(b"junk", bytes(1000))),
        (wav, chunk(b"xyz1", bytes(1000)) + chunk(b"xyz2", b"odd")),
        (wav, TAG),
        (rf64, LIST),
        (w64, b"fact" + W64_GUID + struct.pack("<Q", 32) + bytes(8)),
        (aiff, chunk(b"ANNO", b"hello!", big=True)),
        (caf, b"info" + struct.pack(">q", 4) + bytes(4)),
    ],
)
def test_chunks_behind_the_sound_are_no_sound(read, make, after):
    content = make(X, after=after)
    sound, description = read(content)
    assert (len(sound), description.length_words) == (N, "")
    # In a file also where its header is wrong: they reach its end.
    if not after.startswith((b"xyz", b"TAG")):
        sound, description = read(make(X, size=400, after=after), through_pipe=False)
        assert len(sound) == N
        assert description.length_words == f"its header says 100 samples, but there are {N}"


def test_what_is_no_chunk_is_sound(read):
    """As if a program had begun to write its length, and went on with sound."""
    sound, description = read(wav(X) + samples(MORE))
    assert len(sound) == N + len(MORE)
    assert description.length_words == f"its header says {N} samples, but there are {len(sound)}"


def test_an_odd_number_of_bytes_is_filled_up(read):
    x = X[:1001, :1]
    sound, description = read(wav(x, encoding="u8", after=LIST))
    assert (len(sound), description.length_words) == (1001, "")


def test_a_sample_that_is_not_complete_is_left_out_and_told(read):
    sound, description = read(wav(X, size=0) + b"\1\2\3")
    assert len(sound) == N
    assert "left out at its end: 3 bytes (one sample of all channels has 4)" in (
        description.length_words
    )
    assert description.cut_off == ""


def test_the_number_of_samples_of_aiff_may_be_wrong_too(read):
    assert read(aiff(X, frames=100))[1].length_words == (
        f"its header says 100 samples, but there are {N}"
    )
    assert read(aiff(X, frames=0))[1].length_words == ""
    assert "there are" in read(aiff(X, frames=10**6))[1].cut_off


@pytest.mark.parametrize("wrapped", [5 * 2**30 % 2**32, 2**32 - 1, 0, 44])
def test_a_file_of_more_than_4_gib(tmp_path, wrapped):
    """As programs write it whose lengths have 32 bits; nothing of it is on the disk."""
    size = 5 * 2**30
    path = tmp_path / "long.wav"
    head = chunk(b"fmt ", wave_format(2))
    path.write_bytes(b"RIFF" + struct.pack("<I", wrapped) + b"WAVE" + head)
    with path.open("ab") as file:
        file.write(b"data" + struct.pack("<I", wrapped))
        begin = file.tell()
    os.truncate(path, begin + size)
    source = FileSource(path, paced=False)
    assert source.description.found == size // 4
    assert source.duration_s == size / 4 / FS
    source.seek(size // 4 - 100)
    assert sum(map(len, source.blocks())) == 100
    source.stop()


@pytest.mark.parametrize("channels", [3, 5, 6, 7])
@pytest.mark.parametrize(
    ("make", "encoding"), [(wav, "s16"), (caf, "f32"), (wav, "s32"), (wav, "f64")]
)
def test_a_pipe_gives_whole_samples_of_many_channels(channels, make, encoding):
    """A decoder's buffer of 8 kB ends within a sample of these."""
    x = noise(0.7, channels)
    for seed in range(3):
        source = StdinSource(None, stream=Pieces(make(x, encoding=encoding), seed, 40000))
        sound = np.concatenate(list(source.blocks()))
        np.testing.assert_allclose(sound, x, atol=2.0**-15)
        assert source.description.length_words == ""


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_sound_has_the_level_of_another_decoder(read, name):
    content = PACKED[name](X)
    sound, description = read(content)
    independent, _ = decoded(content)
    assert description.length_words == ""
    assert len(sound) == len(independent)
    assert level_db(sound) == pytest.approx(level_db(independent), abs=0.01)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", PACKED)
def test_sounds_in_a_row_are_one_sound(read, name):
    first, second = PACKED[name](noise(4.0)), PACKED[name](0.5 * noise(3.0))
    alone = [read(one)[0] for one in (first, second)]
    sound, description = read(first + second, through_pipe=name not in ("mp3", "vbr"))
    both = np.concatenate(alone)
    # At the joint, MP3 has the padding of both.
    assert len(sound) == pytest.approx(len(both), abs=4000 if "mp3" in name or "vbr" in name else 0)
    assert level_db(sound) == pytest.approx(level_db(both), abs=0.05)
    assert description.cut_off == ""
    if "without" not in name:
        assert "in a row" in description.length_words or "there are" in description.length_words
    piped, of_stream = of_pipe(first + second)
    assert len(piped) == pytest.approx(len(sound), abs=2000)
    assert of_stream.cut_off == ""


@pytest.mark.parametrize("block_s", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("count", range(33000, 34200, 150))
def test_a_decoder_of_flac_does_not_read_into_the_next_stream(tmp_path, count, block_s):
    """It went on with the next frame that it found, and that was measured twice."""
    one = by_libsndfile(noise(count / FS, 1), "FLAC", "PCM_16")
    path = tmp_path / "sound"
    path.write_bytes(one + one)
    source = FileSource(path, paced=False)
    assert sum(map(len, source.blocks(block_s))) == 2 * count
    source.stop()


def test_the_same_sound_twice_is_twice_as_long(read):
    """Links of one Ogg stream then have the same number."""
    for name in ("flac", "vorbis", "opus", "flac in ogg"):
        content = PACKED[name](X)
        assert len(read(content + content)[0]) == 2 * N, name


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_files_that_were_joined_by_their_bytes(read, make):
    sound, description = read(make(X) + make(MORE))
    assert len(sound) == N + len(MORE)
    assert description.length_words == "it is 2 sounds in a row"


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", [*PACKED, "wav"])
@pytest.mark.parametrize(("fs", "channels"), [(44100, 2), (48000, 1)])
def test_what_has_another_rate_or_number_of_channels_is_told(read, name, fs, channels):
    make = {"wav": wav, **PACKED}[name]
    if name == "opus" and channels == 2:
        fs, channels = 48000, 1  # it has one rate
    alone, _ = read(make(X))
    sound, description = read(make(X) + make(MORE[:, :channels], fs))
    assert len(sound) == pytest.approx(len(alone), abs=2000)
    said = {1: "1 channel", 2: "2 channels"}[channels]
    words = f"after {len(sound)} samples it goes on at {fs} Hz with {said}, which is not measured"
    assert description.cut_off == words


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", [*PLAIN, *PACKED])
@pytest.mark.parametrize("share", [0.3, 0.71])
def test_what_is_cut_off_says_so(read, name, share):
    content = {**PLAIN, **PACKED}[name](noise(5.0))
    sound, description = read(content[: int(share * len(content))])
    assert 0 < len(sound) < 5 * FS
    assert description.cut_off


def test_mp3_counts_its_frames(read):
    """Whatever its first frame says: nothing, too little, too much."""
    x = np.concatenate([np.zeros((FS, 2)), X, 0.1 * X])  # by its first frames it is longer
    whole, _ = read(encoded(x, **VBR))
    assert len(whole) == len(x)
    content = encoded(x, **VBR)
    at = content.index(b"Xing") + 8
    for frames, cut_off in ((0, False), (10, False), (30, False), (10000, True)):
        wrong = content[:at] + struct.pack(">I", frames) + content[at + 4 :]
        sound, description = read(wrong, through_pipe=False)
        assert len(sound) == pytest.approx(len(x), abs=2000)
        assert bool(description.cut_off) == cut_off
        assert bool(description.length_words) == (frames > 0)
        assert len(of_pipe(wrong)[0]) == pytest.approx(len(x), abs=2000)
    bare, description = read(encoded(x, **VBR, write_xing=0))
    assert (len(bare) - len(x)) in range(1152, 3 * 1152)
    assert description.length_words == ""


def test_tags_of_mp3_are_no_sound(read):
    plain = encoded(X, **MP3, write_xing=0, id3v2_version=0)
    alone, _ = read(plain)
    long_tag = b"ID3\4\0\0" + bytes([0, 4, 0, 0]) + bytes(4 << 14)
    ape = b"APETAGEX" + bytes(24)
    for content in (plain + TAG, long_tag + plain, plain + ape, long_tag + bytes(3000) + plain):
        sound, description = read(content)
        assert (len(sound), description.length_words) == (len(alone), "")
    sound, description = read(plain + TAG + long_tag + plain)
    assert len(sound) == 2 * len(alone)
    junk = np.random.default_rng(3).bytes(3000)
    sound, description = read(plain[: len(plain) // 2] + junk + plain[len(plain) // 2 :])
    assert len(sound) == pytest.approx(len(alone), abs=3000)
    assert "bytes between its frames are no sound" in description.length_words


def test_flac_says_any_length(read):
    content = encoded(X)
    fields = int.from_bytes(content[21:26], "big")
    for said in (0, 1, N // 2, 3 * N):
        wrong = content[:21] + (fields >> 36 << 36 | said).to_bytes(5, "big") + content[26:]
        sound, description = read(wrong)
        assert len(sound) == N
        count = "1 sample" if said == 1 else f"{said} samples"
        words = f"its header says {count}, but there are {N}" if said else ""
        assert description.length_words == words
    id3 = b"ID3\4\0\0" + bytes([0, 0, 2, 0]) + bytes(256)
    for other in (id3 + content, content + TAG, content + bytes(5000)):
        sound, description = read(other)
        assert (len(sound), description.length_words) == (N, "")


def test_damage_ends_a_flac_stream(read):
    content = bytearray(encoded(noise(3.0)))
    content[len(content) // 2] ^= 0xFF
    sound, description = read(bytes(content))
    assert FS < len(sound) < 2 * FS
    assert f"it is damaged after {len(sound)} samples" in description.cut_off


def test_a_link_without_a_last_page_is_complete_if_another_follows(read):
    """As of a station that was switched over."""
    first, second = PACKED["vorbis"](X), PACKED["vorbis"](MORE)
    page = first.rindex(b"OggS")
    sound, description = read(first[:page] + second)
    assert len(MORE) < len(sound) < N + len(MORE)
    assert description.cut_off == ""


@pytest.mark.parametrize("subtype", ["IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32"])
def test_other_codecs_in_wave_files(read, subtype):
    x = noise(2.0, 1, 8000)
    content = by_libsndfile(x, "WAV", subtype, 8000)
    whole, description = read(content)
    assert len(whole) in range(16000, 16600)
    assert description.length_words == ""
    assert description.clips_at == 32767 / 32768
    at = content.index(b"data") + 4
    for size, words in ((0, False), (UNKNOWN, False), (1040, True)):
        wrong = content[:at] + struct.pack("<I", size) + content[at + 4 :]
        sound, description = read(wrong)
        assert len(sound) == pytest.approx(len(whole), abs=600)
        assert bool(description.length_words) == words
    assert "there are" in read(content[: len(content) // 2])[1].cut_off


def test_a_file_that_is_being_written_is_what_it_was(tmp_path):
    path = tmp_path / "sound.wav"
    path.write_bytes(wav(X, size=0, total=0))
    source = FileSource(path, paced=False)
    blocks = source.blocks(0.1)
    next(blocks)
    with path.open("ab") as more:
        more.write(samples(MORE))
    assert sum(map(len, blocks)) == N - round(0.1 * FS)
    assert source.cut_off == f"{4 * len(MORE)} bytes were written to it while it was read"
    assert CheckedFile(path).samples == N + len(MORE)
    source.stop()


@pytest.mark.parametrize("name", PLAIN)
def test_a_header_alone_has_no_samples(tmp_path, name):
    path = tmp_path / "sound"
    path.write_bytes(PLAIN[name](X[:0]))
    with pytest.raises(SourceError, match=r"sound has no samples: its length is zero"):
        FileSource(path)
    with pytest.raises(SourceError, match=r"standard input ended before one whole sample came"):
        of_pipe(PLAIN[name](X[:0]))
