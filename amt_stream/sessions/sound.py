"""The sound of a session in hourly files, and its position in the count of samples."""

import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from amt_stream.core.formats import SOUND_FORMATS, SoundFormat
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.frames import Chunk
from amt_stream.meters.rows.block import in_utc, utc_text
from amt_stream.sessions.files import GrowingFile, SessionError, new_name
from amt_stream.sessions.flac import LARGEST_CHANNELS, LARGEST_FS, FlacFile
from amt_stream.sessions.folder import Folder
from amt_stream.sessions.log_parts import LogHour
from amt_stream.sessions.wav import WavFile

FILES: dict[str, type[FlacFile] | type[WavFile]] = {"flac": FlacFile, "wav": WavFile}


def refuse_sound(format: str, fs: int, channels: int) -> None:
    """Raise SessionError for an unknown format, and for what FLAC cannot store."""
    if format not in SOUND_FORMATS:
        raise SessionError(
            f"the format of sound is {format!r}: give one of {', '.join(SOUND_FORMATS)}"
        )
    if format == "flac" and (channels > LARGEST_CHANNELS or fs > LARGEST_FS):
        raise SessionError(
            f"FLAC stores at most {LARGEST_CHANNELS} channels at {LARGEST_FS} Hz, and the sound "
            f"has {channels} at {fs} Hz: choose wav"
        )


class _WaitingSound:
    """Chunks that wait to be written, each with the hour that begins with it or "", and its notes.

    A chunk is split if new notes begin within it, which begin an hour too.
    """

    def __init__(self, fs: int, notes: Mapping[str, object]) -> None:
        self._fs, self._notes, self._hours = fs, notes, LogHour()
        self._changes: deque[tuple[int, Mapping[str, object]]] = deque()
        self.chunks: deque[tuple[str, Mapping[str, object], Chunk]] = deque()

    def add(
        self, chunks: Sequence[Chunk], changes: Sequence[tuple[int, Mapping[str, object]]]
    ) -> None:
        """Add chunks, and samples from which new notes apply."""
        self._changes.extend(changes)
        for chunk in chunks:
            for piece in self._pieces(chunk):
                utc = in_utc(np.array([piece.utc]))[0]
                begins = self._hours.turns(utc, piece.sample / self._fs)
                self.chunks.append((self._hours.name if begins else "", self._notes, piece))

    def _pieces(self, chunk: Chunk) -> Iterator[Chunk]:
        """A chunk, split if new notes begin within it."""
        while self._changes and self._changes[0][0] < chunk.sample + len(chunk):
            sample, notes = self._changes.popleft()
            if sample > chunk.sample:
                before, chunk = _parted(chunk, sample - chunk.sample, self._fs)
                yield before
            self._notes = notes
            self._hours.end()
        yield chunk


class SoundRecording:
    """Writes sound in hourly parts: 24-bit FLAC, or 32-bit float WAV.

    Beside each part is a file of JSON lines: from sample `at` of the file on, the sound is that
    from `sample` of the measurement on; `lost` samples were missing before it for the engine,
    `missed` ones only for this recording, and `flags` are as for the engine. The last line says
    whether the part has the samples `exact`ly as the engine received them.

    notes: comments of each file, as data for JSON, until they change
    """

    def __init__(
        self,
        folder: Folder,
        format: SoundFormat,
        fs: int,
        channels: int,
        notes: Mapping[str, object],
        name: str,
    ) -> None:
        self._cut = False
        self._folder, self._format = folder, format
        self._fs, self._channels, self._name = fs, channels, name
        self._waiting = _WaitingSound(fs, notes)
        self._hour = ""
        self._part: _SoundPart | None = None
        self._finished: _SoundPart | None = None
        self._next: int | None = None

    @property
    def there(self) -> bool:
        finished = self._finished is None or self._finished.kept
        return finished and (self._part is None or self._part.there)

    @property
    def cut(self) -> bool:
        """Whether there was sound that FLAC cannot store [any-thread]."""
        part = self._part
        sound = None if part is None else part.sound
        return self._cut or (isinstance(sound, FlacFile) and sound.cut + sound.invalid > 0)

    def write(
        self, chunks: Sequence[Chunk], changes: Sequence[tuple[int, Mapping[str, object]]] = ()
    ) -> None:
        """Write chunks to the disk. Raises OSError, after which `flush` continues.

        changes: samples, in order, from which new notes apply: a new part begins there, or with the
            first chunk after that
        """
        self._waiting.add(chunks, changes)
        self.flush()

    def flush(self) -> None:
        self._close_finished()
        waiting = self._waiting.chunks
        while waiting:
            hour, notes, first = waiting[0]
            if hour or self._part is None:
                self._finish_part()
                self._close_finished()
                self._hour = hour or self._hour
                self._part = self._new(first, notes)
                waiting[0] = "", notes, first
            together = [first]
            for hour, _, chunk in list(waiting)[1:]:
                if hour:
                    break
                together.append(chunk)
            before = self._part.sound.frames
            try:
                self._part.write(together, self._next)
            except OSError:
                if isinstance(self._part.sound, FlacFile):
                    # Sound that it did not write is lost; the next part has the count.
                    if self._next is not None:
                        self._next -= before - self._part.sound.frames
                    self._finish_part()
                raise
            self._next = together[-1].sample + len(together[-1])
            for _ in together:
                waiting.popleft()

    def reopen(self) -> None:
        """Begin a new part if the old one is gone."""
        if self._part is not None and not self._part.there:
            self._part.abandon()
            self._part = None
        if self._finished is not None and not self._finished.kept:
            self._finished = None

    def close(self) -> None:
        self.flush()
        self._finish_part()
        self._close_finished()

    def _new(self, first: Chunk, notes: Mapping[str, object]) -> "_SoundPart":
        utc = utc_text(first.utc)
        about = {**notes, "run": self._folder.run, "sample": first.sample, "utc": utc}
        tags = {"comment": json.dumps(about), "date": utc, "software": "amt_stream"}
        lines = new_name(self._folder.path, f"sound-{self._hour}", ".jsonl")
        path = lines.with_suffix(f".{self._format}")
        if self._name.isprintable():
            tags["title"] = self._name
        return _SoundPart(FILES[self._format](path, self._fs, self._channels, tags), lines)

    def _finish_part(self) -> None:
        if self._part is not None:
            self._cut = self.cut
            self._part.finish()
            self._finished, self._part = self._part, None

    def _close_finished(self) -> None:
        """Add a finished part to the chain; it may take several attempts."""
        if self._finished is None:
            return
        for name, digests in self._finished.hashes():
            if name not in self._folder.closed:
                self._folder.chain.add(self._folder.run, name, **digests)
        self._finished = None


def _parted(chunk: Chunk, count: int, fs: int) -> tuple[Chunk, Chunk]:
    """The first samples of a chunk, with its marks, and the rest."""
    before, after = chunk.samples[:count], chunk.samples[count:]
    rest = Chunk(after, chunk.sample + count, chunk.utc + count / fs)
    return replace(chunk, samples=before), rest


class _SoundPart:
    """A sound file and the lines beside it."""

    def __init__(self, sound: FlacFile | WavFile, lines: Path) -> None:
        self.sound = sound
        self._lines = GrowingFile(lines)
        self._digest = hashlib.sha256()
        self._hashed = sound.head
        self._reported = 0
        self._written = True

    @property
    def there(self) -> bool:
        return self.sound.file.there and self._lines.there

    @property
    def kept(self) -> bool:
        """Whether both files still exist, once they are finished."""
        return self.sound.file.path.exists() and self._lines.path.exists()

    def write(self, chunks: list[Chunk], expected: int | None) -> None:
        """Write chunks; the lines first, as sound without them has no position."""
        self._written = False
        lines: list[dict[str, object]] = []
        at, after = self.sound.frames, expected
        for number, chunk in enumerate(chunks):
            missed = 0 if after is None else chunk.sample - chunk.lost - after
            if (not at and not lines) or missed or chunk.lost or chunk.flags:
                line = {"at": at, "sample": chunk.sample, "utc": chunk.utc, "lost": chunk.lost}
                if number >= self._reported:
                    lines.append({**line, "flags": int(chunk.flags), "missed": missed})
            at += len(chunk)
            after = chunk.sample + len(chunk)
        if lines:
            self._lines.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        self._reported = len(chunks)
        self.sound.write(chunks)
        self._reported, self._written = 0, True
        self._take_hash()

    def _take_hash(self) -> None:
        """Update the hash with new data after the header, so that the end is fast."""
        with self.sound.file.path.open("rb") as file:
            file.seek(self._hashed)
            while block := file.read(1 << 20):
                self._digest.update(block)
                self._hashed += len(block)

    def finish(self) -> None:
        """End the part; complete data stays. Without its last line a part is not exact."""
        self.sound.finish()
        end: dict[str, object] = {"end": self.sound.frames, "exact": self.sound.exact}
        if isinstance(self.sound, FlacFile):
            end |= {"cut": self.sound.cut, "invalid": self.sound.invalid}
        if self._written:
            with contextlib.suppress(OSError):
                self._lines.write((json.dumps(end) + "\n").encode())
        self._lines.close()

    def abandon(self) -> None:
        self.sound.finish()
        self._lines.close()

    def hashes(self) -> Iterator[tuple[str, JsonDict]]:
        """Names and entries of both files for the chain."""
        self._take_hash()
        path, head = self.sound.file.path, self.sound.head
        digest = self._digest.copy()
        with path.open("rb") as file:
            digest.update(file.read(head))
        size = path.stat().st_size
        yield path.name, {"sha256": digest.hexdigest(), "bytes": size, "head": head}
        lines = self._lines
        yield lines.path.name, {"sha256": lines.digest.hexdigest(), "bytes": lines.size}
