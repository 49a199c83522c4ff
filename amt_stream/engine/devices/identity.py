"""Identifies microphones by more than PortAudio's name for them."""

import re
from pathlib import Path

ALIASES = frozenset({"default", "sysdefault", "pulse", "pipewire", "jack", "front", "dsnoop"})
"""ALSA names that may stand for any microphone."""

_CARD = re.compile(r" ?\((hw|plughw):(\d+)(,\d+)\)")


def is_alias(name: str, host_api: str) -> bool:
    """Whether a name stands for whichever microphone the system has chosen."""
    return host_api == "ALSA" and name in ALIASES


def pinned(source: str | None) -> dict[str, str]:
    """Environment settings with which the name "default" stands for this source only."""
    return {} if source is None else {"PULSE_SOURCE": source, "PIPEWIRE_NODE": source}


def identity_of(
    name: str, host_api: str, source: str | None, system: Path = Path("/sys/class/sound")
) -> str:
    """The identity that a calibration is stored under: stable for a microphone, "" if unknown.

    The name itself; for ALSA cards without the card number but with details of the card; for an
    alias the `source` behind it.
    """
    if is_alias(name, host_api):
        return "" if source is None else f"PulseAudio source {source}"
    found = _CARD.search(name) if host_api == "ALSA" else None
    if found is None:
        return name
    card = _card(system / f"card{found[2]}" / "device")
    return f"{name[: found.start()]} ({found[1]}{found[3]}{card}){name[found.end() :]}"


def card_of(name: str, host_api: str) -> str | None:
    """ALSA's name of the card of an input, such as "hw:1"; None for any other input."""
    found = _CARD.search(name) if host_api == "ALSA" else None
    return None if found is None else f"hw:{found[2]}"


def _card(link: Path) -> str:
    """Serial number of a USB card with vendor and product, or the port where it is plugged in."""
    try:
        place = link.resolve(strict=True)
    except OSError:
        return ""
    found = {}
    for key in ("idVendor", "idProduct", "serial"):
        try:
            found[key] = (place.parent / key).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            found[key] = ""
    if found["serial"]:
        return f", {found['idVendor']}:{found['idProduct']} {found['serial']}"
    return f", at {place.name}"
