"""Which microphone it is: what the system tells beyond the name that PortAudio has for it."""

import os
import re
import subprocess
import sys
from pathlib import Path

from amt_stream.core.processes import outside_environment

ANSWER_S = 0.5

ALIASES = frozenset({"default", "sysdefault", "pulse", "pipewire", "jack", "front", "dsnoop"})
"""Names of ALSA behind which any microphone may stand."""

_CARD = re.compile(r" ?\((hw|plughw):(\d+)(,\d+)\)")


def is_alias(name: str, host_api: str) -> bool:
    """Whether a name stands for whichever microphone the system has chosen."""
    return host_api == "ALSA" and name in ALIASES


def default_source() -> str | None:
    """The source that a PulseAudio or PipeWire server records from by default, by its own name.

    None where there is no such server, or none that answers at once.
    """
    if not sys.platform.startswith("linux"):
        return None
    if chosen := os.environ.get("PULSE_SOURCE"):
        return chosen
    for line in pactl("info"):
        key, _, name = line.partition(": ")
        if key == "Default Source" and name:
            return name
    return None


def has_source(name: str) -> bool:
    """Whether the server has a source of this name, or one that answers to it, just now."""
    return any(line.split("\t")[1:2] == [name] for line in pactl("list", "short", "sources"))


def pactl_settings() -> dict[str, str]:
    """The environment of pactl, which else speaks the user's language."""
    return {**outside_environment(), "LC_ALL": "C"}


def pactl(*arguments: str) -> list[str]:
    """What the sound server's own tool prints; nothing where there is none, or no answer."""
    try:
        done = subprocess.run(
            ["pactl", *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=pactl_settings(),
            timeout=ANSWER_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode(errors="replace").splitlines()


def pinned(source: str | None) -> dict[str, str]:
    """Settings with which the name "default" stands for this source, and for no other."""
    return {} if source is None else {"PULSE_SOURCE": source, "PIPEWIRE_NODE": source}


def identity_of(
    name: str, host_api: str, source: str | None, system: Path = Path("/sys/class/sound")
) -> str:
    """What a calibration is kept by: the same for the same microphone, "" where it is not known.

    The name itself; without the number that ALSA has given to a card, but with what the system
    tells of the card; for an alias the `source` behind it.
    """
    if is_alias(name, host_api):
        return "" if source is None else f"PulseAudio source {source}"
    found = _CARD.search(name) if host_api == "ALSA" else None
    if found is None:
        return name
    card = _card(system / f"card{found[2]}" / "device")
    return f"{name[: found.start()]} ({found[1]}{found[3]}{card}){name[found.end() :]}"


def _card(link: Path) -> str:
    """Serial number of a USB card with maker and model, or where it is plugged in."""
    try:
        place = link.resolve(strict=True)
    except OSError:
        return ""
    told = {}
    for key in ("idVendor", "idProduct", "serial"):
        try:
            told[key] = (place.parent / key).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            told[key] = ""
    if told["serial"]:
        return f", {told['idVendor']}:{told['idProduct']} {told['serial']}"
    return f", at {place.name}"
