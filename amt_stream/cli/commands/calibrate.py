"""`amt-stream calibrate`."""

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from amt_stream.cli.inputs import Input, open_input, typed_corrections
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options.live import CalibrateOptions
from amt_stream.cli.output import draws
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.engine.devices.microphone import MicrophoneSource
from amt_stream.engine.inputs.calibrator_source import Piece, live_sound, unbroken
from amt_stream.engine.sources import FileSource, ThreadedSource
from amt_stream.meters.calibration import (
    Calibration,
    Record,
    kept_channels,
    titles_of,
    utc_now,
    write_records,
)
from amt_stream.meters.calibrator import STABLE_S, CalibratorCheck, MeasuredTone, Refused
from amt_stream.meters.correction import Correction, keep_corrections

SILENT_S = 2.0
"""Seconds after which a microphone that gives exact zeros is no longer waited for."""


def run_calibrate(args: CalibrateOptions) -> int:
    """Measure the tone and print the level of a full-scale sine; for a microphone, store it."""
    if args.list or args.remove is not None:
        return _delete(args.remove) if args.remove is not None else _list(args.format)
    corrections = typed_corrections(args)
    if args.no_tone and corrections is None:
        raise WrongUsage("--no-tone only stores a correction: name it with --correction FILE")
    source = args.source or "mic"
    alone = not args.no_tone and len(corrections or [None]) == 1
    if source == "mic" and args.channels is None and alone:
        args = replace(args, channels=(1,))  # a calibrator fits one microphone
    given = open_input(args, source)
    if corrections is not None:
        _check_corrections(given, corrections)
    if not args.no_tone:
        _calibrate(args, given)
    if corrections is not None:
        _store(given, corrections)
    return 0


def _calibrate(args: CalibrateOptions, given: Input) -> None:
    """Measure the tone, and store the result."""
    name = given.source.name
    kept_by = _identity(given)
    tone = f"a tone of {args.level:g} dB SPL at {args.frequency:g} Hz"
    say(f"listening to {_channels_text(given)} of {name} for {tone}")
    found = _tones(given, args.frequency, args.timeout)
    records = [
        Record(
            kept_by,
            channel,
            args.level,
            round(tone.level_dbfs, 4),
            round(tone.frequency, 3),
            utc_now(),
            args.calibrator_uncertainty,
            args.valid_days,
            given.source.gain_of(0),
            name,
        )
        for channel, tone in found.items()
    ]
    for record in records:
        if args.format == "json":
            print(json.dumps(record.to_dict()))
            continue
        print(
            f"{plain(name)} channel {record.channel}: full-scale sine = "
            f"{record.full_scale_db_spl:.3f} dB SPL ({record.measured_dbfs:.3f} dBFS at "
            f"{record.frequency_hz:.2f} Hz) +- {record.calibrator_uncertainty_db:g} dB (k = 2)"
        )
    if given.is_microphone:
        say(f"stored in {write_records(records)}")
    else:
        say(f"not stored, as {name} is not a device: use --full-scale-db with the level above")


def _channels_text(given: Input) -> str:
    """Which channels are measured, and how to choose others."""
    if len(given.channels) > 1:
        channels = " and ".join(map(str, given.channels))
        return f"channels {channels} at once (each needs the tone; -c 1 measures one)"
    (channel,) = given.channels
    source = given.source
    offered = source.device.channels if isinstance(source, MicrophoneSource) else source.channels
    others = [one for one in range(1, offered + 1) if one != channel]
    return f"channel {channel}" + (f" only (-c {others[0]} measures another)" if others else "")


def _check_corrections(given: Input, corrections: Sequence[Correction | None]) -> None:
    if not given.is_microphone:
        raise WrongUsage(
            f"--correction is stored for a device, and {given.source.name} is not one: give it to "
            "the command that measures"
        )
    given.refuse_corrections(corrections)


def _store(given: Input, corrections: Sequence[Correction | None]) -> None:
    """Store a correction for each channel, and say what it does."""
    each = corrections if len(corrections) > 1 else [*corrections] * len(given.channels)
    by_channel = dict(zip(given.channels, each, strict=True))
    path = keep_corrections(_identity(given), by_channel)
    for one in dict.fromkeys(filter(None, each)):
        say(one.in_words())
    if not any(each):
        say(f"no correction is stored for {given.source.name}")
    else:
        say(f"stored in {path}")


def _list(form: str) -> int:
    """Print the stored calibrations of all channels, with a number each."""
    kept = kept_channels()
    if not kept:
        say("nothing is stored yet: run amt-stream calibrate with a calibrator on the microphone")
    for number, (one, title) in enumerate(zip(kept, titles_of(kept), strict=True), 1):
        if form == "json":
            print(json.dumps({"number": number, **one.to_dict()}))
            continue
        calibration = one.calibration
        print(f"{number:3d}  {plain(title)} channel {one.channel}")
        print(f"     {plain(calibration)}")
        if due := calibration.reminder() or _due(calibration):
            print(f"     {due}")
        if calibration.correction is not None:
            print(f"     {plain(calibration.correction.in_words())}")
    return 0


def _due(calibration: Calibration) -> str:
    until = calibration.valid_until
    return "" if until is None else f"calibrate again from {until:%Y-%m-%d} on"


def _delete(number: int) -> int:
    kept = kept_channels()
    if number > len(kept):
        raise WrongUsage(
            f"--remove is {number}, and there are calibrations of {counted(len(kept), 'channel')}: "
            "--list has their numbers"
        )
    one = kept[number - 1]
    one.forget()
    say(f"deleted: {one.title} channel {one.channel}, {one.calibration}")
    return 0


def _tones(given: Input, frequency: float, timeout: float) -> dict[int, MeasuredTone]:
    """Measure the tone in each channel, in sound without missing samples."""
    ends, recorded = given.source.description.clips_at, isinstance(given.source, FileSource)
    checks = {
        channel: CalibratorCheck(given.source.fs, frequency, recorded=recorded, clips_at=ends)
        for channel in given.channels
    }
    channel = given.channels[0]
    try:
        for block, missing in unbroken(_sound(given, timeout)):
            if missing:
                _begin_again(checks)
            for column, channel in enumerate(given.channels):
                checks[channel].push(block[:, column])
            _show_progress(checks)
            if not recorded and all(check.result for check in checks.values()):
                break
        found = {}
        for channel, check in checks.items():
            found[channel] = check.finish()
        return found
    except Refused as refusal:
        several = " (-c 1 measures one channel)" if len(checks) > 1 else ""
        raise Refused(f"not calibrated; channel {channel}: {refusal}{several}") from refusal
    finally:
        _show_progress({})


def _begin_again(checks: dict[int, CalibratorCheck]) -> None:
    """Discard the tone before missing samples."""
    if any(check.verdict is not None and check.verdict.good_s for check in checks.values()):
        _show_progress({})
        say(f"samples are missing: the {STABLE_S:g} s of tone start again")
    for check in checks.values():
        if check.result is None:
            check.interrupt()


def _identity(given: Input) -> str:
    """The identity of the microphone, as several may have the same name."""
    if not isinstance(given.source, MicrophoneSource):
        return given.source.name
    device = given.source.device
    if device.played:
        raise Refused(
            f"{device.name!r} is playback of the computer and has no sound pressure: give an "
            "agreed level with --full-scale-db when measuring"
        )
    if not device.identity:
        raise Refused(
            f"the system does not identify the microphone {device.name!r}: name it with -d "
            "(amt-stream devices lists them)"
        )
    return device.identity


def _sound(given: Input, timeout: float) -> Iterator[Piece]:
    """Yield blocks of the chosen channels (time, channel) until the end or the timeout."""
    source = given.source
    if isinstance(source, ThreadedSource):
        count = 0
        try:
            for block in source.blocks():
                count += len(block)
                yield block[:, [c - 1 for c in given.channels]] if given.pick else block, 0, 0
                if count > timeout * source.fs:
                    return
        finally:
            source.stop()
        return
    end, silent_at = time.monotonic() + timeout, math.inf

    def left_s() -> float:
        nonlocal silent_at
        now = time.monotonic()
        silent_at = min(silent_at, now) if source.state == "silent" else math.inf
        if now - silent_at > SILENT_S:
            raise Refused(source.note)
        return end - now

    yield from live_sound(source, left_s)


def _show_progress(checks: dict[int, CalibratorCheck]) -> None:
    """Overwrite one line on a terminal; without checks, clear it."""
    if not draws(sys.stderr):
        return
    lines = [
        f"channel {channel}: {tone.frequency:7.1f} Hz {tone.level_dbfs:7.2f} dBFS "
        f"+- {verdict.spread_db / 2:.2f} dB {min(verdict.good_s, STABLE_S):.1f} of {STABLE_S:g} s"
        for channel, check in checks.items()
        if (verdict := check.verdict) is not None and (tone := verdict.tone) is not None
    ]
    print("\r\x1b[K" + "   ".join(lines), end="", file=sys.stderr, flush=True)
