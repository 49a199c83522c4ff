"""`amt-stream calibrate`."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from amt_stream.cli.inputs import Input, open_input, typed_corrections
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options import CalibrateOptions
from amt_stream.cli.output import draws
from amt_stream.core.safe_text import plain
from amt_stream.engine.calibrator_source import Piece, live_sound, unbroken
from amt_stream.engine.devices.microphone import MicrophoneSource
from amt_stream.engine.sources import ThreadedSource
from amt_stream.meters.calibration import Calibration, Record, kept_channels, utc_now, write_records
from amt_stream.meters.calibrator import STABLE_S, CalibratorCheck, MeasuredTone, Refused
from amt_stream.meters.correction import Correction, keep_corrections


def run_calibrate(args: CalibrateOptions) -> int:
    """Measure the tone and print what a full-scale sine stands for; for a microphone, keep it."""
    if args.list or args.remove is not None:
        return _forget(args.remove) if args.remove is not None else _list(args.format)
    corrections = typed_corrections(args)
    if args.no_tone and corrections is None:
        raise WrongUsage("--no-tone keeps a correction alone: name it with --correction FILE")
    source = args.source or "mic"
    alone = not args.no_tone and len(corrections or [None]) == 1
    if source == "mic" and args.channels is None and alone:
        args = replace(args, channels=(1,))  # a calibrator fits one microphone
    given = open_input(args, source)
    if corrections is not None:
        _refuse_unkept(given, corrections)
    if not args.no_tone:
        _calibrate(args, given)
    if corrections is not None:
        _keep(given, corrections)
    return 0


def _calibrate(args: CalibrateOptions, given: Input) -> None:
    """Measure the tone, and keep what it says."""
    name = given.source.name
    kept_by = _kept_by(given)
    tone = f"a tone of {args.level:g} dB SPL at {args.frequency:g} Hz"
    say(f"listening to {_heard(given)} of {name} for {tone}")
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
        say(f"kept in {write_records(records)}")
    else:
        say(f"not kept, as {name} is no device: use --full-scale-db with the level above")


def _heard(given: Input) -> str:
    """Which channels are listened to, and how to choose others."""
    if len(given.channels) > 1:
        channels = " and ".join(map(str, given.channels))
        return f"channels {channels} at once (each is to hear the tone; -c 1 takes one)"
    (channel,) = given.channels
    source = given.source
    offered = source.device.channels if isinstance(source, MicrophoneSource) else source.channels
    others = [one for one in range(1, offered + 1) if one != channel]
    return f"channel {channel}" + (f" alone (-c {others[0]} takes another)" if others else "")


def _refuse_unkept(given: Input, corrections: Sequence[Correction | None]) -> None:
    if not given.is_microphone:
        raise WrongUsage(
            f"--correction is kept for a device, and {given.source.name} is none: give it to the "
            "command that measures"
        )
    if len(corrections) not in (1, len(given.channels)):
        raise WrongUsage(
            f"--correction is given {len(corrections)} times for {len(given.channels)} channels: "
            "give it once, or once for each"
        )


def _keep(given: Input, corrections: Sequence[Correction | None]) -> None:
    """Keep a correction of each channel, and tell what it does."""
    each = corrections if len(corrections) > 1 else [*corrections] * len(given.channels)
    by_channel = dict(zip(given.channels, each, strict=True))
    path = keep_corrections(_kept_by(given), by_channel)
    for one in dict.fromkeys(filter(None, each)):
        say(one.in_words())
    if not any(each):
        say(f"no correction is kept for {given.source.name}")
    else:
        say(f"kept in {path}")


def _list(form: str) -> int:
    """Print what is kept of all channels, with a number each."""
    kept = kept_channels()
    if not kept:
        say("nothing is kept yet: amt-stream calibrate, with a calibrator on the microphone")
    for number, one in enumerate(kept, 1):
        if form == "json":
            print(json.dumps({"number": number, **one.to_dict()}))
            continue
        calibration = one.calibration
        print(f"{number:3d}  {plain(one.device)} channel {one.channel}")
        print(f"     {plain(calibration)}")
        if told := calibration.reminder() or _left(calibration):
            print(f"     {told}")
        if calibration.correction is not None:
            print(f"     {plain(calibration.correction.in_words())}")
    return 0


def _left(calibration: Calibration) -> str:
    until = calibration.valid_until
    return "" if until is None else f"to be made again from {until:%Y-%m-%d} on"


def _forget(number: int) -> int:
    kept = kept_channels()
    if number > len(kept):
        raise WrongUsage(
            f"--remove is {number}, and {len(kept)} channels are kept: --list has their numbers"
        )
    one = kept[number - 1]
    one.forget()
    say(f"forgotten: {one.device} channel {one.channel}, {one.calibration}")
    return 0


def _tones(given: Input, frequency: float, timeout: float) -> dict[int, MeasuredTone]:
    """The tone that each channel has heard, in sound of which nothing is missing."""
    checks = {channel: CalibratorCheck(given.source.fs, frequency) for channel in given.channels}
    channel = given.channels[0]
    try:
        for block, missing in unbroken(_sound(given, timeout)):
            if missing:
                _begin_again(checks)
            for column, channel in enumerate(given.channels):
                checks[channel].push(block[:, column])
            _show_progress(checks)
            if all(check.result for check in checks.values()):
                break
        found = {}
        for channel, check in checks.items():
            found[channel] = check.finish()
        return found
    except Refused as refusal:
        several = " (-c 1 takes one channel)" if len(checks) > 1 else ""
        raise Refused(f"not calibrated; channel {channel}: {refusal}{several}") from refusal
    finally:
        _show_progress({})


def _begin_again(checks: dict[int, CalibratorCheck]) -> None:
    """Samples are missing: what was heard before is no part of the tone."""
    if any(check.verdict is not None and check.verdict.good_s for check in checks.values()):
        _show_progress({})
        say(f"samples are missing: the {STABLE_S:g} s of the tone begin again")
    for check in checks.values():
        if check.result is None:
            check.interrupt()


def _kept_by(given: Input) -> str:
    """What tells this microphone from any other that may be called the same."""
    if not isinstance(given.source, MicrophoneSource):
        return given.source.name
    device = given.source.device
    if device.played:
        raise Refused(
            f"{device.name!r} is what the computer plays, which has no sound pressure: measure "
            "with --full-scale-db where a level is agreed on"
        )
    if not device.identity:
        raise Refused(
            f"the system does not tell which microphone {device.name!r} is: name it with -d "
            "(amt-stream devices lists them)"
        )
    return device.identity


def _sound(given: Input, timeout: float) -> Iterator[Piece]:
    """The chosen channels (time, channel), block after block, until the end or the timeout."""
    source = given.source
    if isinstance(source, ThreadedSource):
        heard = 0
        try:
            for block in source.blocks():
                heard += len(block)
                yield block[:, [c - 1 for c in given.channels]] if given.pick else block, 0, 0
                if heard > timeout * source.fs:
                    return
        finally:
            source.stop()
        return
    end = time.monotonic() + timeout
    yield from live_sound(source, lambda: end - time.monotonic())


def _show_progress(checks: dict[int, CalibratorCheck]) -> None:
    """One line that is written over, where somebody sees it; an empty one in the end."""
    if not draws(sys.stderr):
        return
    told = [
        f"channel {channel}: {tone.frequency:7.1f} Hz {tone.level_dbfs:7.2f} dBFS "
        f"+- {verdict.spread_db / 2:.2f} dB {min(verdict.good_s, STABLE_S):.1f} of {STABLE_S:g} s"
        for channel, check in checks.items()
        if (verdict := check.verdict) is not None and (tone := verdict.tone) is not None
    ]
    print("\r\x1b[K" + "   ".join(told), end="", file=sys.stderr, flush=True)
