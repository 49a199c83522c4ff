"""Logos that can be drawn are drawn right, and others are refused before anything is written."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from amt_stream.sessions.report import LogoError
from amt_stream.sessions.report.logo import LARGEST, LARGEST_SIDE, logo_image
from tests.sessions.report.pictures import BROKEN, WHOLE, broken, png, svg


def embedded(path):
    """The kind and the bytes of a logo in a page."""
    found = re.fullmatch(
        r'<img class="logo" alt="Q" src="data:image/([^;]*);base64,([^"]*)">', logo_image(path, "Q")
    )
    return found[1], base64.b64decode(found[2])


@pytest.mark.parametrize("name", WHOLE)
def test_a_picture_is_drawn_right(name, tmp_path):
    path = tmp_path / "logo"
    path.write_bytes(WHOLE[name])
    kind, data = embedded(path)
    picture = Image.open(io.BytesIO(data))
    picture.load()
    assert (kind, getattr(picture, "n_frames", 1)) == ("png", 1)
    if name in ("16 bits of color", "interlaced", "1 bit"):
        return
    gray = np.asarray(picture, float)
    gray = gray / 257 if picture.mode.startswith("I") else np.asarray(picture.convert("L"), float)
    assert gray.shape == (30, 60)
    # JPEG rounds, and CMYK has no exact black.
    np.testing.assert_allclose(gray[15, 1:], np.linspace(0, 255, 60)[1:], atol=4)


def test_one_that_stands_still_is_embedded_as_it_is(tmp_path):
    for data in (WHOLE["8 bits"], WHOLE["16 bits of gray"], svg()):
        (tmp_path / "logo").write_bytes(data)
        assert embedded(tmp_path / "logo")[1] == data


def test_a_turned_photograph_stands_upright(tmp_path):
    picture = Image.new("RGB", (60, 30), "white")
    turned = picture.getexif()
    turned[0x0112] = 6  # the camera was held upright
    picture.save(tmp_path / "logo.jpg", exif=turned)
    assert Image.open(io.BytesIO(embedded(tmp_path / "logo.jpg")[1])).size == (30, 60)


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", BROKEN)
def test_one_that_cannot_be_drawn_is_refused_in_a_sentence(name, tmp_path):
    data, why = broken(name)
    (tmp_path / "logo").write_bytes(data)
    with pytest.raises(LogoError) as refusal:
        logo_image(tmp_path / "logo")
    assert why in str(refusal.value)
    assert str(refusal.value).startswith(f"the logo {tmp_path / 'logo'} ")
    assert len(str(refusal.value)) < 400


def test_the_largest(tmp_path):
    path = tmp_path / "logo.png"
    path.write_bytes(png(LARGEST_SIDE, 2))
    assert embedded(path)[0] == "png"
    assert (LARGEST, LARGEST_SIDE) == (1 << 20, 4096)  # as docs/sessions.md says


@pytest.mark.cases(1)
@pytest.mark.parametrize("ending", ["html", "pdf"])
def test_nothing_is_written_of_a_report_with_such_a_logo(ending, forks, log, tmp_path):
    for name in ("PNG cut off", "SVG of no width", "a bomb"):
        (tmp_path / "logo").write_bytes(broken(name)[0])
        out = tmp_path / f"report.{ending}"
        done = forks.run("report", log, "--out", out, "--logo", tmp_path / "logo")
        (line,) = done.stderr.decode().splitlines()
        assert done.returncode == 1
        assert line.startswith("amt-stream: the logo ")
        assert broken(name)[1] in line
        assert not out.exists()
