"""A stream with a header is read as what it is, as its bytes come; raw PCM has none."""

import io
import os
import threading
from functools import cache, partial

import numpy as np
import pytest

from amt_stream.engine import FileSource, SourceError, StdinSource
from amt_stream.engine.readers.source_bytes import PipeBytes
from tests.data.sound_files import (
    FS,
    UNKNOWN,
    Pieces,
    aiff,
    au,
    by_libsndfile,
    caf,
    chunk,
    encoded,
    noise,
    rf64,
    samples,
    w64,
    wav,
)

POSIX = pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
X = noise(2.0)
STREAMS = {
    "wav": partial(wav, size=UNKNOWN, total=UNKNOWN),
    "wav with tags": partial(wav, size=UNKNOWN, before=chunk(b"LIST", b"INFOISFT\4\0\0\0abc\0")),
    "float wav": partial(wav, encoding="f32", mask=3, size=0, total=0),
    "rf64": partial(rf64, size=0),
    "bw64": partial(rf64, magic=b"BW64", encoding="s24"),
    "w64": partial(w64, size=0),
    "aiff": aiff,
    "caf": partial(caf, size=-1),
    "au": partial(au, size=UNKNOWN),
    "flac": partial(encoded, to="pipe"),
    "vorbis": partial(by_libsndfile, format="OGG", subtype="VORBIS"),
    "opus": partial(encoded, container="ogg", codec="libopus"),
    "flac in ogg": partial(encoded, container="ogg", codec="flac"),
    "mp3": partial(encoded, container="mp3", codec="libmp3lame"),
    "mp3 of a pipe": partial(encoded, container="mp3", codec="libmp3lame", to="pipe"),
    "adpcm": partial(by_libsndfile, format="WAV", subtype="MS_ADPCM"),
    "matroska": partial(encoded, container="matroska", codec="aac"),
    "adts": partial(encoded, container="adts", codec="aac"),
    "ac3": partial(encoded, container="ac3", codec="ac3"),
    "fragments of mp4": partial(
        encoded, container="mp4", codec="aac", movflags="frag_keyframe+empty_moov"
    ),
}
LIVE_S = {"vorbis": 0.6, "opus": 1.1, "flac in ogg": 1.1, "fragments of mp4": 0.3}
"""How long the last sound may wait in a stream whose pages are that long; else 0.2 s."""


@cache
def stream(name):
    return STREAMS[name](X)


def all_of(source):
    return np.concatenate([np.zeros((0, source.channels), np.float32), *source.blocks()])


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_gives_what_its_file_gives(tmp_path, name):
    """In pieces of any size."""
    path = tmp_path / "sound"
    path.write_bytes(stream(name))
    file = FileSource(path, paced=False)
    expected = all_of(file)
    for seed, most in ((0, 30), (1, 3000), (2, 60000)):
        source = StdinSource(None, stream=Pieces(stream(name), seed, most))
        assert source.has_header
        assert (source.fs, source.channels) == (FS, 2)
        np.testing.assert_array_equal(all_of(source), expected)
        assert source.description.encoding == file.description.encoding
        assert source.description.layout == file.description.layout
        assert (source.cut_off, source.description.kind) == ("", "stream")


class LivePipe:
    """A pipe into which a test writes; `heard` counts the samples that a source gives."""

    def __init__(self):
        read_end, write_end = os.pipe()
        self.stream = os.fdopen(read_end, "rb", buffering=0)
        self._writing = os.fdopen(write_end, "wb", buffering=0)
        self.heard = 0
        self._more = threading.Condition()
        self.ended = threading.Event()

    def write(self, content):
        self._writing.write(content)

    def close(self):
        self._writing.close()

    def deliver(self, block, lost=0):
        with self._more:
            if block is None:
                self.ended.set()
            else:
                self.heard += len(block)
            self._more.notify_all()

    def wait_for(self, count):
        with self._more:
            assert self._more.wait_for(lambda: self.heard >= count, 30), (self.heard, count)


@POSIX
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_heard_as_it_comes(name):
    """Its writer pauses, and goes on; it does not end."""
    content, pipe = stream(name), LivePipe()
    part = int(0.75 * len(content))
    writer = threading.Thread(target=pipe.write, args=(content[:part],))
    writer.start()
    source = StdinSource(None, stream=pipe.stream)
    source.start(pipe.deliver)
    pipe.wait_for(int((1.5 - LIVE_S.get(name, 0.2)) * FS))
    writer.join()
    assert pipe.heard < 1.6 * FS
    assert not pipe.ended.is_set()
    pipe.write(content[part:])
    pipe.close()
    assert pipe.ended.wait(30)
    assert pipe.heard == pytest.approx(len(X), abs=3000)
    source.stop()
    pipe.stream.close()
    assert source.error is None


@POSIX
@pytest.mark.parametrize("name", ["wav", "flac", "opus", "mp3", "matroska"])
def test_a_stream_that_pauses_can_be_stopped(name):
    content, pipe = stream(name), LivePipe()
    writer = threading.Thread(target=pipe.write, args=(content[: int(0.75 * len(content))],))
    writer.start()
    source = StdinSource(None, stream=pipe.stream)
    source.start(pipe.deliver)
    pipe.wait_for(FS // 10)
    writer.join()
    source.stop()
    assert pipe.ended.is_set() or source.error is None
    pipe.close()
    pipe.stream.close()


@pytest.mark.parametrize("name", sorted({*STREAMS} - {"adts", "ac3", "mp3 of a pipe"}))
@pytest.mark.parametrize("count", [1, 3, 11, 20])
def test_what_ends_in_its_header_is_one_sentence(name, count):
    with pytest.raises(SourceError) as raised:
        all_of(StdinSource(None, stream=Pieces(stream(name)[:count])))
    assert str(raised.value).startswith("standard input ")


def test_what_does_not_begin_is_one_sentence():
    with pytest.raises(SourceError, match="standard input ended before one whole sample came"):
        StdinSource(None, stream=io.BytesIO())


def test_what_a_header_says_is_not_to_be_contradicted():
    def said(*arguments, name="wav", **more):
        with pytest.raises(SourceError) as raised:
            all_of(StdinSource(*arguments, stream=Pieces(stream(name)), **more))
        return str(raised.value)

    header = "standard input has a header, which says PCM 16 bit, 48000 Hz, 2 channels: leave out "
    assert said("s16le") == f"{header}--pcm s16le (in Python, give format=None)"
    assert said(None, 44100) == f"{header}--samplerate 44100"
    assert said(None, 44100, 1) == f"{header}--samplerate 44100 and --channels 1"
    assert said(None, 44100, 1, or_other=True) == f"{header}--samplerate 44100"
    assert "which says MP3, 48000 Hz" in said("f32le", name="mp3")
    assert "which says AAC, 48000 Hz" in said("f32le", name="adts")
    source = StdinSource(None, FS, 2, Pieces(stream("flac")))
    assert len(all_of(source)) == len(X)


@pytest.mark.parametrize(
    "magic",
    [b"RIFF", b"RF64", b"BW64", b"RIFX", b"FORM", b"caff", b"fLaC", b"OggS", b"ID3", b".snd"],
)
def test_what_begins_like_a_file_is_pcm_only_if_it_is_said(magic):
    """It may be an accident; as PCM a file would be 30 dB too loud."""
    content = magic + samples(X)
    with pytest.raises(SourceError, match=r"begins with b|cannot be read"):
        StdinSource(None, stream=Pieces(content))
    source = StdinSource("s16le", stream=Pieces(content))
    assert len(all_of(source)) == len(content) // 4


@pytest.mark.parametrize("first", [b"\xff\xff", b"\xff\xfb\x90\x00", b"\xff\xf1\x50\x80", b"\x0bw"])
def test_pcm_that_begins_like_a_frame_is_pcm(first):
    """-1 and -1025 are common in quiet sound."""
    content = first * (4 // len(first)) + samples(0.01 * X)
    source = StdinSource(None, stream=Pieces(content))
    assert not source.has_header
    assert len(all_of(source)) == len(X) + 1


@pytest.mark.parametrize("sample", [0, -1, 1, -1025, 32767, 0x4952, 0x6146])
def test_steady_pcm_is_pcm(sample):
    content = np.full((FS, 2), sample, "<i2").tobytes()
    if content[:4] in (b"RIRI", b"FaFa"):  # neither is a magic number
        assert sample in (0x4952, 0x6146)
    source = StdinSource(None, stream=Pieces(content))
    assert (source.has_header, len(all_of(source))) == (False, FS)


@pytest.mark.parametrize("codec", ["aac", "alac"])
def test_what_takes_going_back_is_refused(codec):
    content = encoded(X, container="mp4", codec=codec)
    with pytest.raises(SourceError, match="it is MP4 or M4A, and its index is behind its sound"):
        StdinSource(None, stream=Pieces(content))


@POSIX
def test_a_refusal_does_not_wait_for_the_end():
    """Of an MP4 whose index comes last."""
    pipe = LivePipe()
    pipe.write(encoded(X, container="mp4", codec="aac")[:2000])
    with pytest.raises(SourceError, match="its index is behind its sound"):
        StdinSource(None, stream=pipe.stream)
    pipe.close()
    pipe.stream.close()


@pytest.mark.parametrize("format", ["NIST", "VOC", "PAF", "AVR"])
def test_formats_that_only_files_have_are_no_pcm(format):
    with pytest.raises(SourceError, match="cannot be read from a pipe: give the file"):
        StdinSource(None, stream=Pieces(by_libsndfile(X, format, "PCM_16")))


@POSIX
def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(TimeoutError, match="no program has opened it"):
        PipeBytes.of_path(path)
    writer = threading.Thread(target=path.write_bytes, args=(stream("flac"),))
    writer.start()
    source = StdinSource(None, stream=PipeBytes.of_path(path), name="pipe")
    assert len(all_of(source)) == len(X)
    writer.join()
    source.stop()


def test_memory_does_not_grow_with_a_stream():
    """Of bytes that were read, some are kept for decoders that go back a little."""
    content = wav(noise(20.0), size=0)
    stream = PipeBytes(Pieces(content, most=9000))
    source = StdinSource(None, stream=stream)
    most = max(len(stream._held) for _ in source.blocks())
    assert most < 300_000 < len(content) / 10


def test_a_refused_stream_is_left_alone():
    make = partial(StdinSource, None, stream=io.BytesIO(b"no sound at all, but long enough" * 9))
    assert not make().has_header
