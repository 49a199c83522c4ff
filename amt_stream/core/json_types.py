"""Objects of JSON and TOML by the names of their fields: headers, rows, summaries, settings."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonDict: TypeAlias = dict[str, Any]

JsonMap: TypeAlias = Mapping[str, Any]
"""One that is only read."""
