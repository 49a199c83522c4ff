"""The orders of channels that formats of files have, and the layouts of Core Audio."""

from dataclasses import replace

from amt_stream.core.safe_text import json_object
from amt_stream.dsp.channel_layout import Layout, LayoutError, layout_of_mask, surround

VORBIS = {
    1: "M",
    2: "L R",
    3: "L C R",
    4: "L R BL BR",
    5: "L C R BL BR",
    6: "L C R BL BR LFE",
    7: "L C R SL SR Cs LFE",
    8: "L C R SL SR BL BR LFE",
}
"""Vorbis I specification, 4.3.9; Opus in Ogg with mapping family 1 (RFC 7845, 5.1.1.2)."""

FLAC = {
    1: "M",
    2: "L R",
    3: "L R C",
    4: "L R BL BR",
    5: "L R C BL BR",
    6: "L R C LFE BL BR",
    7: "L R C LFE Cs SL SR",
    8: "L R C LFE BL BR SL SR",
}
"""RFC 9639, 9.1.3."""

ALAC = {
    1: "M",
    2: "L R",
    3: "C L R",
    4: "C L R Cs",
    5: "C L R Ls Rs",
    6: "C L R Ls Rs LFE",
    7: "C L R Ls Rs Cs LFE",
    8: "C Lc Rc L R Ls Rs LFE",
}
"""Apple Lossless Format, "Channel Layouts"."""

_TAGS = {
    100: "M",
    101: "L R",
    102: "L R",
    103: "L R",
    105: "L R",
    106: "L R",
    108: "L R Ls Rs",
    109: "L R Ls Rs C",
    110: "L R Ls Rs C Cs",
    111: "L R Ls Rs C Cs Lw Rw",
    113: "L R C",
    114: "C L R",
    115: "L R C Cs",
    116: "C L R Cs",
    117: "L R C Ls Rs",
    118: "L R Ls Rs C",
    119: "L C R Ls Rs",
    120: "C L R Ls Rs",
    121: "L R C LFE Ls Rs",
    122: "L R Ls Rs C LFE",
    123: "L C R Ls Rs LFE",
    124: "C L R Ls Rs LFE",
    125: "L R C LFE Ls Rs Cs",
    126: "L R C LFE Ls Rs Lc Rc",
    127: "C Lc Rc L R Ls Rs LFE",
    128: "L R C LFE SL SR BL BR",
    129: "L R Ls Rs C LFE Lc Rc",
    131: "L R Cs",
    132: "L R Ls Rs",
    133: "L R LFE",
    134: "L R LFE Cs",
    135: "L R LFE Ls Rs",
    136: "L R C LFE",
    137: "L R C LFE Cs",
    138: "L R Ls Rs LFE",
    139: "L R Ls Rs C Cs",
    140: "L R SL SR C BL BR",
    141: "C L R Ls Rs Cs",
    142: "C L R Ls Rs Cs LFE",
    143: "C L R SL SR BL BR",
    144: "C L R SL SR BL BR Cs",
    148: "L R Ls Rs C Lc Rc",
    149: "C LFE",
    150: "L C R",
    151: "L C R Cs",
    152: "L C R LFE",
    153: "L R Cs LFE",
    154: "L C R Cs LFE",
    183: "C L R SL SR BL BR LFE",
    185: "L R BL BR",
    186: "L R C BL BR",
    187: "L R C LFE BL BR",
    188: "L R C LFE Cs Ls Rs",
    189: "L R C LFE BL BR SL SR",
    192: "L R C LFE SL SR BL BR Ltf Rtf Ltr Rtr",
    195: "L R C LFE Ls Rs Ltf Rtf Ltr Rtr",
}
"""Layouts of Core Audio by the upper half of their tag (CoreAudioBaseTypes.h of Apple's SDK)."""

_BY_DESCRIPTIONS, _BY_BITMAP = 0, 1

_FIRST_LABELS = "L R C LFE Ls Rs Lc Rc Cs SL SR Tc Ltf Ctf Rtf Ltr Ctr Rtr"
_LABELS = {
    **dict(enumerate(_FIRST_LABELS.split(), 1)),
    33: "BL",
    34: "BR",
    35: "Lw",
    36: "Rw",
    37: "LFE2",
    42: "M",
    44: "Cs",
    49: "Lts",
    51: "Rts",
    52: "Ltr",
    53: "Ctr",
    54: "Rtr",
    301: "L",
    302: "R",
}
"""Positions by the channel labels of Core Audio."""

_DESCRIPTION = 20


def recorded_layout(comment: str, software: str, channels: int) -> Layout | None:
    """The layout in the comment of a recording of this package, if it has one."""
    if not software.startswith("amt_stream"):
        return None
    try:
        layout = Layout.from_dict(json_object(comment)["layout"])
    except (LayoutError, LookupError, TypeError):
        return None
    return replace(layout, origin="source") if layout.channels == channels else None


def ordered(orders: dict[int, str], channels: int) -> Layout | None:
    """The layout of a format with one order for each number of channels."""
    return _layout(orders[channels].split()) if channels in orders else None


def layout_of_core_audio(content: bytes, channels: int) -> Layout | None:
    """The layout in the chunk that CAF and AIFF have for it; None if it does not say."""
    tag, bitmap, count = (int.from_bytes(content[k : k + 4], "big") for k in (0, 4, 8))
    if tag == _BY_BITMAP << 16:
        return layout_of_mask(bitmap, channels)
    if content and tag == _BY_DESCRIPTIONS:
        first = range(12, 12 + _DESCRIPTION * count, _DESCRIPTION)
        labels = [int.from_bytes(content[k : k + 4], "big") for k in first[:channels]]
        names = [_LABELS.get(label, "") for label in labels]
        known = [name for name in names if name]
        return _layout(names) if len(names) == channels and len({*known}) == len(known) else None
    names = _TAGS.get(tag >> 16, "").split()
    return _layout(names) if content and len(names) == channels else None


def _layout(names: list[str]) -> Layout:
    """Of names in which pairs at the back and at the sides are "BL", "BR" and "SL", "SR".

    "Ls" and "Rs" beside another pair are the one that is left.
    """
    other = {"BL": ("SL", "SR"), "SL": ("BL", "BR")}
    pair = next((other[name] for name in other if name in names), ("Ls", "Rs"))
    renamed = dict(zip(("Ls", "Rs"), pair, strict=True))
    return Layout(surround([renamed.get(name, name) for name in names]))
