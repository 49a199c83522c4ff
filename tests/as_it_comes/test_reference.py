"""The reference of ITU-R BS.1770 itself: 997 Hz at 0 dBFS in one front channel reads -3.01 LKFS."""

import numpy as np
import pytest

from tests.as_it_comes.answers import WAYS, Settings, command
from tests.as_it_comes.report import quantized, tone
from tests.data.ffmpeg_meter import by_ffmpeg
from tests.data.sound_files import by_libsndfile, encoded, wav

SINE = tone(0.0, 4.0, 997.0)
FRONT = {"left": [1, 0], "right": [0, 1]}
FORMS = {
    "WAV": lambda x: wav(quantized(x)),
    "FLAC": lambda x: encoded(quantized(x)),
    "AIFF": lambda x: by_libsndfile(quantized(x), "AIFF", "PCM_16"),
}


@pytest.mark.cases(7)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("form", "x"),
    [
        *((form, SINE[:, None] * FRONT["left"]) for form in FORMS),
        ("WAV", SINE[:, None] * FRONT["right"]),
        ("WAV", SINE[:, None]),
    ],
    ids=[*FORMS, "right", "mono"],
)
def test_it_reads_what_the_recommendation_says_in_every_way(way, form, x, tmp_path):
    path = tmp_path / "sound"
    path.write_bytes(FORMS[form](x))
    answer = WAYS[way](path, Settings("bs1770", None))
    assert answer.status == 0
    for name in ("integrated_lufs", "max_momentary_lufs", "max_short_term_lufs"):
        assert answer.summary[name] == pytest.approx(-3.01, abs=0.01), name
    assert answer.summary["true_peak_dbtp"] == pytest.approx(0.0, abs=0.05)
    assert answer.clipped_s == 0
    assert "is clipped" not in answer.words


def test_so_it_does_where_sounds_are_matched(tmp_path):
    soft, loud = (tmp_path / name for name in ("soft.wav", "loud.wav"))
    loud.write_bytes(wav(quantized(SINE[:, None])))
    soft.write_bytes(wav(quantized(0.1 * SINE[:, None])))
    status, out, err = command("match", loud, soft, "--by", "lufs")
    assert status == 0, err
    assert "-3.01" in out
    assert "20.0" in out


def test_ffmpeg_reads_the_same():
    x = np.float32(quantized(SINE[:, None] * FRONT["left"]))
    assert by_ffmpeg(x, "stereo") == pytest.approx(-3.01, abs=0.02)
