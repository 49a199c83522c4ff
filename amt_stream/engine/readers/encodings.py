"""How files and streams store samples: in words, and where a converter clips."""

from typing import NamedTuple

MOST_BITS = 16
"""Wider files often hold the sound of a 16-bit converter."""


class Encoding(NamedTuple):
    """An encoding of libsndfile.

    words: its name, with {} for the bits of a sample
    bits: of a sample, by default; 0 for floating-point samples
    size: bytes of a sample, 0 if samples are packed
    highest: the largest value, as a fraction of full scale, if it does not follow from the bits
    """

    words: str
    bits: int = 16
    size: int = 0
    highest: float | None = None

    def bits_of(self, said: int) -> int:
        """Bits of a decoded sample, where a header says so many of a stored one; 0 for none."""
        return said if said and "{}" in self.words else self.bits

    def clips_at(self, bits: int) -> float | None:
        """The largest value of so many bits, as a fraction of full scale; None without an end."""
        if self.highest is not None or not bits:
            return self.highest
        half = 1 << min(bits, MOST_BITS) - 1
        return (half - 1) / half


ENCODINGS = {
    "PCM_S8": Encoding("PCM {} bit", 8, 1),
    "PCM_U8": Encoding("PCM {} bit", 8, 1),
    "PCM_16": Encoding("PCM {} bit", 16, 2),
    "PCM_24": Encoding("PCM {} bit", 24, 3),
    "PCM_32": Encoding("PCM {} bit", 32, 4),
    "FLOAT": Encoding("float", 0, 4),
    "DOUBLE": Encoding("double", 0, 8),
    "ULAW": Encoding("mu-law", 14, 1, 32124 / 32768),
    "ALAW": Encoding("A-law", 13, 1, 32256 / 32768),
    "IMA_ADPCM": Encoding("IMA ADPCM"),
    "MS_ADPCM": Encoding("Microsoft ADPCM"),
    "GSM610": Encoding("GSM 6.10"),
    "VOX_ADPCM": Encoding("VOX ADPCM"),
    "NMS_ADPCM_16": Encoding("NMS ADPCM"),
    "NMS_ADPCM_24": Encoding("NMS ADPCM"),
    "NMS_ADPCM_32": Encoding("NMS ADPCM"),
    "G721_32": Encoding("G.721 ADPCM"),
    "G723_24": Encoding("G.723 ADPCM"),
    "G723_40": Encoding("G.723 ADPCM"),
    "DWVW_12": Encoding("DWVW {} bit", 12),
    "DWVW_16": Encoding("DWVW {} bit", 16),
    "DWVW_24": Encoding("DWVW {} bit", 24),
    "DPCM_8": Encoding("DPCM {} bit", 8),
    "DPCM_16": Encoding("DPCM {} bit", 16),
    "ALAC_16": Encoding("ALAC {} bit", 16),
    "ALAC_20": Encoding("ALAC {} bit", 20),
    "ALAC_24": Encoding("ALAC {} bit", 24),
    "ALAC_32": Encoding("ALAC {} bit", 32),
    "VORBIS": Encoding("Vorbis", 0),
    "OPUS": Encoding("Opus", 0),
    "MPEG_LAYER_I": Encoding("MPEG layer I", 0),
    "MPEG_LAYER_II": Encoding("MPEG layer II", 0),
    "MPEG_LAYER_III": Encoding("MP3", 0),
}
"""Encodings by libsndfile's name (ITU-T G.711 for the ends of mu-law and A-law)."""
