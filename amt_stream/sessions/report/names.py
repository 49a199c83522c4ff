"""Short names of readings."""

import re

_LEVEL = re.compile(r"l([acz]?)(f|s|i)?(eq|e|peak|max|min)?(max|min)?")
_SHORT = {"integrated": "I", "momentary": "M", "short_term": "S", "lra": "LRA"}
_SHORT |= {"true_peak": "true peak", "sample_peak": "sample peak"}
_SHORT |= {"spectrum_peak": "strongest line", "spectrum_max": "strongest line max"}


def symbol(name: str) -> str:
    """The usual symbol of a column: LAeq, LTL max, N5.

    >>> [symbol(name) for name in ("laeq_15min_db", "lafmax_db", "max_ltl_phon", "ltl_n5_phon")]
    ['LAeq,15min', 'LAFmax', 'LTL max', 'LTL N5']
    """
    stem = name.rpartition("_")[0]
    first, _, rest = stem.partition("_")
    more = f",{rest.replace('_', ' ')}" if rest else ""
    if first == "lex":
        return f"LEX{more}"
    if re.fullmatch(r"l\d\d?", first):
        return f"L{first[1:]}{more}"
    level = _LEVEL.fullmatch(first) if first not in ("lra", "l") else None
    if level is not None:
        weight, fast, kind, edge = (level[k] or "" for k in range(1, 5))
        kind = "E" if kind == "e" else kind
        return f"L{weight.upper()}{fast.upper()}{kind}{edge}{more}"
    if stem.removeprefix("max_") in _SHORT:
        top = " max" if stem.startswith("max_") else ""
        return f"{_SHORT[stem.removeprefix('max_')]}{top}"
    words = stem.removeprefix("gm2002_").removeprefix("zwicker_").split("_")
    if words[0] == "max":
        words = [*words[1:], "max"]
    capital = [w.upper() if w in ("stl", "ltl") else w for w in words]
    return " ".join(re.sub(r"^n(?=\d|max|$)", "N", one) for one in capital)
