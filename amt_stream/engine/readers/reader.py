"""Reads a file or a stream from its first sample to its last."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import usual_layout
from amt_stream.engine.readers.file_layouts import recorded_layout
from amt_stream.engine.readers.libsndfile import Undecodable
from amt_stream.engine.readers.link import Link
from amt_stream.engine.readers.opening import link_at
from amt_stream.engine.readers.source_bytes import SourceBytes
from amt_stream.meters.source_description import Kind, SourceDescription

SKIPPED = 1 << 16
"""Samples that are decoded at once to be left out."""


class SoundReader:
    """Gives the sound of all links in a row, while their rate and number of channels stay the same.

    again: opens the first link of a file again; None for a stream

    samples: its length, if that is known before the end
    has_header: whether it is not raw PCM
    description: what the first link says; at the end also what was found, and what is missing
    """

    def __init__(
        self, source: SourceBytes, first: Link, again: Callable[[], Link | None] | None = None
    ) -> None:
        self._source, self._link, self._again = source, first, again
        kind: Kind = "file" if again else "stream"
        self.fs, self.channels = first.fs, first.channels
        self.has_header = first.has_header
        self.comment, self.software = first.comment, first.software
        self.samples = None if self._is_followed() else first.samples
        self.description = SourceDescription(
            kind,
            recorded_layout(first.comment, first.software, first.channels)
            or first.layout
            or usual_layout(first.channels),
            first.encoding,
            first.clips_at,
            has_offset=True,
            promised=first.promised,
            found=self.samples,
            remark=first.remark,
        )
        self._begin()

    def _begin(self) -> None:
        self._came = self._in_link = 0
        self._number, self._ended = 1, False
        self._promised: list[int | None] = []
        self._wrong: list[str] = []

    def read(self, count: int) -> NDArray[np.float32]:
        """Up to about `count` samples (time, channel), none at the end."""
        block = self._link.read(count)
        while not len(block) and self._goes_on():
            block = self._link.read(count)
        self._came += len(block)
        self._in_link += len(block)
        return block

    def seek(self, sample: int) -> int:
        """Continue at a sample, or at the end; returns where that is. Only for files."""
        length = self._link.samples
        near = self._number == 1 and length is not None and sample <= length
        if near and self._link.seek(sample):
            self._came = self._in_link = sample
            self._ended = False
            return sample
        first = None if self._again is None else self._again()
        assert first is not None
        self._link.close()
        self._link = first
        self._begin()
        while self._came < sample and len(self.read(min(SKIPPED, sample - self._came))):
            pass
        return self._came

    def stop(self) -> None:
        """Let a read that waits return [any-thread]."""
        self._source.stop()

    def close(self) -> None:
        self._link.close()
        self._source.close()

    def _is_followed(self) -> bool:
        """Whether another link follows the first one of a file, or may follow."""
        if self._source.size is None:
            return True
        at = self._link.end()
        try:
            following = link_at(self._source, at) if at < self._source.size else None
        except Undecodable:
            return True
        if following is not None:
            following.close()
        return following is not None

    def _goes_on(self) -> bool:
        """Whether another link follows one that has ended; at the end, say what was found."""
        if self._ended:
            return False
        link = self._link
        if wrong := link.problem(self._in_link):
            self._wrong.append(wrong)
        self._promised.append(link.promised)
        following, at = None, link.end()
        try:
            following = link_at(self._source, at)
        except Undecodable as error:
            self._wrong.append(f"what follows {self._came} samples cannot be decoded: {error}")
        if following is not None and (following.fs, following.channels) != (self.fs, self.channels):
            self._wrong.append(
                f"after {counted(self._came, 'sample')} it goes on at {following.fs} Hz with "
                f"{counted(following.channels, 'channel')}, which is not measured"
            )
            following.close()
            following = None
        if following is None:
            self._end()
            return False
        link.close()
        self._link, self._in_link = following, 0
        self._number += 1
        return True

    def _end(self) -> None:
        self._ended = True
        if grown := self._source.grown():
            self._wrong.append(f"{grown} bytes were written to it while it was read")
        row = f"it is {self._number} sounds in a row" if self._number > 1 else ""
        said = [one for one in self._promised if one is not None]
        promised = sum(said) if len(said) == self._number else None
        is_short = promised is not None and self._came < promised
        remark = "" if is_short else self._link.remark
        self.description = replace(
            self.description,
            promised=promised,
            found=self._came,
            incomplete="; ".join(self._wrong),
            remark="; ".join(filter(None, (row, remark))),
        )
