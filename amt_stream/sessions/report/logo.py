"""The logo of a company, embedded in a page."""

import base64
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, small_content
from amt_stream.core.safe_text import plain

PNG = b"\x89PNG\r\n\x1a\n"
LARGEST = 1 << 20
"""Largest logo in bytes."""


class LogoError(Refusal, ValueError):
    """A logo cannot be read."""


def logo_image(path: str | Path, company: str = "") -> str:
    """The logo as HTML that contains the whole file; browsers run no scripts in such images.

    Raises LogoError for a file that is neither PNG nor SVG, or larger than 1 MiB.
    """
    try:
        data = small_content(Path(path), LARGEST)
    except NotThatFile as error:
        raise LogoError(f"the logo {path} {error}: give a PNG or SVG file") from error
    if data.startswith(PNG):
        kind = "png"
    elif _is_svg(data):
        kind = "svg+xml"
    else:
        raise LogoError(f"the logo {path} is neither a PNG nor an SVG file: give one of these")
    words = escape(plain(company or "logo"))
    content = base64.b64encode(data).decode()
    return f'<img class="logo" alt="{words}" src="data:image/{kind};base64,{content}">'


def _is_svg(data: bytes) -> bool:
    if b"<!ENTITY" in data:  # entities can grow without bound
        return False
    try:
        return ElementTree.fromstring(data).tag.rpartition("}")[2] == "svg"
    except (ElementTree.ParseError, ValueError, LookupError):
        return False
