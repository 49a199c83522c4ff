"""Recording of sound events: the latest sound in memory, and files of parts of it."""

from amt_stream.sessions.events.keeper import SoundKeeper, keeper_in, tables_of_files
from amt_stream.sessions.events.memory import SampleSpan, SoundMemory

__all__ = ["SampleSpan", "SoundKeeper", "SoundMemory", "keeper_in", "tables_of_files"]
