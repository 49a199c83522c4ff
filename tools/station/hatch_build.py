"""The tag of the wheel: of Linux with the processor that its libraries are for."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TagOfProcessor(BuildHookInterface[Any]):
    """Takes the tag of the platform from the environment, as `build.py` sets it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['STATION_PLATFORM']}"
