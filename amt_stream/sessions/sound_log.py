"""A log of a measurement that also records its sound."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from amt_stream.core.formats import LogFormat, SoundFormat
from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Chunk, Event
from amt_stream.meters.table import Table
from amt_stream.sessions.log import SessionLog
from amt_stream.sessions.log_writer import FLUSH_S, LogWriter
from amt_stream.sessions.retention import Retention
from amt_stream.sessions.sound import SoundRecording, refuse_sound

WAITING_BYTES = 1 << 26
"""Largest size of the sound that waits; almost three minutes at 48 kHz in two channels."""


class _QueuedSound:
    """The sound that waits for the disk, and the recording that it goes to.

    dropped: samples that were dropped, as too many waited
    """

    def __init__(self, recording: SoundRecording, writer: LogWriter) -> None:
        self.recording, self._writer = recording, writer
        self.dropped = 0
        self._chunks: deque[Chunk] = deque()
        self._bytes = 0
        self._noted: list[tuple[int, JsonDict]] = []

    def change(self, sample: int, notes: JsonDict) -> None:
        """Use other notes from a sample on."""
        with self._writer.changed:
            self._noted.append((sample, notes))

    def put(self, chunk: Chunk) -> None:
        """Queue sound; waits while too much waits for a disk that works."""
        size = chunk.samples.nbytes
        with self._writer.changed:
            while self._bytes + size > WAITING_BYTES and self._writer.accepts:
                self._writer.changed.wait(FLUSH_S)
            self._chunks.append(chunk)
            self._bytes += size
            while self._bytes > WAITING_BYTES:
                gone = self._chunks.popleft()
                self._bytes -= gone.samples.nbytes
                self.dropped += len(gone)

    @property
    def there(self) -> bool:
        return self.recording.there

    def reopen(self) -> None:
        self.recording.reopen()

    def close(self) -> None:
        self.recording.close()

    def flush(self) -> None:
        self.recording.flush()
        with self._writer.changed:
            chunks, self._chunks, self._bytes = [*self._chunks], deque(), 0
            noted, self._noted = self._noted, []
            self._writer.changed.notify_all()
        self.recording.write(chunks, noted)


@thread_checked
class SoundLog(SessionLog):
    """A `SessionLog` that also records the sound, all channels as the engine received them.

    Only the owner may access a new folder and the sound files.

    fs, channels: of the source
    sound: "flac" (24 bits; what it cannot store is counted and reported) or "wav" (32-bit float,
        exact)
    """

    keeps_sound = True

    def __init__(
        self,
        path: str | Path,
        table: Table,
        *,
        fs: int,
        channels: int,
        sound: SoundFormat = "flac",
        format: LogFormat = "sqlite",
        settings: Mapping[str, object] | None = None,
        restore: bool = False,
        keep: Retention | None = None,
    ) -> None:
        refuse_sound(sound, fs, channels)
        settings = {**(settings or {}), "sound": sound}
        super().__init__(path, table, format=format, settings=settings, restore=restore, keep=keep)
        self._fs = fs
        recording = SoundRecording(self.folder, sound, fs, channels, self._notes, table.sound.name)
        self._sound = self._writer.sound = _QueuedSound(recording, self._writer)

    @property
    def _notes(self) -> JsonDict:
        """Further comments of sound files at this moment."""
        return {"fs": self._fs, **self.table.sound.notes_of_columns}

    def event(self, event: Event) -> None:
        """Log an event [sink-thread]."""
        super().event(event)
        if event.kind in ("calibrated", "uncalibrated"):
            self._sound.change(event.sample, self._notes)

    def sound(self, chunk: Chunk) -> None:
        """Record the sound [sink-thread]."""
        self._sound.put(chunk)

    @property
    def unrecorded(self) -> int:
        """Samples that are lost because the disk fails [any-thread]."""
        return self._sound.dropped

    @property
    def note(self) -> str:
        notes = [super().note] if super().note else []
        if self.unrecorded:
            notes.append(f"sound is missing in {self.path}: its disk did not write it")
        if self._sound.recording.cut:
            notes.append(
                "FLAC cannot store all of this sound, which exceeds full scale or has NaN or "
                "infinity: wav can"
            )
        return "; ".join(notes)
