"""What is no sound file, and what is only part of one."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from amt_stream.engine import FileSource, SourceError
from amt_stream.offline.analysis import CheckedFile
from tests.data.sound_files import noise, wav

FS = 48000
POSIX = pytest.mark.skipif(os.name == "nt", reason="pipes, links and devices of POSIX")
KINDS = [
    ("wav", "WAV", "PCM_16"),
    ("wav", "WAV", "IMA_ADPCM"),
    ("aiff", "AIFF", "PCM_24"),
    ("au", "AU", "FLOAT"),
    ("w64", "W64", "PCM_16"),
    ("wav", "RF64", "PCM_32"),
    ("caf", "CAF", "PCM_16"),
    ("flac", "FLAC", "PCM_16"),
    ("ogg", "OGG", "VORBIS"),
    ("opus", "OGG", "OPUS"),
    ("mp3", "MP3", "MPEG_LAYER_III"),
]


def sound(seconds=1.0):
    return 0.1 * np.random.default_rng(1).standard_normal(round(seconds * FS))


@pytest.mark.parametrize(("ending", "format", "subtype"), KINDS)
def test_a_file_that_is_cut_off_says_so(tmp_path, ending, format, subtype):
    whole, part = tmp_path / f"whole.{ending}", tmp_path / f"part.{ending}"
    soundfile.write(whole, sound(), FS, format=format, subtype=subtype)
    content = whole.read_bytes()
    part.write_bytes(content[: len(content) * 2 // 3])
    assert CheckedFile(whole).cut_off == ""
    recording = CheckedFile(part)
    assert "there" in recording.cut_off
    assert 0 < recording.duration_s < 1.0
    source = FileSource(part, paced=False)
    assert sum(map(len, source.blocks())) == recording.samples
    assert source.note == f"part.{ending} is cut off: {recording.cut_off}"


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_length_that_was_not_known_is_no_mistake(tmp_path, length):
    """As programs write it that write into a pipe."""
    path = tmp_path / "piped.wav"
    soundfile.write(path, sound(), FS, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    for name, value in ((b"RIFF", length), (b"data", length)):
        at = content.index(name) + 4
        content[at : at + 4] = value.to_bytes(4, "little")
    path.write_bytes(content)
    assert CheckedFile(path).cut_off == ""
    assert CheckedFile(path).samples == FS


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "sound.wav"
    soundfile.write(path, sound(), FS, subtype="PCM_16")
    recording = CheckedFile(path)
    os.truncate(path, 50000)
    with pytest.raises(SourceError, match=r"changed while it was read: the last"):
        list(recording.blocks())


def test_a_file_that_grows_is_what_it_was(tmp_path):
    path = tmp_path / "sound.wav"
    soundfile.write(path, sound(), FS, subtype="PCM_16")
    recording = CheckedFile(path)
    soundfile.write(path, sound(1.5), FS, subtype="PCM_16")
    assert sum(map(len, recording.blocks())) == FS


@pytest.mark.parametrize("fs", [1, 7, 999, 768001, 2147483647])
def test_a_rate_that_no_sound_has_is_refused(tmp_path, fs):
    path = tmp_path / "sound.wav"
    soundfile.write(path, np.zeros(100), fs)
    with pytest.raises(SourceError, match=f"rate of {fs} Hz: give a sound of 1000 to 768000 Hz"):
        FileSource(path)


def test_a_header_that_promises_more_than_its_bytes_hold_is_no_reason_for_zeros(tmp_path):
    """libsndfile would give them for days."""
    path = tmp_path / "sound.w64"
    soundfile.write(path, sound(0.1), FS, format="W64", subtype="GSM610")
    whole = CheckedFile(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 20
    for length in (b"\x7f\xff\xff\xff", b"\x00\x00\x01\x00"):
        content[at : at + 4] = length
        path.write_bytes(content)
        recording = CheckedFile(path)
        assert recording.samples == whole.samples
    assert f"samples, but there are {whole.samples}" in recording.cut_off


@pytest.mark.parametrize("bits", [1, 7])
def test_samples_of_a_few_bits_are_refused(tmp_path, bits):
    """libsndfile takes each byte for a sample of eight."""
    path = tmp_path / "sound.wav"
    soundfile.write(path, sound(0.1), FS, subtype="PCM_U8")
    content = bytearray(path.read_bytes())
    content[34] = bits
    path.write_bytes(content)
    with pytest.raises(SourceError, match=f"has samples of {bits} bit: give one of 8 bits or more"):
        FileSource(path)


@POSIX
def test_what_is_no_file_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    (tmp_path / "sound.raw").write_bytes(bytes(1000))
    said = {
        tmp_path / "none.wav": "there is no file",
        tmp_path / "pipe.wav": "is a named pipe: give a sound file",
        Path("/dev/zero"): "is a device: give a sound file",
        tmp_path: "is a folder: give a sound file",
        tmp_path / "loop.wav": "Too many levels of symbolic links",
        tmp_path / f"{'n' * 300}.wav": "File name too long",
        tmp_path / "sound.raw": "is raw PCM, whose rate is unknown",
        Path("/proc/self/status"): "not a sound file",
    }
    for path, words in said.items():
        with pytest.raises(SourceError, match=words):
            FileSource(path)


@POSIX
def test_a_folder_that_may_not_be_searched(tmp_path):
    folder, user = tmp_path / "closed", os.geteuid()
    folder.mkdir(mode=0)
    if user == 0:  # who may search any folder
        os.seteuid(65534)
    try:
        with pytest.raises(SourceError, match="cannot be read: Permission denied"):
            FileSource(folder / "a.wav")
    finally:
        os.seteuid(user)


def test_a_header_without_channels_or_rate_is_refused_in_a_sentence(tmp_path):
    for place, size in ((22, 2), (24, 4)):
        content = bytearray(wav(noise(0.1)))
        content[place : place + size] = bytes(size)
        path = tmp_path / "none.wav"
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"none\.wav is not a sound file that can be read: "):
            FileSource(path)
