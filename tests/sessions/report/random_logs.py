"""Random measurements with limits, gaps, mutes, turned gains, models that are switched off, clipped
sound, pauses, resets and kills, heard by everything that tells.

`disagreements` measures one, and gives in words where the window, the terminal, the wire, the log,
its report, the log when it was broken off, and a plain calculation over its rows tell another
thing of a limit, a maximum or an equivalent level; and what the report says that is not so.
"""

import math
import random
import re
import shutil
from dataclasses import dataclass, replace

import numpy as np

from amt_stream.cli.limits import report_limits
from amt_stream.cli.options.live import MeterOptions
from amt_stream.engine import Engine
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import SILENT
from amt_stream.meters.limits import Limit
from amt_stream.meters.output_settings import EXCEEDED
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows.limit_words import state_of, state_words
from amt_stream.meters.source_description import DEVICE_CLIPS_AT
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.service.publisher import Publisher
from amt_stream.sessions import Session, SessionLog
from amt_stream.sessions.outputs import FollowedReadings, LatestReadings
from amt_stream.sessions.report.content import limit_lines, readings
from amt_stream.sessions.report.page import report_page
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import read_results
from tests.sessions.report.truth import FULL, HALF, Microphone, Truth, untruths

FS = 48000
BLOCK = 960
SHORTEST = 24000
"""Samples of exact zeros from which a microphone is silent."""
COLUMNS = {
    "laf_db": 0.0,
    "lafmax_db": 0.0,
    "laeq_db": 0.0,
    "lcpeak_db": 0.0,
    "l10_3s_db": 3.0,
    "laeq_1s_db": 1.0,
    "laeq_2s_db": 2.0,
    "laeq_5s_db": 5.0,
    "laeq_1min_db": 60.0,
    "lzeq_3s_db": 3.0,
}
"""What has limits, and how long its window is."""

NOT_KNOWN = {"exceeded": None, "verdict": "not known"}

FROM_ROWS = ("broken off", "judged from the rows")
GROWING = ("lafmax_db", "laeq_db", "lcpeak_db")
"""What goes on from reset to reset."""

TOLD = ("laeq_db", "lafmax_db", "lcpeak_db", "lasmax_db", "lae_db")
"""Maxima and equivalent levels that are compared."""


@dataclass
class Measured:
    """What each of those who heard a measurement has in the end."""

    folder: object
    limits: list
    window: FollowedReadings
    terminal: LatestReadings
    wire: list
    tables: dict
    seconds: float
    truth: Truth


def random_limits(rng):
    found = []
    for column in rng.sample(list(COLUMNS), rng.randrange(2, 5)):
        below = rng.random() < 0.15
        threshold = round(rng.uniform(50.0, 85.0), 1)
        warn = threshold + rng.choice((-5, -1, -0.1)) * (-1 if below else 1)
        found.append(
            Limit(
                column,
                threshold,
                below=below,
                amber=rng.choice((None, round(warn, 1))),
                hysteresis=rng.choice((0.0, 0.5, 3.0)),
                hold_s=rng.choice((0.0, 0.5, 2.3)),
                at_end=rng.random() < 0.2,
            )
        )
    return found


def random_blocks(rng, seconds):
    """Noise whose level jumps, and some of which is clipped: blocks of 20 ms."""
    noise = np.random.default_rng(rng.randrange(1 << 30))
    blocks, until, gain = round(seconds * FS / BLOCK), 0, 0.0
    for number in range(blocks):
        if number >= until:
            until = number + rng.randrange(2, 60)
            gain = rng.choice((0.0, 10 ** rng.uniform(-4.0, -1.0)))
            clips = rng.random() < 0.05
        block = gain * noise.standard_normal((BLOCK, 1))
        if clips:
            block[::7] = block[1::7] = 1.5
        yield block.astype(np.float32)


def measure(seed, folder):
    """One measurement, and what everybody was told of it."""
    rng = random.Random(seed)
    step_ms = rng.choice((50, 100, 125, 200, 500, 1000))
    wanted_s = seconds = rng.choice((0.6, 3.0, 5.0, 8.0, 12.0))
    limits = random_limits(rng)
    uncalibrated = rng.random() < 0.1
    calibration = Calibration(100.0, source="test", calibrated=not uncalibrated)
    preset = Preset(("spl", "bs1770"), limits=tuple(limits))
    models = preset.models(FS, 1)
    sound = Sound("noise", FS, (1,), [calibration], None)
    columns = ",".join(["laf_db", *TOLD, "laeq_1min_db", "integrated_lufs", "momentary_lufs"])
    who = ("log", "window", "terminal", "wire")
    tables = {
        one: Table(preset, models, sound, RowSettings(step_ms, columns=columns)) for one in who
    }
    window = FollowedReadings(tables["window"].rows)
    terminal = LatestReadings(tables["terminal"].rows)
    messages = []
    wire = Publisher(tables["wire"], messages.extend, "here")
    format = rng.choice(("sqlite", "csv", "jsonl"))
    log = SessionLog(folder, tables["log"], format=format)
    source = Microphone(FS, 1, live=False)
    source.description = replace(source.description, clips_at=DEVICE_CLIPS_AT)
    sinks = [log, window, terminal, wire]
    made = Engine(source, models, sinks, calibration=calibration, run_in="callback", ladder=())
    paused, quiet, truth = False, rng.random() < 0.25, Truth(calibrated=not uncalibrated)
    gain, at_s = FULL, 0.0
    with log, made as engine, source:
        source.turn(gain)
        second = next(one for one in engine._models if one.name == "bs1770")
        for block in random_blocks(rng, wanted_s):
            act = 1.0 if quiet else rng.random()
            if act < 0.01:
                paused = not paused
                (engine.pause if paused else engine.unpause)()
            elif act < 0.02:
                engine.reset_readings()
            elif act < 0.03 and engine.can_undo_reset():
                engine.undo_reset()
            elif act < 0.035:
                engine.mark("here")
            elif act < 0.045:
                gain = HALF if gain is FULL else FULL
                source.turn(gain)
                (truth.begin if gain is HALF else truth.end)(truth.turned, at_s)
            elif act < 0.055:
                second.commands.put(second.switch_on if second.off else second.switch_off)
                (truth.end if second.off else truth.begin)(truth.off, at_s)
            lost = 0 if quiet or rng.random() > 0.01 else rng.choice((7, 4800, 60000, 200000))
            if lost:
                cause = rng.choice([*truth.gaps])
                lost = max(lost, SHORTEST) if cause == SILENT else lost
                truth.gaps[cause].append((at_s, at_s + lost / FS))
                source.push_after(block, lost, cause)
            else:
                source.push(block)
            seconds += lost / FS
            at_s += (lost + BLOCK) / FS
            if np.abs(block).max() >= 1.0:
                truth.clipped.append((at_s - BLOCK / FS, at_s))
        source.close()
        assert engine.wait(60), engine.error
    truth.end_s = at_s
    told = {one.kind: one.content for one in messages if one.kind != "row"}
    rows = [one.content for one in messages if one.kind == "row"]
    return Measured(folder, limits, window, terminal, [rows, told], tables, seconds, truth)


def broken_off(measured, to):
    """The same log as a kill leaves it: without its summary, its last part not closed."""
    shutil.copytree(measured.folder, to)
    (to / "summary.json").unlink()
    chain = (to / "chain.jsonl").read_text().splitlines()
    (to / "chain.jsonl").write_text("".join(f"{line}\n" for line in chain[:-1]))
    return to


def plain_resets(events):
    """When pauses begin and end, when readings were reset for good, and which time was undone."""
    turns, resets, chain, undone = [], [], [], []
    for event in events:
        if event.kind in ("paused", "continued"):
            turns.append((event.time_s, event.kind == "paused"))
        elif event.kind == "readings_reset":
            chain = [*chain, event.time_s] if chain and event.time_s <= chain[-1] + 10 else []
            chain = chain or [event.time_s]
            resets.append(event.time_s)
        elif event.kind == "reset_undone":
            resets = [one for one in resets if one not in chain]
            undone += [(min(chain), event.time_s)]
            chain = []
    return turns, resets, undone


def plainly(limit, rows, events, step_s):
    """How a limit was kept, row by row, by the words of docs/rows.md."""
    window, sign = COLUMNS[limit.column], -1 if limit.below else 1
    adds_up = "eq" in limit.column and window and not limit.below
    turns, resets, _ = plain_resets(events)
    top, warn = (
        sign * limit.threshold,
        sign * (limit.threshold if limit.amber is None else limit.amber),
    )
    level, calm, began, heard_at, before, after_reset = 0, [], None, None, None, None
    counted, times, states, holes = [], 0, [], []
    counted_s = missed_s = unjudged_s = 0.0
    for row in rows:
        at, value, said = row["time_s"], row[limit.column], row[limit.state]
        last = max((one for one in resets if one < at - 1e-6), default=None)
        if last != after_reset:  # what was counted is forgotten, and the state
            after_reset, counted, times, level, calm = last, [], 0, 0, []
            counted_s = missed_s = unjudged_s = 0.0
        on = not next((off for when, off in reversed(turns) if when < at - 1e-6), False)
        since = step_s if before is None else at - before
        faulty = {"gap", "non_finite", "stall"} & {*row["fault"].split()}
        missed = bool(faulty) or (value is None and heard_at is not None)
        hole_s = since if missed else max(0.0, round(since - step_s, 6))
        if hole_s and before is not None:
            end = at if missed else at - step_s
            holes.append((end - hole_s, end))
        counted_s += on * since
        missed_s += on * hole_s
        names = row["clipped_columns"].split()
        clipped = limit.column in names or names == ["all"]
        if value is None or said == "uncalibrated":
            states.append("uncalibrated" if said == "uncalibrated" else "unknown")
            if on:
                counted.append((at, None, None, False, states[-1], False))
                unjudged_s += max(hole_s, step_s * (states[-1] == "uncalibrated" or clipped))
            before = at
            continue
        if heard_at is None or round(at - heard_at, 6) >= max(window, step_s):
            began = at if before is None else max(before, at - step_s)
        heard_at = before = at
        heard = at - began
        whole = round(heard, 6) >= window
        sure = sign * value
        if not whole:
            sure = sure + 10 * math.log10(heard / window) if adds_up and heard > 0 else -math.inf

        def rank(back, sure=sure, value=value):
            return 2 if sure > top - back else 1 if sign * value > warn - back else 0

        if rank(0.0) >= level:
            times += on and rank(0.0) == 2 != level
            level, calm = rank(0.0), []
        elif rank(limit.hysteresis) >= level:
            calm = []
        else:
            calm.append((at, rank(limit.hysteresis)))
            if at - calm[0][0] >= limit.hold_s - 1e-6:
                level, calm = max(one for _, one in calm), []
        if window:
            inside = [max(0.0, stop - max(start, at - window)) for start, stop in holes]
            too_much = sum(inside) > 0.01 * window + 1e-6
        elif limit.column in GROWING:
            too_much = missed_s > 0.01 * counted_s + 1e-6
        else:
            too_much = missed
        states.append(judged(limit, level, clipped, too_much, whole))
        if on:
            doubt = clipped and (level == 2 if limit.below else states[-1] != "red")
            counted.append((at, value, sure, whole, states[-1], doubt))
            unjudged_s += max(hole_s, step_s * (states[-1] == "unknown" and clipped))
    if any(one >= rows[-1]["time_s"] - 1e-6 for one in resets):
        counted, times, counted_s, unjudged_s = [], 0, 0.0, 0.0  # no row has come since
    enough = unjudged_s <= 0.01 * counted_s + 1e-6
    return states, summed(limit, counted, times, sign, top, step_s, window, enough)


def judged(limit, level, clipped, too_much, whole):
    """The state at a row: never green on what was not measured."""
    if limit.below:
        unsure = too_much or (clipped and level) or not (whole or level)
    else:
        unsure = not level and (too_much or clipped or not whole)
    return "unknown" if unsure else ("green", "amber", "red")[level]


def summed(limit, counted, times, sign, top, step_s, window, enough):
    """What a summary tells of rows that counted."""
    known = [one for one in counted if one[1] is not None]
    wholes = [k for k, one in enumerate(known) if one[3]]
    worst = worst_s = None
    if known:
        worst, worst_s = known[-1][1], known[-1][0]
    if wholes and not limit.at_end:
        sure = [one for k, one in enumerate(known) if one[3] or (one[2] > top and k > wholes[0])]
        top_one = max(sure, key=lambda one: one[2])
        worst, worst_s = sign * top_one[2], top_one[0]
    seconds = {name: step_s * sum(one[4] == name for one in counted) for name in ("red", "green")}
    colors = [one for one in counted if one[4] in ("red", "amber", "green")]
    whole = bool(wholes) or not window
    enough = enough and not any(one[5] for one in counted)
    exceeded = seconds["red"] > 0 or (False if colors and whole and enough else None)
    return {
        "exceeded": exceeded,
        "times": times,
        "red_s": seconds["red"],
        "green_s": seconds["green"],
        "worst": worst,
        "worst_s": worst_s,
        "whole": whole,
    }


def verdict_of(limit, told):
    if told["exceeded"]:
        return "exceeded"
    if not told["whole"] and told["worst"] is not None:
        beyond = limit.is_beyond(told["worst"])
        return ("below so far" if limit.below else "above so far") if beyond else "kept so far"
    return "not known" if told["exceeded"] is None else "kept"


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=2e-3)
    return one == other


def disagreements(seed, folder):
    """Where two of those who tell of the measurement do not tell the same, in words."""
    made = measure(seed, folder / "night")
    session = Session(made.folder)
    rows, events = list(session.rows()), session.events()
    found = []

    def compare(what, one, other):
        if not same(one, other):
            found.append(f"seed {seed}: {what}: {one!r} against {other!r}")

    wired, told = made.wire
    at_window = [row for rows_ in made.window.take() for row in rows_]
    for who, heard in (("wire", wired), ("window", at_window)):
        compare(f"rows of the {who}", len(heard), len(rows))
        for row, other in zip(rows, heard, strict=False):
            for limit in made.limits:
                compare(f"{limit.state} at {row['time_s']}", row[limit.state], other[limit.state])
    if not rows:
        return found
    to_the_end = math.isclose(rows[-1]["time_s"], made.seconds)
    step_s = made.tables["log"].rows.step_ms / 1000
    results = read_results(made.folder)
    ends = read_results(broken_off(made, folder / "killed"))
    page = re.sub(r"<[^>]+>", "\n", report_page(results))
    summaries = {
        "summary": results.summary["limits"],
        "broken off": ends.limits,
        "judged from the rows": replace(results, summary={}).limits,
        "wire": told["summary"]["limits"],
        "window": [one.to_dict() for one in made.window.stood()],
        "terminal": [one.to_dict() for one in made.terminal.stood()],
    }
    lines = limit_lines(results, Clock.of(results))
    for at, limit in enumerate(made.limits):
        states, plain = plainly(limit, rows, events, step_s)
        undone = plain_resets(events)[2]
        for row, state in zip(rows, states, strict=True):
            if undone and limit.column in GROWING:
                break  # its values of that time are in no row
            if any(begin < row["time_s"] - 1e-6 <= end for begin, end in undone):
                continue  # it was told as after the reset, which has never been
            compare(f"{limit.words} at {row['time_s']}", row[limit.state], state)
        if limit.at_end:
            stood = made.window.stood()[at]
            red = stood.state == "red"
            known = red or (stood.state in ("amber", "green") and not stood.doubted)
            plain["exceeded"] = red if known else None
        plain["verdict"] = verdict_of(limit, plain)
        if limit.column in GROWING and (undone or not to_the_end):
            plain = summaries["summary"][at]  # what it was then, or at the end, is in no row
        for who, all_of in summaries.items():
            if plain is summaries["summary"][at] and who in FROM_ROWS:
                continue
            for key, value in plain.items():
                # Rows do not say whose model was off: what is known may be unknown there.
                if who in FROM_ROWS and made.truth.off:
                    other = all_of[at][key]
                    value = min(value, other) if key in ("green_s", "red_s") else value
                    value = other if other == NOT_KNOWN.get(key, value) else value
                compare(f"{limit.words}, {who}, {key}", all_of[at][key], value)
        compare(f"{limit.words}, report", lines[at].verdict, plain["verdict"])
        if f"\n{plain['verdict']}\n" not in page.replace("&#9632; ", "").replace(
            "&#9679; ", ""
        ).replace("&#9650; ", ""):
            found.append(f"seed {seed}: {limit.words}: no {plain['verdict']} on the page")
        if plain["worst"] is not None and f"{plain['worst']:.1f} " not in lines[at].worst:
            found.append(f"seed {seed}: {limit.words}: worst {lines[at].worst} of {plain['worst']}")
        # What is seen of the last row.
        last = made.window.row
        compare("state in the window", state_of(limit, last), last[limit.state])
        beyond, clipped = limit.is_beyond(last[limit.column]), last["clipped_columns"].split()
        early = last[limit.state] == "amber" and beyond
        if last[limit.state] == "unknown" and last[limit.column] is not None and not beyond:
            early = not {limit.column, "all"} & {*clipped}
        compare("said in the window", "so far" in state_words(limit, last), early)
        compare("said at the terminal", "so far" in state_words(limit, made.terminal.row), early)
    args = MeterOptions(fail_above=True)
    told_limits = [("", one) for one in summaries["terminal"]]
    status = 4 if any(one["exceeded"] for _, one in told_limits) else None
    compare("status", report_limits(0, told_limits, args, False) == EXCEEDED, status == EXCEEDED)
    values(results, ends, made, compare, to_the_end)
    turns = plain_resets(events)[0]
    ends_at = [*(at for at, on in turns if not on), math.inf]
    paused = [(at, next(to for to in ends_at if to > at)) for at, on in turns if on]
    for which, read in (("report", results), ("report of a killed run", ends)):
        said = untruths(made.truth, read, events, paused, made.limits)
        found += [f"seed {seed}: {which}: {one}" for one in said]
    return found


def values(results, ends, made, compare, to_the_end):
    """Maxima and equivalent levels: in the summaries, the last rows and the report."""
    summary, last = results.summary, results.last
    shown = {one.name: one.number for group in readings(results, 999).values() for one in group}
    for name in TOLD:
        compare(f"{name} on the wire", made.wire[1]["summary"][name], summary[name])
        compare(f"{name} in the window", made.window.row[name], last[name])
        compare(f"{name} at the terminal", made.terminal.row[name], last[name])
        compare(f"{name} of a log that broke off", ends.last[name], last[name])
        if summary[name] is not None:
            compare(f"{name} in the report", shown.get(name), summary[name])
        if to_the_end:
            # After a gap, a frame may begin before the last row and end after it.
            near = None not in (last[name], summary[name]) and abs(last[name] - summary[name]) < 0.1
            compare(f"{name} in the last row", near or last[name], near or summary[name])
