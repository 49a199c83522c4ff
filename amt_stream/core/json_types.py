"""Types of JSON and TOML objects: headers, rows, summaries, settings."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonDict: TypeAlias = dict[str, Any]

JsonMap: TypeAlias = Mapping[str, Any]
"""A read-only object."""
