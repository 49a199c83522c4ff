"""The specification of a measurement: each setting is declared once, here.

A field declares its type, default, allowed values and help text, its command-line option (`flag`)
and its key in a preset (`key`). The rules and errors of presets, the options of the commands and
their help, the arguments of `measure`, and `docs/presets.md` are derived from it. To add a
setting, add a field and the code that reads it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, ClassVar, Literal

from amt_stream.core import values
from amt_stream.core.clock import interval_s, zone_named
from amt_stream.dsp.channel_layout import LayoutError, layout_named
from amt_stream.meters import catalog, output_settings
from amt_stream.meters.calibration import LARGEST_UNCERTAINTY_DB, MICROPHONE_UNCERTAINTY_DB
from amt_stream.meters.entry import ReadingsTake
from amt_stream.meters.setting import Setting, setting, settings_in, switch


@dataclass(frozen=True)
class LayoutText:
    """The layout of channels: a name, or positions."""

    def __str__(self) -> str:
        return 'a layout, such as "5.1", or positions, such as "L C R Ls Rs LFE"'

    def allows(self, value: object) -> bool:
        if not isinstance(value, str):
            return False
        try:
            layout_named(value)
        except LayoutError:
            return False
        return True

    def parse(self, text: str) -> str:
        layout_named(text)
        return text


CHAIN = "chain"
"""The name of a model built from a preset's own stages."""

COMPUTE_DEVICES = ("cpu", "cuda")
"""Where models may run; without CUDA, on the CPU."""

RUNGS = ("accuracy", "blocks", "models")
"""What an engine may give up while the computer cannot keep up."""

SLOWEST_FS, FASTEST_FS = 1000, 768000
"""The lowest and the highest sampling rate in hertz."""

LONGEST_STEP_MS = 86_400_000
PCM = ("s16le", "s24le", "s32le", "f32le")
PCM_FS = 48000
PCM_CHANNELS = 2

NONE = "none"
"""The value of --correction for no correction."""

LENGTHS = "1s to 24h, such as 15min (from :00, :15 ...), 1h or 24h"
"""How the length of an interval is written."""

RunIn = Literal["engine", "callback"]


@dataclass(frozen=True)
class PresetSettings:
    """The description of a preset."""

    description: str = setting("", "a line of text", values.Text(), default="", key="description")
    more_columns: Sequence[str] = setting(
        "",
        "columns of the rows besides the usual ones or those of --columns",
        values.ColumnNames(),
        default=(),
        key="meter.more_columns",
        page="rows.md#columns",
    )


@dataclass(frozen=True)
class InputSettings:
    """The sound source."""

    heading: ClassVar = "input"

    source: str | None = setting(
        "--source SOURCE",
        "what to measure: demo or am-tone (built-in sounds), mic, playback (what the computer "
        "plays), a sound file, or - for standard input: a stream with a header, as of WAV, or raw "
        "PCM",
        usual="the microphone; without one, screens show demo, and rows and logs are refused",
    )
    pcm: str | None = setting(
        "--pcm",
        "sample format on standard input, which has no header then",
        values.Choice(PCM),
        usual=f"that of its header, or {PCM[0]}",
    )
    device: str | None = setting("-d --device", "input device: its index or part of its name")
    channels: tuple[int, ...] | None = setting(
        "-c --channels LIST",
        "channels, counted from 1: one for both ears (1) or left and right (1,2); with --source -, "
        "one number is how many there are",
        parse=values.parse_ears,
    )
    samplerate: int | None = setting(
        "-r --samplerate HZ",
        "sampling rate of the device, the demo sound, or standard input",
        values.Number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        usual=f"{PCM_FS}",
    )
    blocksize: int | None = setting(
        "-b --blocksize N",
        "samples per block",
        values.Number(1, 192000, "samples", whole=True),
        usual="the preset's block_ms",
    )


@dataclass(frozen=True)
class LiveInputSettings(InputSettings):
    """The sound source of a live measurement: one microphone or several."""

    heading: ClassVar = "input"

    microphones: tuple[values.NamedChannels, ...] = setting(
        "",
        "several microphones, each measured separately",
        values.MicrophoneChannels(),
        default=(),
        key="meter.microphones",
        page="rows.md#several-microphones",
    )
    layout: str | None = setting(
        "--layout NAME|POSITIONS",
        "what the channels are for, if the source does not say: a name, such as 5.1 or 7.1.4, or "
        "the position of each in order, such as 'L C R Ls Rs LFE'. Of more than two channels, "
        "bs1770 weighs each by its position, and other models hear L and R",
        LayoutText(),
        key="meter.layout",
        usual="what the source says, or the usual one of its number of channels",
        page="measuring.md#channels",
    )
    keep_offset: bool = switch(
        "--keep-offset",
        "measure a constant offset of the samples, and what is slower than 0.25 Hz, as sound; "
        "otherwise it is removed from a device, a file or a stream",
    )
    wait: bool | None = setting(
        "--wait",
        "wait for the microphone at the start too; with --no-wait, end with status 3 when it is "
        "lost",
        action="yes_or_no",
        usual="refuse to start without it, and wait when it is lost",
    )
    fast: bool = switch(
        "--fast", "process a file or a built-in sound as fast as possible, not in real time"
    )
    duration: float | None = setting(
        "--duration S",
        "stop after this many seconds of sound",
        values.Number(1e-3, 1e9, "seconds of sound"),
    )


@dataclass(frozen=True)
class CalibrationSettings:
    """The level of full scale, and its uncertainty."""

    heading: ClassVar = "calibration"

    full_scale_db: float | None = setting(
        "--full-scale-db DB",
        "level of a full-scale sine in dB SPL",
        values.Number(0, 250, "dB SPL"),
    )
    calibration_uncertainty: float | None = setting(
        "--calibration-uncertainty DB",
        "expanded uncertainty (k = 2) of --full-scale-db, or of the calibrator behind the device's "
        "stored calibration; loudness then has an uncertainty band",
        values.Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        usual="as stored by `calibrate`, or none",
    )
    microphone_uncertainty: float | None = setting(
        "--microphone-uncertainty DB",
        "expanded uncertainty (k = 2) of the microphone for sounds other than the calibrator's "
        "tone; used if the uncertainty of the calibration is known",
        values.Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        usual=f"{MICROPHONE_UNCERTAINTY_DB:g}, an assumption for a measurement microphone in a "
        "free field",
    )


@dataclass(frozen=True)
class CorrectionSettings:
    """The frequency response of the microphone."""

    heading: ClassVar = "calibration"

    correction: Sequence[str] | None = setting(
        "--correction FILE",
        "frequency response of the microphone, which is compensated: a file with lines of hertz "
        "and dB (.cal, .txt, .frd). Repeat it for each channel if they differ; "
        f"{NONE} turns compensation off",
        usual="the one stored for the device",
        action="append",
    )
    correction_inverted: bool = switch(
        "--correction-inverted",
        "the file lists the correction to add to readings, not the response",
    )


def settings_of(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The settings of these models, each with all values that any of the models allows."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        for key, words in catalog.entry(name).settings.items():
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *words)))
    return found


def parse_models(text: str) -> tuple[str, ...]:
    """Read the names of one model, or of several that can run side by side.

    Raises NotAllowed for unknown names, repetitions and models that only run alone.
    """
    names = tuple(text.split(","))
    beside, alone = catalog.models_side_by_side(), _alone()
    single = len(names) == 1 and names[0] in alone
    if not single and (set(names) - set(beside) or len(set(names)) < len(names)):
        raise values.NotAllowed(
            f"{text!r}: give one or more of {', '.join(beside)}, separated by commas, or one of "
            f"{', '.join(alone)}"
        )
    return names


def _alone() -> tuple[str, ...]:
    return catalog.names(lambda entry: entry.alone)


def _takers(option: ReadingsTake) -> str:
    """The names of the models whose readings take an option."""
    return ", ".join(catalog.names(lambda entry: option in entry.readings_take))


def _words_of(name: str) -> Callable[[], values.Choice]:
    """The values that any model allows for a setting."""
    return lambda: values.Choice(settings_of(catalog.names()).get(name, ()))


@dataclass(frozen=True)
class ModelSettings:
    """The models, and where they run."""

    heading: ClassVar = "models"

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: (
            f"models to run: one or more of {', '.join(catalog.models_side_by_side())}, separated "
            f"by commas; or one of {', '.join(_alone())}, which give the strength of modulations "
            "by auditory band"
        ),
        lambda: values.Names((*catalog.names(), CHAIN), catalog.models_side_by_side()),
        parse=parse_models,
        key="model.name",
        usual=f"the preset's, {catalog.DEFAULT}",
    )
    field: str | None = setting(
        "--field",
        "where the sound was recorded: in a free or diffuse sound field, or at the eardrum",
        _words_of("field"),
        key="model.field",
    )
    ear_filter: str | None = setting(
        "",
        "filter of outer and middle ear: mixed phase (11 ms delay), or linear phase (64 ms)",
        _words_of("ear_filter"),
        key="model.ear_filter",
    )
    accuracy: str | None = setting(
        "",
        "how spectral components are summed: in groups, one by one, or in larger groups",
        _words_of("accuracy"),
        key="model.accuracy",
        page="departures.md",
    )
    constants: str | None = setting(
        "",
        "constants of the standard, or of the authors' program",
        _words_of("constants"),
        key="model.constants",
    )
    combine: str | None = setting(
        "--combine",
        "how `rating` combines its adjustments for tones and impulses: the sum, or the greater",
        _words_of("combine"),
        key="model.combine",
    )
    stages: Sequence[Mapping[str, Any]] = setting(
        "",
        f"for `{CHAIN}`: your own stages",
        values.Tables(),
        default=(),
        key="model.stages",
        page="rows.md#models-with-a-row-for-each-cell",
    )
    compute: str | None = setting(
        "--compute",
        "where the models run: on the CPU, or on a GPU with CUDA (on the CPU if there is none)",
        values.Choice(COMPUTE_DEVICES),
        key="engine.compute",
        usual=f"the preset's, {COMPUTE_DEVICES[0]}",
        page="gpu.md",
    )
    preset: str | None = setting(
        "--preset NAME|PATH", "preset: a name, or a TOML file", usual="the settings of the model"
    )


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How an engine runs the models."""

    block_ms: float = setting(
        "",
        "block length: longer blocks need less CPU time and add delay",
        values.Number(1, 1000, "ms"),
        default=20.0,
        key="engine.block_ms",
    )
    run_in: RunIn = setting(
        "",
        "run the models in a separate thread, or in the sound card's callback",
        values.Choice(("engine", "callback")),
        default="engine",
        key="engine.run_in",
    )
    history_s: float = setting(
        "",
        "time span of `Engine.history`",
        values.Number(1, 3600, "s"),
        default=60.0,
        key="engine.history_s",
    )
    ladder: Sequence[str] = setting(
        "",
        "what the engine gives up, in this order, when the computer cannot keep up",
        values.Names(("none", *RUNGS), RUNGS),
        default=RUNGS,
        key="engine.ladder",
        page="architecture.md#overload",
    )


@dataclass(frozen=True)
class RowSettings:
    """Which rows are written, and of which part of the sound."""

    heading: ClassVar = "rows"

    step_ms: int | None = setting(
        "--step-ms MS",
        "milliseconds between rows",
        values.Number(1, LONGEST_STEP_MS, "ms", whole=True),
        key="meter.step_ms",
        usual="the preset's, or 100 without one",
    )
    columns: str | Sequence[str] | None = setting(
        "--columns LIST",
        "columns of the rows, separated by commas: names, patterns such as 'laeq*' or '*_phon', "
        "and readings over the last s, min or h, such as laeq_15min_db or ltl_n5_10min_phon. "
        "Without --model and --preset, the models that they need are run",
        usual="a selection for each model",
    )
    from_s: float | None = setting(
        "--from S",
        "start rows and statistics at this time in the sound: seconds, or 1h30m",
        values.Elapsed(0, 1e9),
        usual="0",
    )
    to_s: float | None = setting(
        "--to S",
        "end rows and statistics at this time in the sound: seconds, or 1h30m",
        values.Elapsed(1e-3, 1e9),
    )
    target_lufs: float | None = setting(
        "--target LUFS",
        lambda: f"target loudness: adds readings relative to it, in LU ({_takers('target_lufs')})",
        values.Number(-70, 0, "LUFS"),
    )
    dual_mono: bool = switch(
        "--dual-mono", lambda: f"count one channel as two: 3.01 LU more ({_takers('dual_mono')})"
    )
    interval: int | None = setting(
        "--interval LENGTH",
        f"write statistics of each interval: {LENGTHS}. They replace the rows of --format; a log "
        "has both. Without --model and --preset, sound levels (spl) are measured too",
        parse=interval_s,
    )
    zone: tzinfo | None = setting(
        "--zone NAME",
        "time zone of intervals, such as Europe/Berlin or UTC",
        parse=zone_named,
        usual="this computer's",
    )


GROUPS = (
    PresetSettings,
    ModelSettings,
    EngineSettings,
    LiveInputSettings,
    CalibrationSettings,
    CorrectionSettings,
    RowSettings,
    output_settings.CsvSettings,
    output_settings.LimitSettings,
    output_settings.EventSettings,
    output_settings.LogSettings,
    output_settings.ReportSettings,
    output_settings.StationSettings,
)
"""All groups of settings of a measurement."""


def keyed() -> dict[str, Setting]:
    """The settings that a preset may have, by key."""
    found = [one for group in GROUPS for _, one, _ in settings_in(group) if one.key]
    return {one.key: one for one in sorted(found, key=_section)}


_SECTIONS = ("description", "model", "engine", "meter", "limits", "report", "run", "events")


def _section(one: Setting) -> int:
    return _SECTIONS.index(one.key.partition(".")[0])
