"""Columns of psychoacoustic annoyance, which is made of the readings of several models."""

from dataclasses import replace

from amt_stream.meters.annoyance import ANNOYANCE, inputs_of
from amt_stream.meters.rows.column import Column, Meaning, counting

FORMS = {
    "zwicker": ("Zwicker/Widmann", "PA Zwicker", "Zwicker and Widmann (Fastl and Zwicker 2007)"),
    "more": ("More 2010", "PA More", "More (2010), with tonality"),
    "di": ("Di 2016", "PA Di", "Di et al. (2016), with tonality"),
}
"""Each form in short, its symbol, and its authors."""

USUAL = tuple(f"annoyance_{form}" for form in FORMS)
"""Those that come by default, where models with all that they need run together."""


def annoyance_column(name: str, channels: int) -> Column | None:
    """The column of this name for a number of channels, or None."""
    parts = ANNOYANCE.read(name)
    if parts is None or (parts["side"] and channels < 2):
        return None
    word, symbol, authors = FORMS[parts["form"]]
    meaning = Meaning(
        f"psychoacoustic annoyance ({word})",
        "of values exceeded 5 % of the time",
        f"Annoyance, {word}",
        symbol,
        "Of loudness, sharpness, roughness and fluctuation strength exceeded in 5 % of the time. "
        f"By {authors}.",
    )
    column = meaning.column(name, "", "zwicker", parts["side"], "", "")
    return counting(replace(column, needs=tuple(inputs_of(name).values())), 0.0)
