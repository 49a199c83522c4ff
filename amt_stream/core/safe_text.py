"""Makes untrusted text, such as device names, safe to show and to parse."""

import json
import re
import unicodedata

from amt_stream.core.json_types import JsonDict

# Control characters, line ends, lone surrogates (bytes of a name that are not UTF-8), and invisible
# characters that reorder, hide or join their neighbors.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def plain(text: object) -> str:
    r"""`text` on one line, with each invisible character escaped.

    Every text from outside passes through here before a person sees it.

    >>> print(plain("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def sentence(text: object) -> str:
    """`plain(text)`, truncated to 1500 characters."""
    shown = plain(text)
    return shown if len(shown) <= _SENTENCE else f"{shown[: _SENTENCE - 3]}..."


def json_object(text: str | bytes) -> JsonDict:
    """Parse a JSON object; an empty dict for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def brief(value: object) -> str:
    """`str(value)`, truncated to 100 characters."""
    try:
        text = str(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number with too many digits
        return f"a {type(value).__name__} too long to be shown"
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3]}..."


_BRIEF, _SENTENCE = 100, 1500


UNFIT = ',;"#/='
"""Characters that a name in a table must not contain: they would confuse parsers."""

FORMULA = "=+-@"
"""Characters that such a name must not begin with: a spreadsheet would run it as a formula."""

NAME_RULE = (
    f"give a printable name without any of {' '.join(UNFIT)}, that begins with none of "
    f"{' '.join(FORMULA)} (a spreadsheet takes that for a formula)"
)


def fits_tables(name: str) -> bool:
    """Whether a name is valid in tables of every format (see NAME_RULE)."""
    if not name or not name.isprintable() or set(name) & set(UNFIT):
        return False
    return not _is_formula(name)


def _is_formula(text: str) -> bool:
    # Some spreadsheets accept the full-width forms of these characters too.
    return unicodedata.normalize("NFKC", text).lstrip().startswith(tuple(FORMULA))


def no_formula(text: str) -> str:
    """`plain(text)` for a cell of a table, with an apostrophe before what would be a formula."""
    shown = plain(text)
    return f"'{shown}" if _is_formula(shown) else shown


def json_comment(value: object) -> str:
    """JSON on one line that has no formula if a spreadsheet divides it at commas or semicolons."""
    return _STRING.sub(
        lambda string: _DIVIDED.sub(lambda one: f"{one[1]}\\u{ord(one[2]):04x}", string[0]),
        json.dumps(value),
    )


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_DIVIDED = re.compile(rf"(^\"|[,;]\s*)([{re.escape(FORMULA)}])")


def toml_text(value: object) -> str:
    """A value as TOML writes it, in brief."""
    if isinstance(value, str):
        return f'"{brief(value)}"'
    return str(value).lower() if isinstance(value, bool) else brief(value)
