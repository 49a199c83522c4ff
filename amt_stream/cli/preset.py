"""The preset of a command, with its options."""

from dataclasses import replace
from typing import TypeVar

from amt_stream.cli.limits import models_with, typed_limits
from amt_stream.cli.messages import WrongUsage
from amt_stream.cli.options import AnalyzeOptions, LiveOptions
from amt_stream.core.values import ONE_OR_TWO
from amt_stream.engine.channels import EARS
from amt_stream.meters import catalog
from amt_stream.meters.presets import DEFAULT, Preset, load_preset, shipped_presets

Live = TypeVar("Live", bound=LiveOptions)


def chosen_preset(args: LiveOptions | AnalyzeOptions) -> Preset:
    """The preset of --preset or of the models, with the other options."""
    limits = typed_limits(args)
    triggers = tuple(args.event) if isinstance(args, LiveOptions) else ()
    if args.preset is None:
        typed = [*limits, *(one.limit for one in triggers if not one.is_alarm)]
        preset = _preset_of(args.model or models_with(typed) or (DEFAULT,))
    else:
        preset = load_preset(args.preset)
    if args.model not in (None, preset.names):
        raise WrongUsage(
            f"--preset {args.preset} is for the model {','.join(preset.names)}, and --model is "
            f"{','.join(args.model or ())}: leave one out"
        )
    if args.field is not None and "field" not in preset.settings:
        fielded = ", ".join(catalog.names(lambda entry: "field" in entry.settings))
        raise WrongUsage(
            f"--field is for {fielded}: {preset.where} takes the sound as it is; leave it out"
        )
    _refuse_more_than_two(args, preset)
    preset = preset.with_field(args.field).with_compute(args.compute)
    return preset.with_limits(limits).with_triggers(triggers)


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
    """A preset, perhaps chosen later, with --limit and --event, which stay with the station."""
    preset = preset.with_limits([one for one in typed_limits(args) if one not in preset.limits])
    return preset.with_triggers([one for one in args.event if one not in preset.triggers])
