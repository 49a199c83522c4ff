"""Which format begins at a position, and the link that reads it."""

from amt_stream.engine.readers import flac
from amt_stream.engine.readers.containers import kind_of, read_header
from amt_stream.engine.readers.libsndfile import Undecodable
from amt_stream.engine.readers.link import Link
from amt_stream.engine.readers.mpeg import find_frame, is_mpeg, tag_end
from amt_stream.engine.readers.ogg import is_ogg
from amt_stream.engine.readers.packed_links import FlacLink, MpegLink, ogg_link
from amt_stream.engine.readers.plain_links import container_link
from amt_stream.engine.readers.source_bytes import SourceBytes

HEAD = 40
"""Bytes by which a format is recognized."""

_BEGINNINGS = (
    *b"RIFF RIFX RF64 BW64 riff FORM caff fLaC OggS ID3 .snd NIST_1A fap 2BIT PVF1 MATLAB".split(),
    *(b" paf", b"Creative Voice File", b"Extended Instrument", b"ALawSoundFile"),
)
"""How sound files begin, of formats that a pipe can give or not; raw PCM does not."""

BEHIND_TAG = 1 << 17
"""Bytes after an ID3 tag that are searched for the first frame."""


def begins_like_file(head: bytes) -> bool:
    """Whether these first bytes are those of a sound file, even if no such file goes on so."""
    return head.startswith(_BEGINNINGS)


def link_at(source: SourceBytes, at: int) -> Link | None:
    """The sound that begins at a position; None if no format is recognized there.

    Raises Undecodable if it is recognized and cannot be decoded.
    """
    head = source.at(at, HEAD)
    if kind := kind_of(head):
        header = read_header(source, at, kind)
        if header is None:
            raise Undecodable("it has no chunk of sound")
        # In MP3 in WAVE, the frames say more than the header.
        if is_mpeg(source, header.begin):
            return MpegLink(source, header.begin)
        return container_link(source, at, header)
    if is_ogg(head):
        return ogg_link(source, at)
    begin = tag_end(source, at)
    if flac.is_flac(source.at(begin, HEAD)):
        return FlacLink(source, begin)
    if is_mpeg(source, begin):
        return MpegLink(source, begin)
    if begin > at:
        frame, _ = find_frame(source, begin, BEHIND_TAG)
        return None if frame is None else MpegLink(source, frame)
    return None
