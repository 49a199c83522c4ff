"""What files say of their sound: encoding, ends of range and layout; samples by another decoder."""

import io
import os

import av
import numpy as np
import pytest
import soundfile

from amt_stream.engine import FileSource, SourceError
from amt_stream.engine.readers import av_link
from amt_stream.meters.source_description import SourceDescription
from tests.data.sound_files import (
    FS,
    aiff,
    au,
    by_libsndfile,
    caf,
    core_audio_layout,
    decoded,
    encoded,
    noise,
    rf64,
    w64,
    wav,
)

X = noise(0.3, rms=0.2)
ENDS = {8: 127 / 128, 12: 2047 / 2048, 16: 32767 / 32768, 24: 32767 / 32768, 32: 32767 / 32768}


@pytest.fixture
def read(tmp_path):
    """The samples of a file and its description."""

    def read(content):
        path = tmp_path / "sound"
        path.write_bytes(content)
        source = FileSource(path, paced=False)
        sound = np.concatenate(list(source.blocks()))
        source.stop()
        return sound, source.description

    return read


@pytest.mark.parametrize(
    ("content", "words", "clips_at"),
    [
        (wav(X, encoding="u8"), "PCM 8 bit", ENDS[8]),
        (wav(X), "PCM 16 bit", ENDS[16]),
        (wav(X, encoding="s24"), "PCM 24 bit", ENDS[24]),
        (wav(X, encoding="s32"), "PCM 32 bit", ENDS[32]),
        (wav(X, encoding="f32"), "float", None),
        (wav(X, encoding="f64"), "double", None),
        (wav(X, encoding="ulaw"), "mu-law", 32124 / 32768),
        (wav(X, encoding="alaw"), "A-law", 32256 / 32768),
        (wav(X, mask=3, valid=12), "PCM 12 bit", ENDS[12]),
        (rf64(X, encoding="f32"), "float", None),
        (w64(X, encoding="s24"), "PCM 24 bit", ENDS[24]),
        (aiff(X, encoding="s8"), "PCM 8 bit", ENDS[8]),
        (aiff(X, encoding="s24"), "PCM 24 bit", ENDS[24]),
        (aiff(X, code=b"sowt"), "PCM 16 bit", ENDS[16]),
        (aiff(X, encoding="f32", code=b"fl32"), "float", None),
        (aiff(X, encoding="f64", code=b"fl64"), "double", None),
        (caf(X, encoding="s24"), "PCM 24 bit", ENDS[24]),
        (caf(X, encoding="f32", big=False), "float", None),
        (caf(X, encoding="alaw"), "A-law", 32256 / 32768),
        (au(X, encoding="ulaw"), "mu-law", 32124 / 32768),
        (au(X, encoding="f64"), "double", None),
        (encoded(X), "FLAC 16 bit", ENDS[16]),
        (by_libsndfile(X, "FLAC", "PCM_S8"), "FLAC 8 bit", ENDS[8]),
        (by_libsndfile(X, "FLAC", "PCM_24"), "FLAC 24 bit", ENDS[24]),
        (by_libsndfile(X, "CAF", "ALAC_16"), "ALAC 16 bit", ENDS[16]),
        (by_libsndfile(X, "OGG", "VORBIS"), "Vorbis", None),
        (encoded(X, container="ogg", codec="libopus"), "Opus", None),
        (encoded(X, container="mp3", codec="libmp3lame"), "MP3", None),
        (encoded(X, container="mp2", codec="mp2"), "MPEG layer II", None),
        (encoded(X, container="mp4", codec="aac"), "AAC", None),
        (encoded(X, container="mp4", codec="alac"), "ALAC", ENDS[16]),
        (encoded(X, container="ac3", codec="ac3"), "AC-3", None),
        (encoded(X, container="matroska", codec="libopus"), "Opus", None),
        (encoded(X, container="mov", codec="pcm_s24le"), "PCM 24 bit", ENDS[24]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_encodings_and_their_ends_of_range(read, content, words, clips_at):
    sound, description = read(content)
    independent, fs = decoded(content)
    assert (description.encoding, description.clips_at) == (words, clips_at)
    assert description.has_offset
    assert fs == FS
    count = min(len(sound), len(independent))
    assert count > 0.8 * len(X)
    if words in ("Vorbis", "Opus"):  # by another decoder
        assert np.std(sound) == pytest.approx(np.std(independent), rel=0.005)
    else:
        np.testing.assert_allclose(sound[:count], independent[:count], atol=1.1 * 2.0**-15)


@pytest.mark.parametrize("encoding", ["u8", "s16", "s24", "s32", "ulaw", "alaw"])
def test_the_end_of_a_range_is_what_the_largest_sample_reads(read, encoding):
    """A converter that clips gives this value."""
    full = np.tile([1.0, -1.0], (480, 1))
    sound, description = read(wav(full, encoding=encoding))
    largest = float(sound.max())
    assert largest >= description.clips_at
    assert largest == pytest.approx(description.clips_at, abs=2.0**-15)
    assert float(sound.min()) <= -description.clips_at


MASKS = {
    "2.1 (L R LFE)": 0x00B,
    "3.1 (L R C LFE)": 0x00F,
    "4.0 (L R C Cs)": 0x107,
    "4.1 (L R C LFE Cs)": 0x10F,
    "quad (L R Ls Rs)": 0x033,
    "5.1 (L R C LFE Ls Rs)": 0x60F,
    "6.1 (L R C LFE Cs Ls Rs)": 0x70F,
    "7.1 (L R C LFE Lrs Rrs Lss Rss)": 0x63F,
    "L R C LFE Ls Rs Lc Rc": 0x0FF,
    "5.1.4 (L R C LFE Ls Rs Ltf Rtf Ltr Rtr)": 0x2D03F,
}


@pytest.mark.parametrize("layout", MASKS)
def test_masks_of_wave_files(read, layout):
    mask = MASKS[layout]
    x = noise(0.02, mask.bit_count())
    for make in (wav, rf64, w64):
        _, description = read(make(x, mask=mask))
        assert (str(description.layout), description.layout.origin) == (layout, "source")
    for other in (0, 3):  # which says nothing, or not of all channels
        _, description = read(wav(noise(0.02, 6), mask=other))
        assert str(description.layout) == "5.1 (L R C LFE Ls Rs)"
        assert description.layout.origin == "usual"


@pytest.mark.parametrize("make", [caf, aiff])
@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("5.1 (L R C LFE Ls Rs)", core_audio_layout(121 << 16 | 6)),
        ("5.1 (L R Ls Rs C LFE)", core_audio_layout(122 << 16 | 6)),
        ("5.1 (L C R Ls Rs LFE)", core_audio_layout(123 << 16 | 6)),
        ("5.1 (C L R Ls Rs LFE)", core_audio_layout(124 << 16 | 6)),
        ("2.1 (L R LFE)", core_audio_layout(133 << 16 | 3)),
        ("7.1 (L R C LFE Lss Rss Lrs Rrs)", core_audio_layout(128 << 16 | 8)),
        ("5.1 (L R C LFE Ls Rs)", core_audio_layout(1 << 16, 0x3F)),
        ("5.1 (C L R Ls Rs LFE)", core_audio_layout(0, 0, (3, 1, 2, 5, 6, 4))),
        ("7.1 (L R C LFE Lss Rss Lrs Rrs)", core_audio_layout(0, 0, (1, 2, 3, 4, 5, 6, 33, 34))),
        ("L R ?", core_audio_layout(0, 0, (1, 2, 0xFFFFFFFF))),
    ],
)
def test_layouts_of_core_audio(read, make, layout, said):
    channels = len(layout.partition("(")[2].rstrip(")").split() or layout.split())
    _, description = read(make(noise(0.02, channels), chan=said))
    assert (str(description.layout), description.layout.origin) == (layout, "source")


def test_a_layout_of_another_number_of_channels_is_none(read):
    for said in (core_audio_layout(121 << 16 | 6), core_audio_layout(147 << 16 | 3), b"\1\2\3"):
        _, description = read(caf(noise(0.02, 3), chan=said))
        assert (str(description.layout), description.layout.origin) == ("3.0 (L R C)", "usual")


ORDERS = {
    ("OGG", "VORBIS"): {
        3: "3.0 (L C R)",
        4: "quad (L R Ls Rs)",
        5: "5.0 (L C R Ls Rs)",
        6: "5.1 (L C R Ls Rs LFE)",
        7: "6.1 (L C R Ls Rs Cs LFE)",
        8: "7.1 (L C R Lss Rss Lrs Rrs LFE)",
    },
    ("FLAC", "PCM_16"): {
        3: "3.0 (L R C)",
        5: "5.0 (L R C Ls Rs)",
        6: "5.1 (L R C LFE Ls Rs)",
        7: "6.1 (L R C LFE Cs Ls Rs)",
        8: "7.1 (L R C LFE Lrs Rrs Lss Rss)",
    },
    ("CAF", "ALAC_16"): {
        3: "3.0 (C L R)",
        6: "5.1 (C L R Ls Rs LFE)",
        8: "C Lc Rc L R Ls Rs LFE",
    },
}
ORDERS["OGG", "OPUS"] = ORDERS["OGG", "VORBIS"]


@pytest.mark.parametrize("form", ORDERS)
def test_the_order_of_a_format_is_that_of_its_sound(read, form):
    """A tone in one channel is in that channel of what is read."""
    for channels, layout in ORDERS[form].items():
        tone = np.sin(2 * np.pi * 440 * np.arange(FS // 2) / FS)
        positions = layout.rstrip(")").rpartition("(")[2].split()
        for loud in (0, channels - 1):
            x = np.zeros((len(tone), channels))
            x[:, loud] = tone * (0.5 if positions[loud] != "LFE" else 0.1)
            sound, description = read(by_libsndfile(x, *form))
            assert (str(description.layout), description.layout.origin) == (layout, "source")
            assert int(np.argmax(np.std(sound[4800:], axis=0))) == loud


def test_flac_may_say_a_layout_in_its_comment(read, tmp_path):
    x = noise(0.1, 6)
    content = by_libsndfile(x, "FLAC", "PCM_16")
    words = b"WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x107"
    four = by_libsndfile(x[:, :4], "FLAC", "PCM_16")
    for flac, mask, layout in ((content, b"0x60F", "5.1"), (four, b"0x107", "4.0 (L R C Cs)")):
        comment = words.split(b"=")[0] + b"=" + mask
        block = bytes(4) + (1).to_bytes(4, "little") + len(comment).to_bytes(4, "little") + comment
        changed = flac[:4] + b"\0" + flac[5:42] + b"\4" + len(block).to_bytes(3, "big") + block
        rest = flac[42:] if not flac[4] & 0x80 else b""
        _, description = read(changed + rest)
        assert str(description.layout).startswith(layout)


@pytest.mark.parametrize(
    "content",
    [
        encoded(noise(0.2, 6), container="mp4", codec="aac"),
        encoded(noise(0.2, 6), container="ac3", codec="ac3"),
        encoded(noise(0.2, 6), container="matroska", codec="flac"),
        encoded(noise(0.2, 6), container="caf", codec="pcm_s16le"),
        encoded(noise(0.2, 6), container="wav", codec="pcm_s16le"),
        encoded(noise(0.2, 6), container="w64", codec="pcm_s16le"),
        encoded(noise(0.2, 6), container="flac", codec="flac"),
    ],
)
def test_layouts_as_another_program_writes_and_reads_them(read, content):
    _, description = read(content)
    with av.open(io.BytesIO(content)) as file:
        names = [one.name for one in file.streams.audio[0].codec_context.layout.channels]
    known = {"FL": "L", "FR": "R", "FC": "C", "LFE": "LFE"}
    known |= {"BL": "Ls", "BR": "Rs", "SL": "Ls", "SR": "Rs"}
    assert [known[name] for name in names] == [*description.layout.positions]
    assert description.layout.origin == "source"


@pytest.mark.parametrize(
    ("layout", "channels"), [("mono", 1), ("2.1", 3), ("6.1", 7), ("7.1", 8), ("7.1.4", 12)]
)
@pytest.mark.parametrize("codec", ["wavpack", "pcm_s16le"])
def test_any_number_of_planes_or_channels_is_read(read, codec, layout, channels):
    x = np.linspace(-0.5, 0.5, channels)[None] + noise(0.2, channels, rms=0.01)
    sound, description = read(encoded(x, container="matroska", codec=codec, layout=layout))
    assert description.layout.channels == channels
    np.testing.assert_allclose(sound, x, atol=2.0**-7)  # FFmpeg writes WavPack in 8 bits


def test_a_format_of_the_extra_is_named_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(av_link, "is_installed", lambda: False)
    for name, (container, codec) in (
        ("MP4 or M4A", ("mp4", "aac")),
        ("Matroska or WebM", ("matroska", "aac")),
        ("AAC", ("adts", "aac")),
        ("AC-3", ("ac3", "ac3")),
        ("an MPEG transport stream", ("mpegts", "aac")),
    ):
        path = tmp_path / "sound"
        path.write_bytes(encoded(X, container=container, codec=codec))
        with pytest.raises(SourceError, match=f"it is {name}, which the extra `files` reads: pip"):
            FileSource(path)
    path.write_bytes(encoded(X, container="wav", codec="libmp3lame"))
    assert FileSource(path).channels == 2  # libsndfile reads MP3 in WAVE


@pytest.mark.parametrize("seed", range(6))
def test_no_decoder_guesses(tmp_path, seed):
    """FFmpeg would find MP3 in any bytes."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "sound"
    path.write_bytes(rng.normal(0, 3000, 50000).astype("<i2").tobytes())
    with pytest.raises(SourceError, match="is not a sound file that can be read"):
        FileSource(path)


def test_a_description_comes_back_from_a_header():
    for content in (wav(X, mask=3), encoded(X)):
        stream = io.BytesIO(content)
        assert soundfile.info(stream).channels == 2
    described = SourceDescription.of_device(2)
    assert SourceDescription.from_dict(described.to_dict(), 2) == described


def test_the_folder_of_the_program_is_not_read(tmp_path, monkeypatch):
    """libsndfile looks there for the second half of an SD2 file that has no name."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sound.wav"
    path.write_bytes(wav(X))
    (tmp_path / "._").write_bytes(os.urandom(400))
    assert FileSource(path).channels == 2
