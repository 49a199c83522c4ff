"""A count in a sentence agrees with its noun: "1 channel", "2 channels"."""

import ast
import re
from pathlib import Path

from amt_stream.core.words import counted, times

ROOT = Path(__file__).parents[2]
FEW = re.compile(r" ([a-z]+ )?(?!is\b|has\b|was\b|as\b|its\b|is\b|less\b)[a-z]{2,}s\b")
"""What may follow a number: a plural, perhaps with one word before it."""

ALWAYS_SEVERAL = {
    "dsp/functional/zwicker.py",  # arguments of a kernel
    "cli/commands/explain.py",  # a run for each band, and one more
    "cli/commands/meter.py",  # several microphones
    "meters/accumulators/histogram.py",  # classes
    "service/transports/udp.py",  # a datagram that is too large
    "sessions/marks.py",  # a text that is too long
}


def plurals_after_lengths(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, following in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(following, ast.Constant):
                length = ast.unparse(value.value).startswith("len(")
                if length and FEW.match(following.value):
                    yield f"{path}:{node.lineno}: {following.value[:30]}"


def test_no_sentence_gives_a_length_with_a_plural_that_may_be_wrong():
    found = [
        where
        for folder in ("amt_stream", "apps")
        for path in (ROOT / folder).rglob("*.py")
        if path.relative_to(ROOT / folder).as_posix() not in ALWAYS_SEVERAL
        for where in plurals_after_lengths(path)
    ]
    assert found == [], "write counted(len(...), 'channel') of amt_stream.core.words"


def test_a_count_and_its_noun():
    assert [counted(n, "channel") for n in (0, 1, 2)] == ["0 channels", "1 channel", "2 channels"]
    assert counted(2, "entry", "entries") == "2 entries"
    assert [times(n) for n in (0, 1, 2)] == ["never", "once", "2 times"]
