"""A file continues at any sample with the very samples that follow there."""

import numpy as np
import pytest

from amt_stream.engine import FileSource, SourceError
from amt_stream.offline.analysis import CheckedFile
from tests.data.sound_files import FS, aiff, au, by_libsndfile, caf, encoded, w64, wav

SECONDS = 9


def changing(channels=2, fs=FS):
    """Noise and tones that come and go, with silence: what codecs treat in different ways."""
    rng = np.random.default_rng(7)
    t = np.arange(SECONDS * fs) / fs
    slow, fast = np.sin(2 * np.pi * 0.37 * t), np.sin(2 * np.pi * 3.1 * t)
    envelope = (0.5 + 0.5 * slow) ** 3 * (fast > -0.2)
    left = 0.3 * envelope * np.sin(2 * np.pi * (200 + 50 * np.sin(0.7 * t)) * t)
    right = 0.1 * envelope * rng.standard_normal(len(t)) + 0.2 * np.sin(2 * np.pi * 1234 * t)
    x = np.stack([left + 0.02 * rng.standard_normal(len(t)), right][:channels], 1)
    x[4 * fs : 5 * fs] = 0
    return x


X = changing()
SPEECH = changing(1, 8000)
MP3 = {"container": "mp3", "codec": "libmp3lame"}
SOUNDS = {
    "wav": lambda: wav(X),
    "wav with a wrong length": lambda: wav(X, size=1000),
    "aiff": lambda: aiff(X, encoding="f64", code=b"fl64"),
    "w64": lambda: w64(X, encoding="s24"),
    "caf": lambda: caf(X),
    "au": lambda: au(X, encoding="ulaw"),
    "wav joined": lambda: wav(X) + wav(X),
    "flac": lambda: encoded(X),
    "flac of a pipe": lambda: encoded(X, to="pipe"),
    "flac joined": lambda: encoded(X) + encoded(X),
    "flac in ogg": lambda: encoded(X, container="ogg", codec="flac"),
    "vorbis": lambda: by_libsndfile(X, "OGG", "VORBIS"),
    "vorbis chained": lambda: 2 * by_libsndfile(X, "OGG", "VORBIS"),
    "opus": lambda: encoded(X, container="ogg", codec="libopus", rate=64000),
    "mp3": lambda: encoded(X, **MP3, rate=128000),
    "mp3 of a low rate": lambda: encoded(X, **MP3, rate=32000),
    "mp3, mono": lambda: encoded(SPEECH, 8000, **MP3, rate=8000),
    "mp3 joined": lambda: 2 * encoded(X, **MP3),
    "mp2": lambda: encoded(X, container="mp2", codec="mp2"),
    "adpcm": lambda: by_libsndfile(X, "WAV", "MS_ADPCM"),
    "gsm": lambda: by_libsndfile(SPEECH, "WAV", "GSM610", 8000),
    "g721": lambda: by_libsndfile(SPEECH, "AU", "G721_32", 8000),
    "alac": lambda: by_libsndfile(X, "CAF", "ALAC_16"),
    "voc": lambda: by_libsndfile(X, "VOC", "PCM_16"),
    "m4a": lambda: encoded(X, container="mp4", codec="aac"),
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", SOUNDS)
def test_it_continues_with_the_samples_that_follow(tmp_path, name):
    path = tmp_path / "sound"
    path.write_bytes(SOUNDS[name]())
    recording = CheckedFile(path)
    whole = np.concatenate(list(recording.blocks()))
    rng = np.random.default_rng(1)
    for at in (0, 1, *rng.integers(2, len(whole) - 1, 5), len(whole) - 1):
        source = FileSource(path, paced=False)
        source.seek(int(at))
        blocks, count = [], 0
        for block in source.blocks(0.05):
            blocks.append(block)
            count += len(block)
            if count > 5000:
                break
        source.stop()
        np.testing.assert_array_equal(np.concatenate(blocks), whole[at : at + count])
    begin, stop = sorted(int(one) for one in rng.integers(0, len(whole), 2))
    part = np.concatenate(list(recording.between(begin, stop + 1).blocks()))
    np.testing.assert_array_equal(part, whole[begin : stop + 1])


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ["wav", "vorbis chained", "mp3", "m4a"])
def test_it_does_not_continue_behind_its_end(tmp_path, name):
    path = tmp_path / "sound"
    path.write_bytes(SOUNDS[name]())
    length = CheckedFile(path).samples
    source = FileSource(path, paced=False)
    with pytest.raises(SourceError, match=f"has {length} samples, and {length + 9} were measured"):
        source.seek(length + 9)
    source.stop()


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ["wav", "vorbis chained", "mp3", "m4a", "adpcm"])
def test_it_begins_again_after_its_end(tmp_path, name):
    path = tmp_path / "sound"
    path.write_bytes(SOUNDS[name]())
    whole = np.concatenate(list(CheckedFile(path).blocks()))
    source = FileSource(path, paced=False, loop=True)
    blocks, count = [], 0
    for block in source.blocks(0.5):
        blocks.append(block)
        count += len(block)
        if count > len(whole) + 10000:
            break
    source.stop()
    np.testing.assert_array_equal(
        np.concatenate(blocks)[: len(whole) + 10000], np.concatenate([whole, whole[:10000]])
    )
