"""`amt-stream verify`."""

import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from amt_stream.cli.options.sessions import VerifyOptions
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.sessions import SessionError, Verdict, verify
from amt_stream.sessions.chain import REMOVED
from amt_stream.sessions.signature import SIGNATURE, sign

INTACT, NOT = 0, 1


def run_verify(args: VerifyOptions) -> int:
    """Print the result; 1 if something was edited or is missing."""
    verdict = verify(args.session, args.head, args.public_key)
    print("\n".join(map(plain, lines(verdict))))
    if verdict.word != "intact":
        return NOT
    if args.sign is not None:
        if not verdict.head:
            raise SessionError(f"{args.session} has no closed part yet: nothing to sign")
        utc = sign(Path(args.session), verdict.head, Path(args.sign))
        print(f"signed at {utc}: {SIGNATURE}")
    return INTACT


def lines(verdict: Verdict) -> list[str]:
    """The result as lines, the verdict first."""
    head = f", the last hash is {verdict.head}" if verdict.head else ""
    said = [f"{verdict.word}: {counted(verdict.parts, 'closed part')}{head}"]
    said += [f"edited: {one}" for one in verdict.edited]
    said += [f"missing: {one}" for one in verdict.missing]
    if verdict.removed:
        reasons = Counter(str(entry[REMOVED]) for entry in verdict.removed)
        words = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        said.append(f"removed by the meter, as it was asked to: {words}")
    why = "a meter is writing it" if verdict.running else "the run was interrupted"
    if verdict.proved:
        said.append(verdict.proved)
    elif verdict.head:
        said.append(
            "not known: whether later parts were removed; compare the last hash with a noted one "
            "(--head) or a signed one (--public-key)"
        )
    said += [f"open: {one}, not covered by a hash yet: {why}" for one in verdict.open]
    for run, fs, gap in verdict.gaps:
        seconds = gap.samples / fs if fs else math.nan  # a rate that was edited may be 0
        said.append(
            f"gap in the sound: {seconds:.3f} s ({counted(gap.samples, 'sample')}) at "
            f"{gap.time_s:.3f} s of run {run}, {_utc(gap.utc)}"
        )
    return said


def _utc(seconds: float) -> str:
    """A time as text; an edited one may be invalid."""
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OSError, OverflowError, ValueError):  # which one depends on the value
        return f"UTC {seconds}"
    return text.replace("+00:00", "Z")
