"""The input gain of an ALSA card, by amixer."""

import re
from collections.abc import Iterator, Sequence

from amt_stream.core.processes import printed_by
from amt_stream.engine.devices.change_watch import ChangeWatch
from amt_stream.meters.source_description import InputGain

ANSWER_S = 0.5

CHANGE = (b"event value",)

_CONTROL = re.compile(r"Simple mixer control '(.*)',\d+$")
_LIMITS = re.compile(r"(?:Capture )?(-?\d+) - (-?\d+)$")
_VALUE = re.compile(r"^  [\w ]+: (?:Playback .*)?(?:Capture )?(-?\d+) \[\d+%\]")
_SWITCH = re.compile(r"^  [\w ]+: .*\[(on|off)\]$")
_ITEM = re.compile(r"^  Item0: '(.*)'$")

_AMPLIFIES = re.compile("boost|gain control|agc", re.I)
"""Names of controls that change the gain, though they are not of capture alone."""


def read_gain(mixer: str) -> InputGain | None:
    """The gain of a card's capture controls; None without amixer, a card or such controls.

    mixer: ALSA's name of it, such as "hw:1"
    """
    volumes: list[float] = []
    switches: dict[str, bool] = {}
    others: list[str] = []
    for name, lines in _controls(printed_by(["amixer", "-D", mixer, "scontents"], ANSWER_S)):
        kinds = lines[0].split()[1:] if lines else []
        if "cvolume" in kinds:
            volumes += _volumes(lines)
        if "cswitch" in kinds:
            switches[name] = any(_SWITCH.sub(r"\1", one) == "on" for one in lines)
        if "cenum" in kinds:
            others += [found[1] for one in lines if (found := _ITEM.match(one))]
        elif _AMPLIFIES.search(name):
            others.append(f"{name} {_state(lines)}")
    if not (volumes or switches or others):
        return None
    is_on = switches.get("Capture", not switches or any(switches.values()))
    return InputGain(tuple(volumes), not is_on, ", ".join(others))


def watch_gain(mixer: str) -> ChangeWatch:
    """Watch the controls of a card."""
    # Into a pipe amixer would write only each 4 kB.
    command = ["stdbuf", "-oL", "amixer", "-D", mixer, "sevents"]
    return ChangeWatch(command, CHANGE)


def _controls(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each control; the first line has its capabilities."""
    name, own = "", list[str]()
    for line in lines:
        if found := _CONTROL.match(line):
            if name:
                yield name, own
            name, own = found[1], []
        else:
            own.append(line)
    if name:
        yield name, own


def _volumes(lines: Sequence[str]) -> list[float]:
    """The volumes of a control in percent of its range."""
    limits = next((found for one in lines if (found := _LIMITS.search(one))), None)
    values = [int(found[1]) for one in lines if (found := _VALUE.match(one))]
    if limits is None:
        return []
    low, high = int(limits[1]), int(limits[2])
    return [round(100 * (value - low) / max(1, high - low), 2) for value in values]


def _state(lines: Sequence[str]) -> str:
    """As "on" or "33 %"."""
    volumes = dict.fromkeys(f"{one:g} %" for one in _volumes(lines))
    switches = dict.fromkeys(found[1] for one in lines if (found := _SWITCH.match(one)))
    return " ".join([*volumes, *switches])
