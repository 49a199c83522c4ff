"""Sounds worth keeping: the last of what was heard, in memory, and files of parts of it."""

from amt_stream.events.keeper import SoundKeeper, keeper_in, tables_of_files
from amt_stream.events.memory import SoundMemory, Stretch

__all__ = ["SoundKeeper", "SoundMemory", "Stretch", "keeper_in", "tables_of_files"]
