"""Pictures of logos, whole and broken."""

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageCms

SIGNATURE = b"\x89PNG\r\n\x1a\n"
NAMED = 'xmlns="http://www.w3.org/2000/svg"'


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(wide=40, high=20, depth=8, color=2, data=None, between=b""):
    """A PNG of these numbers, by default of zeros; `color` as in the standard."""
    bits = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color] * depth
    row = bytes(1 + (wide * bits + 7) // 8)
    data = zlib.compress(row * high) if data is None else data
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, depth, color, 0, 0, 0))
    return SIGNATURE + head + between + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def saved(picture, kind="PNG", **more):
    held = io.BytesIO()
    picture.save(held, kind, **more)
    return held.getvalue()


def ramp(mode="RGB"):
    """A picture that gets lighter from the left to the right."""
    gray = np.linspace(0, 255, 60).astype(np.uint8)[None].repeat(30, 0)
    return Image.fromarray(gray).convert(mode)


def ramp16():
    gray = np.linspace(0, 65535, 60).astype(np.uint16)[None].repeat(30, 0)
    return Image.fromarray(gray)


def bent(data):
    """The same with a wrong byte in the middle, which only the check sum shows."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def svg(inside="<rect width='9' height='3'/>", attributes='width="9" height="3"'):
    return f"<svg {NAMED} {attributes}>{inside}</svg>".encode()


def laughs():
    """Ten elements that each draw the one before ten times."""
    groups = ["<g id='a0'><rect width='1' height='1'/></g>"]
    for k in range(1, 11):
        groups.append(f"<g id='a{k}'>" + f"<use href='#a{k - 1}'/>" * 10 + "</g>")
    return svg("<defs>" + "".join(groups) + "</defs><use href='#a10'/>")


INTERLACED = (
    SIGNATURE
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 5, 1, 0, 0, 0, 1))
    + chunk(b"IDAT", zlib.compress(bytes(2 * 11)))
    + chunk(b"IEND", b"")
)
"""5 x 5 pixels of 1 bit: 1, 1, 1, 2, 1, 3 and 2 rows of a byte, and a byte before each."""

WHOLE = {
    "8 bits": saved(ramp()),
    "16 bits of gray": saved(ramp16()),
    "16 bits of color": png(depth=16),
    "interlaced": INTERLACED,
    "1 bit": saved(ramp("1")),
    "gray and alpha": saved(ramp("LA")),
    "palette": saved(ramp("P")),
    "palette with transparency": saved(ramp("P"), transparency=0),
    "animated": saved(ramp(), save_all=True, append_images=[ramp().rotate(180)], duration=100),
    "animated in 16 bits": saved(
        ramp16(), save_all=True, append_images=[ramp16().rotate(180)], duration=100
    ),
    "JPEG": saved(ramp(), "JPEG", quality=95),
    "progressive JPEG": saved(ramp(), "JPEG", quality=95, progressive=True),
    "gray JPEG": saved(ramp("L"), "JPEG", quality=95),
    "CMYK JPEG": saved(ramp("CMYK"), "JPEG", quality=95),
    "JPEG with a profile": saved(
        ramp(), "JPEG", quality=95,
        icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    ),
    "JPEG with the profile of other colors": saved(
        ramp("CMYK"), "JPEG", quality=95,
        icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    ),
}  # fmt: skip

BROKEN = {
    "PNG cut off": (saved(ramp())[:-60], "it is damaged"),
    "PNG of its head alone": (png()[:33], "it is damaged"),
    "PNG of its signature alone": (SIGNATURE, "it is damaged"),
    "PNG with a wrong check sum": (bent(png(data=zlib.compress(bytes(121 * 20), 0))), "damaged"),
    "PNG with too few rows": (png(data=zlib.compress(bytes(121 * 3))), "it is damaged"),
    "interlaced PNG with too few rows": (
        INTERLACED[:33]
        + chunk(b"IDAT", zlib.compress(bytes(20)))
        + chunk(b"IEND", b""),
        "it lacks rows",
    ),
    "PNG of nonsense": (png(data=b"nonsense"), "it is damaged"),
    "PNG without its palette": (png(color=3), "it is damaged"),
    "PNG of no width": (png(wide=0), "it is damaged"),
    "PNG of no height": (png(high=0), "it is damaged"),
    "a bomb": (
        lambda: png(30000, 30000, 1, 0, data=zlib.compress(bytes(3751 * 30000), 9)),
        "30000 x 30000 pixels, and may have 4096 x 4096",
    ),
    "a larger bomb": (png(1 << 30, 1 << 30, data=b"x"), "4096 x 4096"),
    "a long PNG": (png(5000, 1), "it has 5000 x 1 pixels"),
    "a bomb of text": (
        lambda: png(between=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(200_000_000), 9))),
        "it is damaged",
    ),
    "JPEG cut off": (saved(ramp(), "JPEG")[:-200], "it is damaged"),
    "JPEG of its head alone": (saved(ramp(), "JPEG")[:30], "it is damaged"),
    "SVG cut off": (svg()[:-5], "it is cut off or damaged"),
    "SVG without its name space": (b"<svg width='9' height='3'/>", "does not begin with <svg xm"),
    "SVG of no width": (svg(attributes='width="0" height="3"'), "its width is '0'"),
    "SVG of a negative height": (svg(attributes='width="1" height="-3px"'), "its height is '-3px'"),
    "SVG with an empty box": (svg(attributes='viewBox="0 0 0 9"'), "its viewBox is '0 0 0 9'"),
    "SVG with half a box": (svg(attributes='viewBox="0 0 9"'), "its viewBox is '0 0 9'"),
    "SVG that needs a file": (svg("<image href='file:///a.png'/>"), "needs another file"),
    "SVG that needs the network": (svg("<image href='http://h/a.png'/>"), "needs another file"),
    "SVG with entities": (b"<!DOCTYPE svg [<!ENTITY a 'b'>]>" + svg("&a;"), "declares entities"),
    "SVG that laughs": (laughs(), "draws more than 100000 elements"),
    "SVG that draws itself": (svg("<g id='a'><use href='#a'/></g>"), "contains itself"),
    "SVG that is deep": (svg("<g>" * 2000 + "</g>" * 2000), "more than 100 deep"),
    "HTML": (b"<html/>", "none of a PNG, JPEG and SVG"),
    "GIF": (saved(ramp("P"), "GIF"), "none of a PNG, JPEG and SVG"),
    "WebP": (saved(ramp(), "WEBP"), "none of a PNG, JPEG and SVG"),
    "nothing": (b"", "none of a PNG, JPEG and SVG"),
    "large": (saved(ramp()) + bytes(1 << 20), "has more than 1048576 bytes"),
}  # fmt: skip
"""Each, or what makes it where that takes long, with a part of why it is refused."""


def broken(name):
    """The bytes of one of BROKEN, and a part of why it is refused."""
    data, why = BROKEN[name]
    return data() if callable(data) else data, why
