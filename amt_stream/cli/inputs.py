"""The input of a command, and its calibration."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.sounds.piped import STANDARD_INPUT
from amt_stream.core.files import is_pipe, why
from amt_stream.core.values import NamedChannels
from amt_stream.core.words import counted, times
from amt_stream.dsp.channel_layout import MOST_CHANNELS, Layout, layout_named
from amt_stream.engine import sources
from amt_stream.engine.devices.captured import RETRY_S, SLOW_AFTER_S, SLOW_RETRY_S
from amt_stream.engine.devices.listing import InputDevice
from amt_stream.engine.devices.microphone import MicrophoneSource
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.microphone.channels import EARS, OF_EARS, heard_channels, layout_said
from amt_stream.engine.microphone.microphones import Microphone, named_microphones
from amt_stream.engine.readers.source_bytes import PipeBytes
from amt_stream.meters.calibration import (
    UNCALIBRATED,
    Calibration,
    calibrations_of,
    read_records,
    reminder_of,
    uncalibrated,
    with_corrections,
)
from amt_stream.meters.correction import Correction, read_correction, stored_corrections
from amt_stream.meters.heard_channels import HeardChannels
from amt_stream.meters.specification import (
    NONE,
    PCM,
    PCM_FS,
    CalibrationSettings,
    CorrectionSettings,
    InputSettings,
    LiveInputSettings,
)

BLOCK_MS = 10.0
LET_GO_S = 1.2
BUILT_IN = {"demo": sources.demo_source, "am-tone": sources.am_tone_source}
DEVICES = ("mic", "playback")
PLAYED = replace(UNCALIBRATED, source="nominal: playback has no sound pressure")


@dataclass(frozen=True)
class Input:
    """A source, the channels that are measured, and the calibration of each.

    pick: channels to select from the blocks of the source; None for all that it delivers
    microphones: names and channels of several microphones, each measured separately; the source
        then delivers all its channels
    runner: runner of the source if it is already running
    heard: what the channels are for, and which model hears which; None for several microphones
    """

    source: sources.Source
    channels: tuple[int, ...]
    calibration: list[Calibration]
    pick: tuple[int, ...] | None = None
    microphones: tuple[NamedChannels, ...] = ()
    runner: SourceRunner | None = None
    heard: HeardChannels | None = None

    def layouts(self, models: Sequence[str]) -> int | dict[str, Layout]:
        """The layout that each model hears, or the number of channels of a microphone."""
        if self.heard is None:
            return max(len(channels) for _, channels in self.microphones)
        return self.heard.layouts(models)

    @property
    def for_engine(self) -> list[Microphone] | None:
        """The microphones as `Engine` takes them, or None."""
        if not self.microphones:
            return None
        return named_microphones(self.microphones, self.channels, self.calibration)

    def with_offset(self, keep: bool) -> "Input":
        """The same, whose source keeps an offset of its samples if asked."""
        if keep:
            self.source.description = self.source.description.with_offset()
        return self

    def with_uncertainty(self, args: CalibrationSettings) -> "Input":
        """A copy with the uncertainties of the options."""
        return replace(self, calibration=[with_uncertainty(c, args) for c in self.calibration])

    def with_correction(self, args: CorrectionSettings) -> "Input":
        """A copy with the corrections of --correction, which are reported."""
        calibration, typed = self.calibration, typed_corrections(args)
        if typed is not None:
            self.refuse_corrections(typed)
            calibration = with_corrections(calibration, typed)
        for one in dict.fromkeys(c.correction for c in calibration if c.correction is not None):
            say(one.in_words())
        return replace(self, calibration=calibration)

    def refuse_corrections(self, given: Sequence[object]) -> None:
        """Raise WrongUsage unless there is one --correction, or one for each channel."""
        if len(given) not in (1, len(self.channels)):
            raise WrongUsage(
                f"--correction is given {times(len(given))} for "
                f"{counted(len(self.channels), 'channel')}: give it once, or once for each"
            )

    @property
    def is_microphone(self) -> bool:
        return not isinstance(self.source, sources.ThreadedSource)

    @contextmanager
    def started(self, run_in: str) -> Iterator["Input"]:
        """A copy whose microphone is running, as models take seconds to make.

        The microphone is closed if something fails before an engine takes it over.

        run_in: as for `Engine`; with "callback" the microphone is opened when the models are ready
        """
        if run_in == "callback" or not self.is_microphone:
            yield self
            return
        runner = SourceRunner(self.source)
        runner.begin()
        try:
            yield replace(self, runner=runner)
        except BaseException:
            runner.end()
            runner.join(LET_GO_S)
            raise


def open_input(
    args: InputSettings,
    source: str,
    block_ms: float = BLOCK_MS,
    models: Mapping[str, int] = OF_EARS,
    wait_for: Callable[[str, float], None] = lambda why, seconds: time.sleep(seconds),
) -> Input:
    """Open the input that --source names: one of DEVICES or BUILT_IN, - or a path.

    models: the most channels that each model takes, by name
    wait_for: while a device is missing, called with the reason and the seconds until the next try;
        it waits, and raises to give up. Called with "" once the device is there
    """
    live = args if isinstance(args, LiveInputSettings) else LiveInputSettings()
    known = args if isinstance(args, CalibrationSettings) else None
    full_scale_db = None if known is None else known.full_scale_db
    microphones = live.microphones
    if microphones and live.layout is not None:
        raise WrongUsage(
            "--layout is for the channels of one sound, and each microphone is a sound of its own: "
            "leave it out"
        )
    is_device = source in DEVICES
    if args.device is not None and not is_device:
        raise WrongUsage(f"--device is for a microphone, and --source is {source}: leave one out")
    if args.pcm is not None and source != "-":
        raise WrongUsage(f"--pcm is for standard input (--source -), and --source is {source}")
    paced = not live.fast
    if is_device and not paced:
        raise WrongUsage("--fast is for a file or a built-in sound: a microphone runs in real time")
    if is_device:
        open_it = partial(
            open_microphone,
            args.device,
            args.channels,
            args.samplerate,
            args.blocksize or round(block_ms * 1e-3 * (args.samplerate or PCM_FS)),
            full_scale_db,
            microphones=microphones,
            played=source == "playback",
            layout=live.layout,
            models=models,
        )
        if live.wait:
            return _when_it_is_there(open_it, wait_for)
        return open_it(wait=live is args and live.wait is None)
    pick = None if microphones else args.channels
    opened: sources.Source
    if source in BUILT_IN:
        fs = args.samplerate or PCM_FS
        try:
            opened = BUILT_IN[source](fs, paced=paced)
        except ValueError as error:
            raise Mistake(
                f"--samplerate is {fs}: the {source} sound has higher frequencies ({error}); give "
                f"{PCM_FS}, or leave it out"
            ) from error
    elif source == "-":
        opened, pick = _standard_input(args, live.layout, models)
    else:
        if args.samplerate is not None:
            raise WrongUsage(f"--samplerate is not for a file: {source} has its own")
        opened = _of_path(source, paced)
    heard = None
    channels = args.channels or ()
    if not microphones:
        name = STANDARD_INPUT if source == "-" else source
        heard = _heard(opened, live.layout, models, name, pick)
        channels = heard.channels
    if known is not None:
        levels = _calibrations(opened, source, full_scale_db, channels)
    else:  # for `calibrate`, which measures it
        levels = [opened.calibration or UNCALIBRATED]
    pick = pick or _picked(heard, opened)
    return Input(opened, channels, levels, pick, microphones, heard=heard)


def _heard(
    opened: sources.Source,
    layout: str | None,
    models: Mapping[str, int],
    name: str,
    chosen: Sequence[int] | None = None,
) -> HeardChannels:
    """Which channels of a source each model hears, in the layout of --layout, which it gets."""
    told = opened.description
    opened.description = told.with_layout(layout_said(told.layout, layout, chosen, name))
    heard = heard_channels(name, opened.description.layout, models, chosen)
    for note in heard.notes:
        say(note)
    return heard


def _picked(heard: HeardChannels | None, opened: sources.Source) -> tuple[int, ...] | None:
    """The channels to select, unless they are all that a source delivers."""
    if heard is None or heard.channels == tuple(range(1, opened.channels + 1)):
        return None
    return heard.channels


def _calibrations(
    opened: sources.Source, source: str, full_scale_db: float | None, channels: Sequence[int]
) -> list[Calibration]:
    """The calibration of the options or the file's comment, for all channels or for each."""
    if full_scale_db is not None:
        return [Calibration(full_scale_db)]
    found = opened.calibrations if isinstance(opened, sources.ReaderSource) else {}
    if found.keys().isdisjoint(channels):
        return [opened.calibration or UNCALIBRATED]
    say(f"{opened.name if source == '-' else source} is calibrated by its comment")
    each = [found.get(channel, UNCALIBRATED) for channel in channels]
    return each[:1] if len(set(each)) == 1 else each


def typed_corrections(args: CorrectionSettings) -> list[Correction | None] | None:
    """The corrections of --correction, with None for "none"; None without that option."""
    if args.correction is None:
        if args.correction_inverted:
            raise WrongUsage("--correction-inverted needs a file: add --correction FILE")
        return None
    return [
        None if name == NONE else read_correction(name, args.correction_inverted)
        for name in args.correction
    ]


def _when_it_is_there(
    open_it: Callable[[], Input], wait_for: Callable[[str, float], None]
) -> Input:
    reason, began = "", time.monotonic()
    while True:
        try:
            given = open_it()
        except sources.SourceError as error:
            if str(error) != reason:
                reason = str(error)
                say(f"waiting for the microphone: {reason}")
            wait_for(reason, SLOW_RETRY_S if time.monotonic() - began > SLOW_AFTER_S else RETRY_S)
        else:
            wait_for("", 0.0)
            return given


def with_uncertainty(calibration: Calibration, args: CalibrationSettings) -> Calibration:
    """A copy of a calibration with the uncertainties of the options."""
    try:
        return calibration.with_uncertainty(
            args.calibration_uncertainty, args.microphone_uncertainty
        )
    except ValueError as error:
        raise WrongUsage(f"--calibration-uncertainty, --microphone-uncertainty: {error}") from error


def _standard_input(
    args: InputSettings, layout: str | None, models: Mapping[str, int]
) -> tuple[sources.StdinSource, tuple[int, ...] | None]:
    """The sound of standard input, and the channels to pick.

    One number of --channels is how many there are; more of them choose in a stream with a header.
    """
    most, usual, channels = max(models.values()), None, args.channels
    if layout is not None:
        most, usual = MOST_CHANNELS, layout_named(layout).channels
    several = isinstance(args, LiveInputSettings) and bool(args.microphones)
    chosen = channels is not None and len(channels) > 1
    if args.pcm is not None and not several:
        _refuse_many(channels, most)
    count = usual if channels is None else max(channels)
    or_other = several or chosen or channels is None
    source = sources.StdinSource(args.pcm, args.samplerate, count, or_other=or_other)
    if source.has_header:
        say(f"standard input is {source.description.in_words}, {source.fs} Hz")
        return source, channels if chosen and not several else None
    if not several:
        _refuse_many(channels, most)
    pcm = args.pcm or PCM[0]
    say(f"standard input is read as {pcm}, {source.fs} Hz, {counted(source.channels, 'channel')}")
    return source, None


def _refuse_many(channels: tuple[int, ...] | None, most: int) -> None:
    if channels is not None and (len(channels) > 1 or channels[0] > most):
        more = "" if most > EARS else ", or more with --layout"
        raise WrongUsage(
            f"--channels is {','.join(map(str, channels))}: with --source - it is the number of "
            f"channels of raw PCM, {'1 or 2' if most == EARS else f'1 to {most}'}{more}"
        )


def _of_path(path: str, paced: bool) -> sources.ReaderSource:
    """The sound of a file, or of a pipe with a name, such as /dev/stdin or <(command)."""
    if not is_pipe(Path(path)):
        return sources.FileSource(path, paced=paced)
    try:
        source = sources.StdinSource(None, stream=PipeBytes.of_path(Path(path)), name=path)
    except TimeoutError as error:
        raise Mistake(
            f"{path} is a named pipe that no program writes: start that program first"
        ) from error
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {why(error)}") from error
    if not source.has_header:
        raise Mistake(
            f"{path} has no header of a sound file: give raw PCM to standard input, with --source -"
        )
    say(f"{path} is {source.description.in_words}, {source.fs} Hz")
    return source


def open_microphone(
    device: int | str | None,
    channels: Sequence[int] | None = None,
    fs: int | None = None,
    blocksize: int = 480,
    full_scale_db: float | None = None,
    wait: bool = True,
    microphones: tuple[NamedChannels, ...] = (),
    played: bool = False,
    layout: str | None = None,
    models: Mapping[str, int] = OF_EARS,
) -> Input:
    """Open a microphone, or playback, with the given calibration or the stored one.

    layout, models: as for `open_input`; by default there are as many channels as in the layout
    """
    asked = range(1, max(channels) + 1) if microphones and channels else channels
    if layout is not None and not channels:
        asked = range(1, layout_named(layout).channels + 1)
    source = MicrophoneSource(
        device, fs=fs, channels=asked, blocksize=blocksize, wait=wait, played=played
    )
    delivered = tuple(channels) if channels else tuple(range(1, source.channels + 1))
    choice = None if microphones else _heard(source, layout, models, repr(source.name))
    heard = delivered
    if choice is not None:
        heard = tuple(delivered[number - 1] for number in choice.channels)
    if full_scale_db is not None:
        calibration = [Calibration(full_scale_db)]
        if any(kept := stored_corrections(source.device.kept_by, heard)):
            calibration = with_corrections(calibration, kept)
    elif source.device.played:
        calibration = [PLAYED] * len(heard) if microphones else [PLAYED]
    else:
        _report_unused_calibration(source.device)
        calibration = calibrations_of(source.device.kept_by, heard)
        missing = [c for c, known in zip(heard, calibration, strict=True) if not known.calibrated]
        if reminder := reminder_of(calibration):
            say(f"{source.name}: {reminder}")
        if missing:
            if not microphones:
                calibration = uncalibrated(calibration)
            if len(missing) < len(heard):
                calibrated = ",".join(str(c) for c in heard if c not in missing)
                say(
                    f"channel {missing[0]} of {source.name!r} has no calibration, so readings are "
                    f"uncalibrated: amt-stream calibrate -c {missing[0]}"
                    + ("" if microphones else f", or measure with -c {calibrated} alone")
                )
    pick = _picked(choice, source)
    choice = None if choice is None else choice.numbered(heard)
    return Input(source, heard, calibration, pick, microphones, heard=choice)


def _report_unused_calibration(device: InputDevice) -> None:
    """Say if a calibration is stored by a name, which may belong to another microphone by now."""
    unused = device.name not in device.kept_by
    if unused and any(record.device == device.name for record in read_records()):
        say(
            f"a calibration is stored under the name {device.name!r}, which several microphones "
            "may have: it is not used; calibrate again"
        )
