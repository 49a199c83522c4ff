"""The logo of a company, embedded in a page."""

import base64
import io
import struct
import zlib
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, small_content
from amt_stream.core.safe_text import plain, sentence
from amt_stream.sessions.report.png import refuse_incomplete
from amt_stream.sessions.report.svg import NotDrawn, is_svg, refuse_undrawn

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
LARGEST = 1 << 20
"""Largest logo in bytes."""

LARGEST_SIDE = 4096
"""Largest width and height in pixels: a small file can have so many that they fill the memory."""

DAMAGED: tuple[type[Exception], ...] = (OSError, SyntaxError, ValueError, LookupError, TypeError)
DAMAGED += EOFError, struct.error, zlib.error
"""What Pillow and the check of rows raise for a damaged file."""

KINDS = "a PNG, JPEG or SVG file"


class LogoError(Refusal, ValueError):
    """A logo cannot be read or drawn."""


def logo_image(path: str | Path, company: str = "") -> str:
    """The logo as HTML that contains it; browsers run no scripts in such images.

    Raises LogoError for a file of another kind, larger than 1 MiB, or that cannot be drawn.
    """
    try:
        data = small_content(Path(path), LARGEST)
    except NotThatFile as error:
        raise LogoError(f"the logo {path} {error}: give {KINDS}") from error
    kind = "png"
    try:
        if data.startswith((PNG, JPEG)):
            data = _as_png(data)
        elif is_svg(data):
            refuse_undrawn(data)
            kind = "svg+xml"
        else:
            raise LogoError(f"the logo {path} is none of a PNG, JPEG and SVG file: give one")
    except NotDrawn as why:
        raise LogoError(f"the logo {path} cannot be drawn: {sentence(why)}") from why
    words = escape(plain(company or "logo"))
    content = base64.b64encode(data).decode()
    return f'<img class="logo" alt="{words}" src="data:image/{kind};base64,{content}">'


def _as_png(data: bytes) -> bytes:
    """The first frame of a picture as PNG; a PNG with one frame is returned unchanged.

    Raises NotDrawn.
    """
    from PIL import ImageOps

    try:
        _opened(data).verify()  # the check sums of the whole file, which loading leaves out
        picture = _opened(data)
        picture.load()
        if data.startswith(PNG):
            refuse_incomplete(data)
            if getattr(picture, "n_frames", 1) == 1:
                return data
        held = io.BytesIO()
        _in_srgb(ImageOps.exif_transpose(picture)).save(held, "PNG")
        return held.getvalue()
    except NotDrawn:
        raise
    except DAMAGED as error:
        raise NotDrawn(f"it is damaged ({plain(error) or type(error).__name__})") from error


def _opened(data: bytes) -> "ImageFile":
    """A picture of which only the size is read yet. Raises NotDrawn for one that is too large."""
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    # Not `Image.open`, which refuses many pixels without saying how many.
    picture = (PngImageFile if data.startswith(PNG) else JpegImageFile)(io.BytesIO(data))
    wide, high = picture.size
    if max(wide, high) > LARGEST_SIDE:
        most = f"{LARGEST_SIDE} x {LARGEST_SIDE}"
        raise NotDrawn(f"it has {wide} x {high} pixels, and may have {most}")
    return picture


def _in_srgb(picture: "Image") -> "Image":
    """A picture in the colors and with the 8 bits that every program draws alike."""
    from PIL import ImageCms

    if picture.mode.startswith("I"):  # 16 bits of gray; the conversion would cut them off at 255
        return picture.point(lambda value: value / 257).convert("L")
    profile = picture.info.pop("icc_profile", None)
    if profile and picture.mode in ("RGB", "CMYK", "L"):
        try:
            found = ImageCms.profileToProfile(
                picture,
                ImageCms.ImageCmsProfile(io.BytesIO(profile)),
                ImageCms.createProfile("sRGB"),
                outputMode="RGB",
            )
        except ImageCms.PyCMSError:  # a profile of other colors than the picture has
            found = None
        if found is not None:
            return found
    return picture.convert("RGBA")
