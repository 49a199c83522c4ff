"""The preset of a command, with its options."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from amt_stream.cli.limits import typed_limits
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.live import LiveOptions
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.core.values import ONE_OR_TWO
from amt_stream.engine.microphone.channels import EARS
from amt_stream.meters import catalog
from amt_stream.meters.limits import Limit
from amt_stream.meters.needed_models import (
    LEVELS,
    WantedColumn,
    asked_by_limits,
    models_for,
    refuse_no_such_columns,
)
from amt_stream.meters.output_settings import LimitSettings, LogSettings
from amt_stream.meters.presets import Preset, load_preset, shipped_presets
from amt_stream.meters.setting import declared
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import READINGS_TAKE, is_given, refuse_untaken

Live = TypeVar("Live", bound=LiveOptions)


def chosen_preset(args: LiveOptions | AnalyzeOptions) -> Preset:
    """The preset of --preset or of the models, with the other options."""
    limits = typed_limits(args)
    triggers = tuple(args.event) if isinstance(args, LiveOptions) else ()
    stored = isinstance(args, LiveOptions) and args.background is not None
    if args.preset is None:
        usual = ("partial",) if stored else ()
        preset = _preset_of(args.model or usual or _models_for(args, limits))
    else:
        preset = load_preset(args.preset)
    if args.model not in (None, preset.names):
        raise WrongUsage(
            f"--preset {args.preset} is for the model {','.join(preset.names)}, and --model is "
            f"{','.join(args.model or ())}: leave one out"
        )
    if stored and "partial" not in preset.names:
        raise WrongUsage(
            f"--background is for the model partial, and not for {preset.where}: leave --model and "
            "--preset out, or name partial too"
        )
    if args.field is not None and "field" not in preset.settings:
        fielded = ", ".join(catalog.names(lambda entry: "field" in entry.settings))
        raise WrongUsage(
            f"--field is for {fielded}: {preset.where} takes the sound as it is; leave it out"
        )
    _refuse_more_than_two(args, preset)
    preset = preset.with_field(args.field).with_compute(args.compute)
    limits, triggers = (*preset.limits, *limits), (*preset.triggers, *triggers)
    preset = replace(preset, limits=limits, triggers=triggers).with_audience(args.audience)
    _refuse_early(args, preset)
    return preset


def _models_for(args: LiveOptions | AnalyzeOptions, limits: Sequence[Limit]) -> tuple[str, ...]:
    """The models that the options need, which are said unless that is the default one."""
    taken = {name: declared(RowSettings, name)[0].long_flag for name in READINGS_TAKE}
    taken["audience"] = declared(LimitSettings, "audience")[0].long_flag
    options = {name: flag for name, flag in taken.items() if is_given(getattr(args, name))}
    try:
        found = models_for(_asked(args, limits), needs_levels(args), options)
    except ValueError as error:
        raise Mistake(error) from error
    needed = {name: " and ".join(reasons) for name, reasons in found.items() if reasons}
    if needed:
        told = [f"{name} (for {needed[name]})" if name in needed else name for name in found]
        say(
            f"the {'model is' if len(told) == 1 else 'models are'} {', '.join(told)}: --model LIST "
            "chooses others"
        )
    return tuple(found)


def needs_levels(args: LiveOptions | AnalyzeOptions) -> list[str]:
    """The options whose table or log is of little use without A-weighted levels."""
    found = [] if args.interval is None else [declared(RowSettings, "interval")[0].long_flag]
    if isinstance(args, LiveOptions) and args.log is not None and args.columns is None:
        found.append(declared(LogSettings, "log")[0].long_flag)
    return found


def _asked(args: LiveOptions | AnalyzeOptions, limits: Sequence[Limit]) -> list[WantedColumn]:
    found = asked_by_limits(limits)
    if isinstance(args, LiveOptions):
        found += asked_by_limits([one.limit for one in args.event if not one.is_alarm], "--event")
    typed = args.columns.split(",") if isinstance(args.columns, str) else args.columns or ()
    return found + [WantedColumn(name.strip(), "--columns") for name in typed]


def _refuse_early(args: LiveOptions | AnalyzeOptions, preset: Preset) -> None:
    """Refuse what these models lack, before a microphone is opened and models are made."""
    try:
        refuse_untaken(args, preset, lambda name: declared(RowSettings, name)[0].long_flag)
        more = [WantedColumn(name, "more_columns") for name in preset.more_columns]
        refuse_no_such_columns(preset, [*_asked(args, preset.limits), *more])
    except ValueError as error:
        raise Mistake(error) from error
    live = isinstance(args, LiveOptions) and args.interval is not None
    if live and preset.entries and LEVELS not in preset.names:
        say(
            f"the intervals of {preset.where} have no LAeq, which levels of day and night need: "
            f"add {LEVELS} to the models"
        )


def _refuse_more_than_two(args: LiveOptions | AnalyzeOptions, preset: Preset) -> None:
    """Raise WrongUsage for more than two channels if no model hears more."""
    separate = isinstance(args, LiveOptions) and args.microphones
    if separate or not isinstance(args.channels, tuple) or len(args.channels) <= EARS:
        return
    if max(preset.most_channels.values()) <= EARS:
        listed = ",".join(map(str, args.channels))
        raise WrongUsage(f"--channels is {listed}: {ONE_OR_TWO}, for {preset.where}")


def _preset_of(models: tuple[str, ...]) -> Preset:
    """The preset of this model, or the default preset with these models."""
    if len(models) == 1 and models[0] in shipped_presets():
        return load_preset(models[0])
    return load_preset().with_names(models)


def with_microphones(args: Live, preset: Preset) -> Live:
    """The options with the microphones of the preset, unless --channels was given."""
    if args.channels is not None or not preset.microphones:
        return args
    several = tuple((name, tuple(channels)) for name, channels in preset.microphones.items())
    each = tuple(c for _, channels in several for c in channels)
    return replace(args, microphones=several, channels=each)


def with_limits_and_events(preset: Preset, args: LiveOptions) -> Preset:
    """A preset, perhaps chosen later, with the options that stay with the station.

    These are --limit, --event and --audience.
    """
    preset = preset.with_audience(args.audience)
    limits = list(typed_limits(args))
    if preset.audience is not None:
        limits = [preset.audience.limit(one) for one in limits]
    limits = [one for one in limits if one not in preset.limits]
    triggers = [one for one in args.event if one not in preset.triggers]
    return replace(preset, limits=(*preset.limits, *limits), triggers=(*preset.triggers, *triggers))
