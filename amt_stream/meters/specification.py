"""The specification of a measurement: each setting is declared once, and only here.

A field says its type and its default, what it may be, its sentence, its option of the command
(`flag`) and its key in a preset (`key`). From it come the rules of presets and their refusals, the
options of the commands and their help, the arguments of `measure`, and `docs/presets.md`. To add a
setting, add a field, and the code that reads it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import tzinfo
from typing import Any, ClassVar, Literal

from amt_stream.core.clock import interval_s, zone_named
from amt_stream.core.formats import LOG_FORMATS, SOUND_FORMATS, LogFormat, SoundFormat
from amt_stream.core.values import (
    Choice,
    Elapsed,
    EventTables,
    LimitTables,
    MicrophoneChannels,
    NamedChannels,
    Names,
    NotAllowed,
    Number,
    OptionTable,
    Tables,
    Text,
    parse_channels,
)
from amt_stream.meters import catalog
from amt_stream.meters.calibration import LARGEST_UNCERTAINTY_DB, MICROPHONE_UNCERTAINTY_DB
from amt_stream.meters.norms import shipped_norms
from amt_stream.meters.triggers import (
    AFTER_S,
    BEFORE_S,
    HOLD_S,
    HYSTERESIS,
    KEPT_S,
    LONGEST_S,
    Trigger,
    trigger_from_text,
)

CHAIN = "chain"
"""What a model of one's own stages is called."""

COMPUTE_DEVICES = ("cpu", "cuda")
"""Where models may run; the CPU does where there is no CUDA."""

RUNGS = ("accuracy", "blocks", "models")
"""What an engine may do without while a computer cannot keep up."""

SLOWEST_FS, FASTEST_FS = 1000, 768000
"""Sampling rates in hertz that sound is taken at."""

LONGEST_STEP_MS = 86_400_000
PCM = ("s16le", "s24le", "s32le", "f32le")
PCM_FS = 48000
PCM_CHANNELS = 2

NONE = "none"
"""What --correction names where there is to be no correction."""

EXCEEDED = 4
"""The exit status where a limit was exceeded, with --fail-above."""

LENGTHS = "1s to 24h of the clock, such as 15min (:00, :15 ...), 1h or 24h"
"""Of intervals."""

OR_ANEW = "or-anew"
"""How --restore is meant where a new run is to begin rather than nothing."""

RunIn = Literal["engine", "callback"]

Words = str | Callable[[], str]
"""A text, or what gives it when it is read: models may be added to the catalog after the import."""


@dataclass(frozen=True)
class Setting:
    """What a field of a specification declares besides its type and its default.

    flag: of the command and its metavar, as help shows them: "-r --samplerate HZ"; without - it is
        an argument that has no flag, and "" is for none
    about: one sentence
    kind: of `amt_stream.core.values`, or what gives one; None for text as it is, and for yes or no
    parse: what reads text, in place of the kind
    key: in a preset
    usual: the default in words, where it is no number
    page: the document that says more
    needs: the setting without which it says nothing
    lack: what is missing where others need this one, and the remedy
    option: what else argparse is to know
    """

    flag: str
    about: Words
    kind: Any = None
    parse: Callable[[str], Any] | None = None
    key: str = ""
    usual: Words = ""
    page: str = ""
    needs: str = ""
    lack: str = ""
    option: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rule(self) -> Any:
        """What a value may be."""
        return _now(self.kind)

    @property
    def help(self) -> str:
        """The sentence, with the default in words."""
        about, usual = _now(self.about), _now(self.usual)
        return f"{about} (default: {usual})" if usual else about


def _now(given: object) -> Any:
    return given() if callable(given) else given


def setting(
    flag: str,
    about: Words,
    kind: object = None,
    *,
    default: object = None,
    parse: Callable[[str], object] | None = None,
    key: str = "",
    usual: Words = "",
    page: str = "",
    needs: str = "",
    lack: str = "",
    **option: object,
) -> Any:
    """A field of a specification; the arguments are those of `Setting`."""
    usual = usual or _in_words(default)
    said = Setting(flag, about, kind, parse, key, usual, page, needs, lack, option)
    return field(default=default, metadata={"setting": said})


def switch(flag: str, about: Words, needs: str = "") -> Any:
    """A field that is false unless the flag is typed."""
    return setting(flag, about, default=False, needs=needs)


def _in_words(default: object) -> str:
    """A default that is a number, or several."""
    if isinstance(default, tuple):
        return ",".join(map(_in_words, default))
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if is_number else ""


def changed(group: type, name: str, default: Any = MISSING, **otherwise: Any) -> Any:
    """The field of a group as one command has it: with another sentence, or another default."""
    said, usual = declared(group, name)
    default = usual if default is MISSING else default
    return field(default=default, metadata={"setting": replace(said, **otherwise)})


def declared(group: type, name: str) -> tuple[Setting, Any]:
    """Declaration and default of one setting of a group."""
    return next((one, usual) for known, one, usual in settings_in(group) if known == name)


def settings_in(group: type) -> Iterator[tuple[str, Setting, Any]]:
    """Name, declaration and default of each setting of a group, in order."""
    for one in fields(group):
        if "setting" in one.metadata:
            yield one.name, one.metadata["setting"], one.default


@dataclass(frozen=True)
class PresetSettings:
    """What a preset says of itself."""

    description: str = setting("", "a line for people", Text(), default="", key="description")


@dataclass(frozen=True)
class InputSettings:
    """The sound, and how it comes in."""

    heading: ClassVar = "input"

    source: str | None = setting(
        "--source SOURCE",
        "demo or am-tone (built-in sounds), mic, playback (what the computer plays), the path of a "
        "sound file, or - for raw PCM on standard input; by default the microphone, or the demo "
        "sound where there is none",
    )
    pcm: str | None = setting("--pcm", "sample format on standard input", Choice(PCM), usual=PCM[0])
    device: str | None = setting("-d --device", "input device: its index or part of its name")
    channels: tuple[int, ...] | None = setting(
        "-c --channels LIST",
        "channels, counted from 1: one for both ears (1) or left and right (1,2); with --source - "
        "how many channels there are, 1 or 2",
        parse=parse_channels,
    )
    samplerate: int | None = setting(
        "-r --samplerate HZ",
        "of the device, the demo sound, or standard input",
        Number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        usual=f"{PCM_FS}",
    )
    blocksize: int | None = setting(
        "-b --blocksize N",
        "samples taken at a time",
        Number(1, 192000, "samples", whole=True),
        usual="those of the preset's block_ms",
    )


@dataclass(frozen=True)
class LiveInputSettings(InputSettings):
    """The sound of a live measurement: of one microphone or of several."""

    heading: ClassVar = "input"

    microphones: tuple[NamedChannels, ...] = setting(
        "",
        "several microphones, each by itself",
        MicrophoneChannels(),
        default=(),
        key="meter.microphones",
        page="rows.md#several-microphones",
    )
    wait: bool | None = setting(
        "--wait",
        "wait for the microphone at the start too; --no-wait ends with status 3 when it is lost",
        action="yes_or_no",
        usual="what is not there at the start is refused, what is lost is waited for",
    )
    fast: bool = switch(
        "--fast", "play a file, or a built-in sound, as fast as it goes and not as if it came live"
    )
    duration: float | None = setting(
        "--duration S", "end after so many seconds of sound", Number(1e-3, 1e9, "seconds of sound")
    )


@dataclass(frozen=True)
class CalibrationSettings:
    """How loud full scale is, and how sure that is."""

    heading: ClassVar = "calibration"

    full_scale_db: float | None = setting(
        "--full-scale-db DB",
        "calibration: level in dB SPL of a full-scale sine",
        Number(0, 250, "dB SPL"),
    )
    calibration_uncertainty: float | None = setting(
        "--calibration-uncertainty DB",
        "of that level, or of the calibrator that gave the one kept for a device, expanded "
        "(k = 2): loudness is then told with a band",
        Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        usual="what `calibrate` kept; else none",
    )
    microphone_uncertainty: float | None = setting(
        "--microphone-uncertainty DB",
        "of the microphone for other sounds than the calibrator's, expanded (k = 2), where that of "
        "the calibration is known",
        Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        usual=f"{MICROPHONE_UNCERTAINTY_DB:g}, an assumption for a measurement microphone in a "
        "free field",
    )


@dataclass(frozen=True)
class CorrectionSettings:
    """The response of the microphone, and its sign."""

    heading: ClassVar = "calibration"

    correction: Sequence[str] | None = setting(
        "--correction FILE",
        "the microphone's response, taken off the sound: lines of hertz and dB (.cal, .txt, .frd). "
        f"Once for each channel where they differ; {NONE} for not the one kept for the device",
        usual="that one",
        action="append",
    )
    correction_inverted: bool = switch(
        "--correction-inverted",
        "that file says what is to be added to readings, and not the response",
    )


def settings_of(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What can be set of these models, with the words that one of them allows or another."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        for key, words in catalog.entry(name).settings.items():
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *words)))
    return found


def parse_models(text: str) -> tuple[str, ...]:
    """One model, or several that run side by side, with commas between."""
    names = tuple(text.split(","))
    beside, alone = catalog.models_side_by_side(), _alone()
    single = len(names) == 1 and names[0] in alone
    if not single and (set(names) - set(beside) or len(set(names)) < len(names)):
        raise NotAllowed(
            f"{text!r}: give one or more of {', '.join(beside)} with commas between, or one of "
            f"{', '.join(alone)}"
        )
    return names


def _alone() -> tuple[str, ...]:
    return catalog.names(lambda entry: entry.alone)


def _takers(option: catalog.ReadingsTake) -> str:
    """The models whose readings take an option, in words."""
    return ", ".join(catalog.names(lambda entry: option in entry.readings_take))


def _words_of(name: str) -> Callable[[], Choice]:
    """The words that a setting of models may be."""
    return lambda: Choice(settings_of(catalog.names())[name])


@dataclass(frozen=True)
class ModelSettings:
    """What measures."""

    heading: ClassVar = "models"

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: (
            f"what measures: one or more of "
            f"{', '.join(catalog.models_side_by_side())}, with commas "
            f"between; or one of {', '.join(_alone())}, which give the "
            "strength of modulations by auditory band"
        ),
        lambda: Names((*catalog.names(), CHAIN), catalog.models_side_by_side()),
        parse=parse_models,
        key="model.name",
        usual=f"that of the preset, {catalog.DEFAULT}",
    )
    field: str | None = setting(
        "--field",
        "where the sound was picked up: free or diffuse sound field, or at the eardrum",
        _words_of("field"),
        key="model.field",
    )
    ear_filter: str | None = setting(
        "",
        "mixed phase, 11 ms late, or linear phase, 64 ms late",
        _words_of("ear_filter"),
        key="model.ear_filter",
    )
    accuracy: str | None = setting(
        "",
        "components in groups, one by one, or in larger groups",
        _words_of("accuracy"),
        key="model.accuracy",
        page="departures.md",
    )
    constants: str | None = setting(
        "",
        "those of the standard, or of the authors' program",
        _words_of("constants"),
        key="model.constants",
    )
    stages: Sequence[Mapping[str, Any]] = setting(
        "",
        f"of `{CHAIN}`: stages of your own",
        Tables(),
        default=(),
        key="model.stages",
        page="rows.md#models-with-a-row-for-each-cell",
    )
    compute: str | None = setting(
        "--compute",
        "where the models run: on the CPU, or on a GPU by CUDA, and on the CPU where there is none",
        Choice(COMPUTE_DEVICES),
        key="engine.compute",
        usual=f"that of the preset, {COMPUTE_DEVICES[0]}",
        page="gpu.md",
    )
    preset: str | None = setting(
        "--preset NAME|PATH", "settings by name or from a TOML file", usual="those of the model"
    )


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How an engine runs the models."""

    block_ms: float = setting(
        "",
        "length of the blocks: longer ones cost less and are shown later",
        Number(1, 1000, "ms"),
        default=20.0,
        key="engine.block_ms",
    )
    run_in: RunIn = setting(
        "",
        "a thread of its own, or the sound card's callback",
        Choice(("engine", "callback")),
        default="engine",
        key="engine.run_in",
    )
    history_s: float = setting(
        "",
        "how much `Engine.history` keeps",
        Number(1, 3600, "s"),
        default=60.0,
        key="engine.history_s",
    )
    ladder: Sequence[str] = setting(
        "",
        "what the engine does without, in this order, where a computer cannot keep up",
        Names(("none", *RUNGS), RUNGS),
        default=RUNGS,
        key="engine.ladder",
        page="architecture.md#overload",
    )


@dataclass(frozen=True)
class RowSettings:
    """Which rows come of a sound, and of which part of it."""

    heading: ClassVar = "rows"

    step_ms: int | None = setting(
        "--step-ms MS",
        "a row every so many milliseconds",
        Number(1, LONGEST_STEP_MS, "ms", whole=True),
        key="meter.step_ms",
        usual="that of the preset, and 100 without one",
    )
    columns: str | Sequence[str] | None = setting(
        "--columns LIST",
        "columns of rows by name, or by a pattern such as 'laeq*' or '*_phon', with commas "
        "between; also of the last so many s, min or h: laeq_15min_db, ltl_n5_10min_phon",
        usual="a choice for each model",
    )
    from_s: float | None = setting(
        "--from S",
        "rows and statistics begin so many seconds into the sound, or 1h30m",
        Elapsed(0, 1e9),
        usual="0",
    )
    to_s: float | None = setting(
        "--to S",
        "rows and statistics end so many seconds into the sound, or 1h30m",
        Elapsed(1e-3, 1e9),
    )
    target_lufs: float | None = setting(
        "--target LUFS",
        lambda: f"of {_takers('target_lufs')}: tell loudness relative to this too, in LU",
        Number(-70, 0, "LUFS"),
    )
    dual_mono: bool = switch(
        "--dual-mono", lambda: f"of {_takers('dual_mono')}: one channel counts as two, 3.01 LU more"
    )
    interval: int | None = setting(
        "--interval LENGTH",
        "of the rows that --format writes, write instead, and beside the rows of a log keep, a "
        f"table with the statistics of each interval: {LENGTHS}",
        parse=interval_s,
    )
    zone: tzinfo | None = setting(
        "--zone NAME",
        "intervals by this zone, as Europe/Berlin or UTC",
        parse=zone_named,
        usual="this computer's",
    )


@dataclass(frozen=True)
class CsvSettings:
    """What makes CSV a table that a spreadsheet opens."""

    heading: ClassVar = "CSV"

    no_header: bool = switch(
        "--no-header",
        "CSV begins with the names of its columns, as a spreadsheet wants it; what else is told of "
        "the rows goes to standard error, as a line of JSON",
    )
    local_time: bool = switch(
        "--local-time",
        "CSV has a column local_time beside utc, by the clock of --zone, as a spreadsheet reads a "
        "date: 2026-11-22 14:00:00.250",
    )


@dataclass(frozen=True)
class LimitSettings:
    """What columns are not to be above, or below."""

    heading: ClassVar = "limits"

    limit: Sequence[str] = setting(
        "--limit --limits NORM|'COLUMN>VALUE'",
        lambda: (
            f"what columns are not to be above: one or more of {', '.join(shipped_norms())}; a "
            "TOML file; or a line such as 'laeq_15min_db>100,amber=97,hysteresis=1,hold=2' (or < "
            "for below). May be given again. Rows have the state of each, green, amber or red; "
            "without --model and --preset the models are those that the columns need"
        ),
        LimitTables(),
        default=(),
        key="limits",
        page="rows.md#limits",
        action="append",
    )
    fail_above: bool = switch(
        "--fail-above",
        f"end with status {EXCEEDED} where a limit was exceeded, and with 1 where one was never "
        "known",
    )


@dataclass(frozen=True)
class EventSettings:
    """What begins an event of sound, and what is kept of it."""

    heading: ClassVar = "events of sound"

    event: Sequence[Trigger] = setting(
        "--event 'COLUMN>VALUE'",
        "tell when a sound begins and when it has ended: 'laf_db>85', or "
        "'stl_phon>background+15', above what was exceeded for 90 % of the last 5 minutes; or "
        f"limits, while one is red. It ends {HYSTERESIS:g} below, for {HOLD_S:g} s: otherwise as "
        "'laf_db>85,hysteresis=6,hold=3', and with for=2 only what lasts 2 s. Again for others",
        EventTables(),
        default=(),
        parse=trigger_from_text,
        key="events",
        page="events.md",
        action="append",
    )
    event_folder: str | None = setting(
        "--event-folder PATH",
        "keep the last of the sound in memory, and files of each event in this folder, and of what "
        "the command replay, or the key i, asks for",
        lack="files of sound: add --event-folder PATH",
    )
    keep_sound: float | None = setting(
        "--keep-sound S",
        f"so much of the sound is in memory (default: {KEPT_S:g}); none without --event-folder",
        Number(1, 600, "seconds"),
        needs="event_folder",
    )
    event_before: float | None = setting(
        "--event-before S",
        "seconds of sound before an event that its file begins with",
        Number(0, 86400, "seconds"),
        usual=f"{BEFORE_S:g}",
        needs="event_folder",
    )
    event_after: float | None = setting(
        "--event-after S",
        "seconds after it that its file ends with",
        Number(0, 86400, "seconds"),
        usual=f"{AFTER_S:g}",
        needs="event_folder",
    )
    event_longest: float | None = setting(
        "--event-longest S",
        "seconds of one event that are kept at most",
        Number(1, 86400, "seconds"),
        usual=f"{LONGEST_S:g}",
        needs="event_folder",
    )


@dataclass(frozen=True)
class LogSettings:
    """The session's folder that rows, events and sound are written to."""

    heading: ClassVar = "log"

    log: str | None = setting(
        "--log PATH",
        "keep the rows, and what happens meanwhile, in a session's folder: a new one, or one to go "
        "on with",
        lack="a log: add --log PATH",
    )
    log_format: LogFormat | None = setting(
        "--log-format",
        f"of the rows in it (default: {LOG_FORMATS[0]}, which others can read meanwhile); csv, "
        "jsonl and parquet (extra data) are files by the hour",
        Choice(LOG_FORMATS),
        needs="log",
    )
    log_sound: SoundFormat | None = setting(
        "--log-sound",
        f"keep the sound in it too, by the hour: {SOUND_FORMATS[0]} (default; 24 bits), or wav "
        "(32-bit float, exactly what was heard)",
        Choice(SOUND_FORMATS),
        nargs="?",
        const=SOUND_FORMATS[0],
        needs="log",
    )
    restore: bool | str = setting(
        "--restore",
        "go on where the log's last run stands, as after a power cut: in a file at that place; of "
        "a microphone the time between is a gap, and averages go on. A new log begins. Where "
        f"settings are others by now it is refused; with {OR_ANEW} a new run begins instead",
        Choice((OR_ANEW,)),
        default=False,
        nargs="?",
        const=True,
        needs="log",
    )


@dataclass(frozen=True)
class StationSettings:
    """What a preset says of a station that nobody watches."""

    run: Mapping[str, Any] = setting(
        "", "options of `amt-stream serve` by name", OptionTable(), key="run", page="unattended.md"
    )


GROUPS = (
    PresetSettings,
    ModelSettings,
    EngineSettings,
    LiveInputSettings,
    CalibrationSettings,
    CorrectionSettings,
    RowSettings,
    CsvSettings,
    LimitSettings,
    EventSettings,
    LogSettings,
    StationSettings,
)
"""All settings of a measurement, by what they are of."""


def keyed() -> dict[str, Setting]:
    """The settings that may stand in a preset, by their key."""
    found = [one for group in GROUPS for _, one, _ in settings_in(group) if one.key]
    return {one.key: one for one in sorted(found, key=_section)}


_SECTIONS = ("description", "model", "engine", "meter", "limits", "run", "events")


def _section(one: Setting) -> int:
    return _SECTIONS.index(one.key.partition(".")[0])
