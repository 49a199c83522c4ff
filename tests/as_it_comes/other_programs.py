"""Reports of levels beyond those in air, and of tables that other programs write."""

import numpy as np

from tests.as_it_comes.answers import Settings
from tests.as_it_comes.plain import Heard
from tests.as_it_comes.report import Report, murmur
from tests.data.sound_files import wav

LEVELS = ("laeq_db", "lafmax_db", "l10_db", "l90_db")
LOUD_DB, SOFT_DB = 190.0, 0.0


def swell(full_scale_db):
    """Noise that becomes 10 dB louder in 4 s."""
    x = murmur(4.0, 1, rms=0.05) * 10 ** np.linspace(0, 0.5, 4 * 48000)[:, None]
    return wav(x, encoding="f32"), Heard(x, positions="M", full_scale_db=full_scale_db)


def whale():
    return swell(LOUD_DB)


def sea():
    return swell(SOFT_DB)


def two_channels():
    x = murmur()
    x[:, 1] *= 10 ** (-20 / 20)
    return wav(x, encoding="f32"), Heard(x, full_scale_db=120.5)


def by_table(place, number, what, table):
    """The levels of two channels, which a table of calibrations says; `analyze` reads these."""
    measured = Settings("spl", None), ("laeq_db",)
    return Report(place, number, what, two_channels, *measured, table=table, ways=("analyze",))


REPORTS = [
    Report(
        "mbari-org/pbp",
        83,
        "Percentiles of levels under water, in dB re 1 uPa, lie above those in air.",
        whale,
        Settings("spl", LOUD_DB),
        LEVELS,
    ),
    Report(
        "mbari-org/pbp",
        83,
        "And spectral densities lie below 0 dB.",
        sea,
        Settings("spl", SOFT_DB),
        LEVELS,
    ),
    by_table(
        "ApamaCommunity/apama-log-analyzer",
        5,
        "A table that Excel saves begins with a byte order mark.",
        "file,channel,full_scale_db\nsound,1,120.5\nsound,2,120.5\n".encode("utf-8-sig"),
    ),
    by_table(
        "openv/openv",
        47,
        "A German Excel writes decimal commas, and semicolons between cells.",
        "file;channel;full_scale_db\r\nsound;1;120,5\r\nsound;2;120,5\r\n".encode("cp1252"),
    ),
]
