"""Text from outside, such as the names of devices, shown or read so that it does nothing else."""

import json
import re
import unicodedata

from amt_stream.core.json_types import JsonDict

# Control characters, line ends, halves of surrogate pairs (bytes of a name that are no UTF-8), and
# what is not seen but turns, hides or joins what stands around it.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def plain(text: object) -> str:
    r"""`text` in one line, in which what is no visible character is written as its number.

    Every text that a person is shown goes through here if any of it comes from outside.

    >>> print(plain("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def sentence(text: object) -> str:
    """`text` as `plain` gives it, cut where it is longer than any sentence."""
    shown = plain(text)
    return shown if len(shown) <= _SENTENCE else f"{shown[: _SENTENCE - 3]}..."


def json_object(text: str | bytes) -> JsonDict:
    """The object of JSON that `text` is; an empty one for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def brief(value: object) -> str:
    """`value` in so few letters that a sentence can hold it, whatever it is."""
    try:
        text = str(value)
    except (RecursionError, ValueError):  # nested too deeply, a number of too many digits
        return f"a {type(value).__name__} too long to be shown"
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3]}..."


_BRIEF, _SENTENCE = 100, 1500


UNFIT = ',;"#/='
"""What no name has that stands in tables, for the sake of whoever reads them."""

FORMULA = "=+-@"
"""What no such name begins with: a spreadsheet takes it for a formula, and runs it."""

NAME_RULE = (
    f"give a name that can be printed, without any of {' '.join(UNFIT)}, that begins with none of "
    f"{' '.join(FORMULA)} (a spreadsheet takes that for a formula)"
)


def fits_tables(name: str) -> bool:
    """Whether a name can stand in a table of any format, as NAME_RULE says it."""
    if not name or not name.isprintable() or set(name) & set(UNFIT):
        return False
    # Some spreadsheets take the wide forms of these signs for them too.
    return not unicodedata.normalize("NFKC", name).lstrip().startswith(tuple(FORMULA))
