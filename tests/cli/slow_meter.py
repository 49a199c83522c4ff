"""A meter on a computer that leaves it a fifth of a core, and what it must not say then."""

import json
import re
import signal
from itertools import pairwise
from typing import NamedTuple

from tests.engine.held_back import held_back

STEP_S = 0.1
WINDOW_S = 2.0
LIMIT = "limit_laeq_2s_100"
ASKED = "laf_db", "ltl_phon"
OPTIONS = (
    *("--format", "jsonl", "--full-scale-db", "100", "--columns", "laf_db,ltl_phon"),
    *("--limit", "laeq_2s_db>100"),
)


class Told(NamedTuple):
    """Rows from the start on, of which those after `held_at_s` came while the meter was held back.

    cause: as the engine must say it
    said: on standard error
    """

    rows: list[dict]
    held_at_s: float
    summary: dict
    cause: str
    said: str


def told_while_held(meter, seconds: float) -> Told:
    """Hold a meter back, from its first row on, for so many seconds of sound."""

    def read_until(time_s: float) -> None:
        while not rows or rows[-1]["time_s"] < time_s:
            rows.append(next(coming))

    rows: list[dict] = []
    coming = (one for one in map(json.loads, meter.stdout) if "time_s" in one)
    read_until(0.0)
    held_at_s = rows[-1]["time_s"]
    with held_back(meter.pid) as cause:
        read_until(held_at_s + seconds)
    meter.send_signal(signal.SIGINT)
    out, said = meter.communicate()
    *_, last = map(json.loads, out.splitlines())
    return Told(rows, held_at_s, last["summary"], cause, said)


def refuse_a_state_of_what_was_not_measured(rows: list[dict]) -> None:
    """The limit is green only where all of its window was measured, and else unknown."""
    hole_s = 0.0
    for before, row in pairwise(rows):
        since_s = row["time_s"] - before["time_s"]
        if since_s > 1.5 * STEP_S or "gap" in row["fault"]:
            hole_s = row["time_s"]
        whole = row["time_s"] - hole_s > WINDOW_S - STEP_S / 2
        assert row[LIMIT] in (("green", "unknown") if whole else ("unknown",)), row


def refuse_a_verdict_on_what_was_dropped(told: Told) -> None:
    """What was dropped is in no statistic, and with more than 1 % of it no limit is kept."""
    summary = told.summary
    dropped_s = summary.get("missing", {}).get("buffer_s", 0.0)
    heard_s = float(re.search(r"([\d.]+) s measured", told.said)[1])
    # Sound may have been dropped after the last row too.
    assert summary["statistics"]["spl"]["measured_s"] < heard_s - dropped_s + STEP_S
    (limit,) = summary["limits"]
    too_much = dropped_s > 0.02 * limit["counted_s"]
    assert limit["verdict"] == "not known" if too_much else limit["verdict"] != "exceeded"


def refuse_what_is_off(told: Told) -> None:
    """What was asked for is there, apart from gaps, and so it is in the summary."""
    for row in told.rows[1:]:
        assert None not in [row[name] for name in ASKED], row
    statistics = told.summary["statistics"]
    assert {statistics[name]["off_s"] for name in ("spl", "moore2016")} == {0.0}


def refuse_another_cause(told: Told) -> None:
    """It says why it is slow: not its models."""
    words = f"processing cannot keep up with the sound, because {told.cause} ("
    assert words in told.said, told.said
