"""Sound that libsndfile does not read, by PyAV (FFmpeg) of the extra `files`."""

import importlib.util
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import Layout, surround
from amt_stream.engine.readers.libsndfile import Undecodable
from amt_stream.engine.readers.link import Link, beyond
from amt_stream.engine.readers.source_bytes import SourceBytes
from amt_stream.engine.readers.view import View

ENDINGS = (".m4a", ".aac", ".ac3", ".eac3", ".mka", ".wma", ".wv", ".ape", ".tta", ".amr")
"""Endings of sound files of these formats; videos are read too, if they are named."""

_MAGIC = {
    b"\x1aE\xdf\xa3": "Matroska or WebM",
    bytes.fromhex("3026b2758e66cf11"): "Windows Media",
    b"FLV\x01": "Flash video",
    b"\0\0\x01\xba": "MPEG video",
    b"wvpk": "WavPack",
    b"MAC ": "Monkey's Audio",
    b"TTA1": "True Audio",
    b"MPCK": "Musepack",
    b"#!AMR": "AMR",
    b"DSD ": "DSD",
    b"MP+": "Musepack",
    b"\x7f\xfe\x80\x01": "DTS",
    b".RMF": "RealMedia",
}
_SURE, _SHORTEST, _LONGEST, _PACKET = 3, 64, 1 << 13, 188
_TOLERANCE_S = 0.1
"""By which lengths that count in frames or milliseconds may differ from the sound."""

_POSITIONS = {
    "FL": "L",
    "FR": "R",
    "FC": "C",
    "LFE": "LFE",
    "FLC": "Lc",
    "FRC": "Rc",
    "BC": "Cs",
    **{name: name for name in ("BL", "BR", "SL", "SR")},
    "TC": "Tc",
    "TFL": "Ltf",
    "TFC": "Ctf",
    "TFR": "Rtf",
    "TSL": "Lts",
    "TSR": "Rts",
    "TBL": "Ltr",
    "TBC": "Ctr",
    "TBR": "Rtr",
    "WL": "Lw",
    "WR": "Rw",
    "LFE2": "LFE2",
}
_WITHOUT_LENGTH = {"aac", "ac3", "eac3", "amr", "mp3", "mpeg", "mpegts"}
_BITS = {"u8": 8, "s16": 16, "s32": 16, "s64": 16}
"""Bits of a converter by FFmpeg's format of samples; those that are not here have no end."""

_KINDS = {"u8": "u1", "s16": "i2", "s32": "i4", "s64": "i8", "flt": "f4", "dbl": "f8"}
"""NumPy's names of FFmpeg's formats of samples."""

_PCM = re.compile(r"pcm_[su](\d+)")
_NAMES = {"ac3": "AC-3", "eac3": "E-AC-3", "mp3float": "MP3", "opus": "Opus", "vorbis": "Vorbis"}

# What FFmpeg reads ahead of a stream to know its format.
_AT_ONCE = {"probesize": "65536", "analyzeduration": "100000"}


def name_of(source: SourceBytes) -> str:
    """The name of a format of which FFmpeg knows more than libsndfile; "" for all others."""
    head = source.at(0, 12)
    if head[4:8] == b"ftyp" or head[4:8] == b"moov":
        return "MP4 or M4A"
    if head[:4] == b"RIFF" and head[8:] == b"AVI ":
        return "AVI"
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if all(source.at(k * _PACKET, 1) == b"G" for k in range(_SURE)):
        return "an MPEG transport stream"
    if _is_adts(source):
        return "AAC"
    return "AC-3" if _is_ac3(source) else ""


def _is_adts(source: SourceBytes) -> bool:
    """Frames of AAC in a row (ISO/IEC 14496-3, 1.A.2)."""
    at = 0
    for _ in range(_SURE):
        head = source.at(at, 6)
        if len(head) < 6 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:
            return False
        at += (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return True


def _is_ac3(source: SourceBytes) -> bool:
    """Frames of AC-3 in a row, two of one length (ETSI TS 102 366)."""
    if source.at(0, 2) != b"\x0bw":
        return False
    data = source.at(0, _LONGEST)
    first = data.find(b"\x0bw", _SHORTEST)
    # At 44.1 kHz, frames differ by a word.
    seconds = (data[2 * first + more :][:2] for more in (-2, 0, 2))
    return first >= 0 and b"\x0bw" in seconds


def _is_index_last(source: SourceBytes) -> bool:
    """Whether the sound of an MP4 comes before its index (ISO/IEC 14496-12, 8.1.1)."""
    at = 0
    for _ in range(_BOXES):
        head = source.at(at, 8)
        size = int.from_bytes(head[:4], "big")
        if head[4:] in (b"mdat", b"moov") or size < 8:
            return head[4:] == b"mdat"
        at += size
    return False


_BOXES = 100


def is_installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec("av") is not None


class AvLink(Link):
    """The first sound track of a file or stream, decoded by PyAV. Raises Undecodable."""

    overlap_s = None

    def __init__(self, source: SourceBytes) -> None:
        import av

        is_stream = source.size is None
        if is_stream and source.at(4, 4) == b"ftyp" and _is_index_last(source):
            raise Undecodable("its index is behind its sound, so it cannot come through a pipe")
        self._errors = av.error.FFmpegError
        self._view = view = View(source, [(0, beyond(0, source.size))], unit=1)
        view.opened = True
        self._last: int = beyond(0, source.size)
        # Without `seek`, FFmpeg takes it for a stream.
        file: Any = SimpleNamespace(read=view.read) if is_stream else view
        try:
            self._container: Any = av.open(file, options=_AT_ONCE if is_stream else {})
        except self._errors as error:
            raise view.error or Undecodable(f"FFmpeg says: {error.strerror}") from error
        self._wrong = ""
        self._describe()
        self._decoded = self._blocks()
        self._left = np.empty((0, self.channels), np.float32)

    def _describe(self) -> None:
        """Take over what the container says of its first track."""
        tracks = self._container.streams.audio
        if not tracks or tracks[0].codec_context is None:
            raise Undecodable("it has no sound that FFmpeg decodes")
        self._track = tracks[0]
        context = self._track.codec_context
        self.fs, self.channels = int(context.sample_rate), int(context.layout.nb_channels)
        if context.format is None or self.fs < 1 or self.channels < 1:
            raise Undecodable(
                f"its header says {self.fs} Hz and {counted(self.channels, 'channel')}, of which "
                "nothing can be decoded"
            )
        self.layout = _layout_of([one.name for one in context.layout.channels])
        stored = _PCM.match(context.name)
        words = _NAMES.get(context.name, context.name.upper())
        self.encoding = f"PCM {stored[1]} bit" if stored else words
        self.bits = bits = _BITS.get(context.format.name.removesuffix("p"), 0)
        self.clips_at = ((1 << bits - 1) - 1) / (1 << bits - 1) if bits else None
        self.samples, self.promised = None, self._said()
        self.comment = self.software = ""
        self._remark = (
            f"it is the first of {counted(len(tracks), 'sound track')}" if len(tracks) > 1 else ""
        )

    def _said(self) -> int | None:
        """The samples that the container says; None if FFmpeg guesses by the bit rate."""
        track, whole = self._track, self._container
        if whole.format.name in _WITHOUT_LENGTH:
            return None
        if track.duration:
            return round(float(track.duration * track.time_base) * self.fs)
        return round(whole.duration * 1e-6 * self.fs) if whole.duration else None

    def read(self, count: int) -> NDArray[np.float32]:
        if not len(self._left):
            self._left = next(self._decoded, self._left)
        block, self._left = self._left[:count], self._left[count:]
        return block

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        packets = self._container.demux(self._track)
        while not self._wrong:
            try:
                packet = next(packets, None)
                frames = [] if packet is None else packet.decode()
            except self._errors as error:
                if self._view.error is not None:
                    raise self._view.error from error
                self._wrong = f"it is damaged: {error.strerror}"
                return
            for frame in frames:
                if (frame.sample_rate, frame.layout.nb_channels) != (self.fs, self.channels):
                    self._wrong = (
                        f"it goes on at {frame.sample_rate} Hz with "
                        f"{counted(frame.layout.nb_channels, 'channel')}, which is not measured"
                    )
                    return
                if frame.samples:
                    yield _samples(frame, self.channels)
            if packet is None:
                return

    def seek(self, sample: int) -> bool:
        return False

    def end(self) -> int:
        return self._last

    @property
    def remark(self) -> str:
        return self._remark

    def problem(self, came: int) -> str:
        near = _TOLERANCE_S * self.fs
        if self.promised is not None and abs(came - self.promised) < near:
            self.promised = came
            return ""
        return self._wrong

    def close(self) -> None:
        self._container.close()


def _layout_of(names: list[str]) -> Layout | None:
    """The layout of channels with FFmpeg's names; None if FFmpeg knows no position."""
    if len(names) == 1:
        return Layout(("M",))
    positions = [_POSITIONS.get(name, "") for name in names]
    return Layout(surround(positions)) if any(positions) else None


def _samples(frame: Any, channels: int) -> NDArray[np.float32]:
    """The samples (time, channel) of a frame as fractions of full scale."""
    form = frame.format
    kind = _KINDS[form.name.removesuffix("p")]
    # PyAV counts planes up to the first empty pointer, which at 8 channels is not there; so
    # `to_ndarray` reads from one too many.
    planes = frame.planes[: channels if form.is_planar else 1]
    count = frame.samples * (1 if form.is_planar else channels)
    flat = np.concatenate([np.frombuffer(plane, kind, count) for plane in planes])
    block = flat.reshape(channels, -1).T if form.is_planar else flat.reshape(-1, channels)
    if block.dtype.kind == "f":
        return np.ascontiguousarray(block, np.float32)
    half = 2.0 ** (8 * block.dtype.itemsize - 1)
    return ((block - (half if block.dtype.kind == "u" else 0.0)) / half).astype(np.float32)
