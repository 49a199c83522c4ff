"""Opening sound files and streams."""

import errno
from functools import partial
from pathlib import Path

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, require_file, why
from amt_stream.core.importing import install
from amt_stream.core.words import counted
from amt_stream.engine.readers import av_link
from amt_stream.engine.readers.libsndfile import Undecodable
from amt_stream.engine.readers.link import Link
from amt_stream.engine.readers.opening import HEAD, begins_like_file, link_at
from amt_stream.engine.readers.other_links import OtherLink
from amt_stream.engine.readers.plain_links import RawLink
from amt_stream.engine.readers.reader import SoundReader
from amt_stream.engine.readers.source_bytes import FileBytes, PipeBytes, SourceBytes
from amt_stream.meters.calibration import Calibration, calibrations_of_comment
from amt_stream.meters.specification import FASTEST_FS, PCM, PCM_CHANNELS, PCM_FS, SLOWEST_FS

LEAST_BITS = 8

_SUBTYPES = {"s16le": "PCM_16", "s24le": "PCM_24", "s32le": "PCM_32", "f32le": "FLOAT"}


class SourceError(Refusal, RuntimeError):
    """A source cannot be opened or read; the message says why in one sentence."""


def open_sound_file(path: Path) -> SoundReader:
    """A reader of a sound file. Raises SourceError for a file that cannot be read or is damaged."""
    try:
        require_file(path)
        source = FileBytes(path)
    except NotThatFile as error:
        if error.errno == errno.ENOENT:
            raise SourceError(f"there is no file {path}") from error
        raise SourceError(f"{path} {error}: give a sound file") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {why(error)}") from error
    if path.suffix.lower() == ".raw":
        source.close()
        raise SourceError(
            f"{path} is raw PCM, whose rate is unknown: give it to standard input, with "
            "--source - and --pcm"
        )
    try:
        again = partial(_first_link, source, path)
        link = again()
        assert link is not None
        refuse_invalid(link, str(path))
        return SoundReader(source, link, again)
    except Undecodable as error:
        source.close()
        raise SourceError(f"{path} is not a sound file that can be read: {error}") from error
    except BaseException:
        source.close()
        raise


def open_stream(
    source: PipeBytes,
    name: str,
    fs: int | None = None,
    channels: int | None = None,
    or_other: bool = False,
) -> SoundReader:
    """A reader of a stream with a header, or of 16-bit PCM; waits for the first bytes.

    fs, channels: of PCM
    or_other: whether a header may say another number of channels

    Raises SourceError for a stream that cannot be read, and if its header says otherwise.
    """
    link = _link_of_header(source, name)
    head = source.at(0, HEAD)
    if not head:
        raise SourceError(f"{name} ended before one whole sample came")
    if link is None and begins_like_file(head):
        raise SourceError(
            f"{name} begins with {head[:4]!r}, as sound files do, but cannot be read from a pipe: "
            "give the file, or if it is raw PCM its format (--pcm)"
        )
    if link is None:
        return open_pcm(source, PCM[0], fs or PCM_FS, channels or PCM_CHANNELS)
    _refuse_contradiction(link, name, fs=fs, channels=None if or_other else channels)
    refuse_invalid(link, name)
    return SoundReader(source, link)


def open_pcm(source: PipeBytes, pcm: str, fs: int, channels: int) -> SoundReader:
    """A reader of raw PCM in a format of PCM; does not wait."""
    return SoundReader(source, RawLink(source, fs, channels, _SUBTYPES[pcm]))


def refuse_header(source: PipeBytes, name: str, pcm: str) -> None:
    """Raise SourceError if a stream that was said to be raw PCM has the header of a sound file.

    Samples that only begin like one are PCM.
    """
    link = _link_of_header(source, name)
    if link is not None:
        _refuse_contradiction(link, name, pcm)


def _link_of_header(source: PipeBytes, name: str) -> Link | None:
    try:
        return _first_link(source, None)
    except Undecodable as error:
        raise SourceError(f"{name} cannot be read: {error}") from error


def _refuse_contradiction(
    link: Link, name: str, pcm: str = "", fs: int | None = None, channels: int | None = None
) -> None:
    wrong = [f"--pcm {pcm} (in Python, give format=None)"] if pcm else []
    wrong += [f"--samplerate {fs}"] if fs not in (None, link.fs) else []
    wrong += [f"--channels {channels}"] if channels not in (None, link.channels) else []
    if wrong:
        link.close()
        raise SourceError(
            f"{name} has a header, which says {link.encoding}, {link.fs} Hz, "
            f"{counted(link.channels, 'channel')}: leave out {' and '.join(wrong)}"
        )


def _first_link(source: SourceBytes, path: Path | None) -> Link | None:
    """The first link; None for a stream without a header that is known. Raises Undecodable."""
    name, refusal = av_link.name_of(source), None
    try:
        if not name and (link := link_at(source, 0)) is not None:
            return link
    except Undecodable as error:
        refusal = error
    if refusal is None and not name:
        return None if path is None else OtherLink(path, source.size or 0)
    # Of what it does not recognize here, FFmpeg would guess.
    if av_link.is_installed():
        try:
            return av_link.AvLink(source)
        except Undecodable as error:
            raise refusal or Undecodable(f"it is {name}, and {error}") from error
    more = f"{refusal}; the extra" if refusal else f"it is {name}, which the extra"
    raise Undecodable(f"{more} `files` reads{' more' * bool(refusal)}: {install('files')}")


def refuse_invalid(link: Link, name: str) -> None:
    """Close a link whose sound is none, and raise SourceError."""
    if link.samples == 0:
        refusal = "has no samples: its length is zero"
    elif not SLOWEST_FS <= link.fs <= FASTEST_FS:
        refusal = (
            f"has a sampling rate of {link.fs} Hz: give a sound of {SLOWEST_FS} to {FASTEST_FS} Hz"
        )
    elif link.bits < LEAST_BITS and link.encoding.startswith("PCM"):
        refusal = f"has samples of {link.bits} bit: give one of {LEAST_BITS} bits or more"
    else:
        return
    link.close()
    raise SourceError(f"{name} {refusal}")


def calibrations_in(path: Path) -> dict[int, Calibration]:
    """Calibrations by channel (1, 2, ...) in a recording of this package; {} for other files.

    Omits channels that were not calibrated; {} also for an unreadable file.

    Raises SourceError for a recording of this package with an invalid calibration.
    """
    if path.suffix.lower() not in (".flac", ".wav"):
        return {}
    try:
        reader = open_sound_file(path)
    except SourceError:
        return {}
    try:
        return calibrations_of_reader(reader, path.name)
    finally:
        reader.close()


def calibrations_of_reader(reader: SoundReader, name: str) -> dict[int, Calibration]:
    """The same of a file or stream that is open."""
    try:
        return calibrations_of_comment(reader.comment, reader.software, name)
    except ValueError as error:
        raise SourceError(error) from error
