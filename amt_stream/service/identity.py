"""The name and the labels of a station, which distinguish its data from those of others."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import NAME_RULE, fits_tables
from amt_stream.core.values import NotAllowed

LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
LONGEST = 100
_OF_ROWS = frozenset(
    ("time", "utc", "row", "channel", "output", "band", "modulation", "limit", "fault", "kind")
)
_OF_METRICS = frozenset(
    ("input", "microphone", "weighting", "model", "le", "state", "transport", "version", "preset")
)
TAKEN = _OF_ROWS | _OF_METRICS | {"station", "host", "job", "instance"}
"""Names that metrics, tags and monitoring programs use for other things."""


@dataclass(frozen=True)
class Identity:
    """Name and labels of a station; "" and none if they were not given."""

    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> JsonDict:
        """What each message and header has of it: `station`, and `labels` if there are any."""
        name = {"station": self.name} if self.name else {}
        return {**name, **({"labels": dict(self.labels)} if self.labels else {})}

    @property
    def tags(self) -> dict[str, str]:
        """The name under `station`, and each label, all in one."""
        return {**({"station": self.name} if self.name else {}), **self.labels}


def parse_station(text: str) -> str:
    """Parse the name of a station. Raises NotAllowed."""
    if not fits_tables(text) or len(text) > LONGEST:
        raise NotAllowed(f"{text[:LONGEST]!r}: {NAME_RULE}, and at most {LONGEST} characters")
    return text


def parse_label(text: str) -> tuple[str, str]:
    """Parse KEY=VALUE. Raises NotAllowed."""
    key, _, value = text.partition("=")
    if not LABEL.fullmatch(key):
        raise NotAllowed(
            f"{text[:LONGEST]!r}: give KEY=VALUE, with a key of letters, digits and _, such as "
            "city=Graz"
        )
    if key in TAKEN:
        raise NotAllowed(f"{key!r} already has a meaning in metrics and tags: choose another key")
    if not value.strip() or not value.isprintable() or len(value) > LONGEST:
        raise NotAllowed(
            f"the value of {key} is {value[:LONGEST]!r}: give printable text of at most {LONGEST} "
            "characters"
        )
    return key, value
