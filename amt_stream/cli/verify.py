"""`amt-stream verify`: whether a session is as it was written."""

import argparse
from datetime import UTC, datetime

from amt_stream.session import Verdict, verify

INTACT, NOT = 0, 1


def run_verify(args: argparse.Namespace) -> int:
    """Print what was found; 1 where something was edited or is missing."""
    verdict = verify(args.session)
    print("\n".join(lines(verdict)))
    return INTACT if verdict.word == "intact" else NOT


def lines(verdict: Verdict) -> list[str]:
    """What was found, a line each, the verdict first."""
    head = f", the last hash is {verdict.head}" if verdict.head else ""
    found = [f"{verdict.word}: {verdict.parts} closed parts{head}"]
    found += [f"edited: {one}" for one in verdict.edited]
    found += [f"missing: {one}" for one in verdict.missing]
    why = "a meter writes it" if verdict.running else "it was not ended in order"
    found += [f"open: {one}, which no hash covers yet: {why}" for one in verdict.open]
    for run, fs, gap in verdict.gaps:
        when = datetime.fromtimestamp(gap.utc, UTC).isoformat(timespec="milliseconds")
        found.append(
            f"gap of sound: {gap.samples / fs:.3f} s ({gap.samples} samples) at {gap.time_s:.3f} s "
            f"of run {run}, {when.replace('+00:00', 'Z')}"
        )
    return found
