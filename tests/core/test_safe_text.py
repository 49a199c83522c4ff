"""Text from outside does nothing to whatever shows it."""

import unicodedata

import pytest

from amt_stream.core.safe_text import plain

NAMES = ["mic", "Müller (2)", "録音 1", "ميكروفون", "\U0001f3a4 \U0001f468\u200d\U0001f527"]
HOSTILE = {
    "\x1b]0;owned\x07": r"\x1b]0;owned\x07",
    "a\nb\r": r"a\nb\r",
    "\x9b2J": r"\x9b2J",
    "fdp\u202egnp": r"fdp\u202egnp",
    "\udcff.wav": r"\udcff.wav",
    "\u2028\u2066\ufeff": r"\u2028\u2066\ufeff",
}


@pytest.mark.parametrize("name", NAMES)
def test_what_people_write_stays(name):
    assert plain(name) == name


@pytest.mark.parametrize(("given", "shown"), HOSTILE.items())
def test_what_is_not_seen_becomes_its_number(given, shown):
    assert plain(given) == shown


def test_nothing_that_acts_is_left():
    acting = {"Cc", "Cs", "Zl", "Zp"}
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    shown = plain("".join(map(chr, range(0x110000))))
    shown.encode()
    for letter in set(shown):
        assert unicodedata.category(letter) not in acting
        assert unicodedata.bidirectional(letter) not in turning
