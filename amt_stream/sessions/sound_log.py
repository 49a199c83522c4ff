"""A log of a measurement that also records its sound."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from amt_stream.core.formats import LogFormat, SoundFormat
from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Chunk, Event
from amt_stream.meters.table import Table
from amt_stream.sessions.log import FLUSH_S, SessionLog
from amt_stream.sessions.retention import Retention
from amt_stream.sessions.sound import SoundRecording, refuse_sound

WAITING_BYTES = 1 << 26
"""Largest size of the sound that waits; almost three minutes at 48 kHz in two channels."""


@thread_checked
class SoundLog(SessionLog):
    """A `SessionLog` that also records the sound, all channels as the engine received them.

    Only the owner may access a new folder and the sound files.

    fs, channels: of the source
    sound: "flac" (24 bits; what it cannot store is counted and reported) or "wav" (32-bit float,
        exact)

    `unrecorded` counts samples that are lost because the disk fails.
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
        self.unrecorded = 0
        self._chunks: deque[Chunk] = deque()
        self._fs = fs
        self._noted: list[tuple[int, dict[str, object]]] = []
        self._bytes = 0
        self._recording: SoundRecording | None = None
        refuse_sound(sound, fs, channels)
        settings = {**(settings or {}), "sound": sound}
        super().__init__(path, table, format=format, settings=settings, restore=restore, keep=keep)
        self._recording = SoundRecording(
            self.folder, sound, fs, channels, self._notes, table.sound.name
        )

    @property
    def _notes(self) -> JsonDict:
        """Further comments of sound files at this moment."""
        return {"fs": self._fs, **self.table.sound.notes_of_columns}

    def event(self, event: Event) -> None:
        """Log an event [sink-thread]."""
        super().event(event)
        if event.kind in ("calibrated", "uncalibrated"):
            with self._changed:
                self._noted.append((event.sample, self._notes))

    def sound(self, chunk: Chunk) -> None:
        """Record the sound [sink-thread]."""
        size = chunk.samples.nbytes
        with self._changed:
            while self._bytes + size > WAITING_BYTES and not (self._trouble or self._closed):
                self._changed.wait(FLUSH_S)
            self._chunks.append(chunk)
            self._bytes += size
            while self._bytes > WAITING_BYTES:
                gone = self._chunks.popleft()
                self._bytes -= gone.samples.nbytes
                self.unrecorded += len(gone)

    @property
    def _there(self) -> bool:
        return super()._there and (self._recording is None or self._recording.there)

    def _reopen(self) -> None:
        if self._recording is not None:
            self._recording.reopen()
        super()._reopen()

    def _write_sound(self) -> None:
        if self._recording is None:
            return
        self._recording.flush()
        with self._changed:
            chunks, self._chunks, self._bytes = [*self._chunks], deque(), 0
            noted, self._noted = self._noted, []
            self._changed.notify_all()
        self._recording.write(chunks, noted)

    def _sum_up(self) -> None:
        if self._recording is not None:
            self._recording.close()
        super()._sum_up()

    @property
    def note(self) -> str:
        notes = [super().note] if super().note else []
        if self.unrecorded:
            notes.append(f"sound is missing in {self.path}: its disk did not write it")
        if self._recording is not None and self._recording.cut:
            notes.append(
                "FLAC cannot store all of this sound, which exceeds full scale or has NaN or "
                "infinity: wav can"
            )
        return "; ".join(notes)
