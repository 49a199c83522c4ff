"""A form in the manner of BS 4142: a rating level with typed penalties, against the background."""

from dataclasses import dataclass
from math import log10

from amt_stream.core.json_types import JsonDict
from amt_stream.sessions.results.parts import Part, PartsOfRows
from amt_stream.sessions.results.results import Results, ResultsError

LAEQ, LA90 = "laeq_db", "l90_db"

APART_DB = 3.0
"""The ambient level is at least so far above the residual one, for a specific level of both."""

LABEL = (
    "A form with values that its user typed, in the manner of BS 4142: the text of the standard "
    "was not at hand, and nothing is assessed by it"
)

WORDS = (
    (10.0, "a significant adverse impact is likely, depending on the context"),
    (5.0, "an adverse impact is likely, depending on the context"),
    (0.0, "an adverse impact is less likely, the lower the difference"),
)
LOW = "a low impact is likely, depending on the context"


@dataclass(frozen=True)
class Penalties:
    """Penalties in dB for the character of a sound, as its user judges it."""

    tonal: float = 0.0
    impulsive: float = 0.0
    intermittent: float = 0.0
    other: float = 0.0

    @property
    def sum(self) -> float:
        return self.tonal + self.impulsive + self.intermittent + self.other


@dataclass(frozen=True)
class Assessment:
    """The rating level of a sound against the background.

    ambient_db: LAeq with the sound
    residual_db, background_db: LAeq and LA90 without it
    """

    ambient_db: float
    residual_db: float
    background_db: float
    penalties: Penalties

    @property
    def specific_db(self) -> float:
        """LAeq of the sound alone. Raises ResultsError if the residual sound is too loud."""
        if self.ambient_db - self.residual_db < APART_DB:
            raise ResultsError(
                f"with the sound LAeq is {self.ambient_db:.1f} dB, and without it "
                f"{self.residual_db:.1f} dB: they have to be {APART_DB:g} dB apart"
            )
        return 10 * log10(10 ** (self.ambient_db / 10) - 10 ** (self.residual_db / 10))

    @property
    def rating_db(self) -> float:
        """The specific level with all penalties."""
        return self.specific_db + self.penalties.sum

    @property
    def difference_db(self) -> float:
        """The rating level above the background."""
        return self.rating_db - self.background_db

    @property
    def words(self) -> str:
        """What the difference is commonly taken for."""
        found = (words for least, words in WORDS if self.difference_db >= least)
        return next(found, LOW)

    def to_dict(self) -> JsonDict:
        names = ("ambient_db", "residual_db", "specific_db", "rating_db", "background_db")
        found: JsonDict = {name: round(getattr(self, name), 2) for name in names}
        found |= {f"{name}_penalty_db": db for name, db in vars(self.penalties).items()}
        found["difference_db"] = round(self.difference_db, 2)
        return found | {"words": self.words, "label": LABEL}


def assessment(
    results: Results, with_it: Part, without: Results, without_it: Part, penalties: Penalties
) -> Assessment:
    """The assessment of the sound in one part, against the background in another part.

    without: the measurement of the background, which may be the same

    Raises ResultsError if a level is missing, or if both levels are too close.
    """
    ambient = _level(results, LAEQ, with_it)
    found = Assessment(
        ambient, _level(without, LAEQ, without_it), _level(without, LA90, without_it), penalties
    )
    _ = found.specific_db
    return found


def _level(results: Results, name: str, part: Part) -> float:
    level = PartsOfRows(results).values([name], part.begin_s, part.end_s).get(name)
    if level is None:
        raise ResultsError(
            f"{results.name} has no {name} of this part: measure with --model spl, with rows of "
            "laf_db and laeq_1s_db"
        )
    return level
