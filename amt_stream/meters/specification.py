"""The specification of a measurement: each setting is declared once, here.

A field declares its type, default, allowed values and help text, its command-line option (`flag`)
and its key in a preset (`key`). The rules and errors of presets, the options of the commands and
their help, the arguments of `measure`, and `docs/presets.md` are derived from it. To add a
setting, add a field and the code that reads it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import tzinfo
from typing import Any, ClassVar, Literal

from amt_stream.core.clock import interval_s, zone_named
from amt_stream.core.formats import LOG_FORMATS, PAPERS, SOUND_FORMATS, LogFormat, SoundFormat
from amt_stream.core.tables import DIALECTS, CsvDialect
from amt_stream.core.values import (
    AudienceTable,
    Choice,
    ColumnNames,
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
    parse_ears,
    parse_path,
    parse_size,
)
from amt_stream.dsp.channel_layout import LayoutError, layout_named
from amt_stream.meters import catalog
from amt_stream.meters.audience import MOST_DB, Audience, as_audience
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

EXCEEDED = 4
"""The exit status of --fail-above if a limit was exceeded."""

LENGTHS = "1s to 24h, such as 15min (from :00, :15 ...), 1h or 24h"
"""How the length of an interval is written."""

OR_ANEW = "or-anew"
"""The value of --restore that begins a new run if the last one cannot be continued."""

RunIn = Literal["engine", "callback"]

Words = str | Callable[[], str]
"""A text or a function that returns it: models may be added to the catalog after the import."""


@dataclass(frozen=True)
class Setting:
    """What a field of a specification declares besides its type and its default.

    flag: option and metavar as help shows them, "-r --samplerate HZ"; a positional argument has no
        "-"; "" means that the command has no such option
    about: help text, one sentence
    kind: a type of `amt_stream.core.values`, or a function that returns one; None for any text
        and for yes or no
    parse: function that reads the text instead of `kind`
    key: key in a preset
    usual: default in words, if it is not a number
    page: document with details
    needs: another setting that this one requires
    lack: completes "--x needs ..." in the error if a setting that others require is missing
    option: further arguments of argparse's `add_argument`
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
    def long_flag(self) -> str:
        """The option as in `--target`, without short form and metavar."""
        return next(word for word in self.flag.split() if word.startswith("--"))

    @property
    def rule(self) -> Any:
        """The allowed values."""
        return _called(self.kind)

    @property
    def help(self) -> str:
        """The help text with the default."""
        about, usual = _called(self.about), _called(self.usual)
        return f"{about} (default: {usual})" if usual else about


def _called(value: object) -> Any:
    return value() if callable(value) else value


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
    one = Setting(flag, about, kind, parse, key, usual, page, needs, lack, option)
    return field(default=default, metadata={"setting": one})


def switch(flag: str, about: Words, needs: str = "") -> Any:
    """A field that is False unless the flag is given."""
    return setting(flag, about, default=False, needs=needs)


def _in_words(default: object) -> str:
    """A default that is a number or a tuple of numbers, as text."""
    if isinstance(default, tuple):
        return ",".join(map(_in_words, default))
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if is_number else ""


def changed(group: type, name: str, default: Any = MISSING, **changes: Any) -> Any:
    """A field of a group with changes for one command, such as another help text or default."""
    one, usual = declared(group, name)
    default = usual if default is MISSING else default
    return field(default=default, metadata={"setting": replace(one, **changes)})


def declared(group: type, name: str) -> tuple[Setting, Any]:
    """Declaration and default of one setting of a group."""
    return next((one, usual) for known, one, usual in settings_in(group) if known == name)


def settings_in(group: type) -> Iterator[tuple[str, Setting, Any]]:
    """Yield name, declaration and default of each setting of a group, in order."""
    for one in fields(group):
        if "setting" in one.metadata:
            yield one.name, one.metadata["setting"], one.default


@dataclass(frozen=True)
class PresetSettings:
    """The description of a preset."""

    description: str = setting("", "a line of text", Text(), default="", key="description")
    more_columns: Sequence[str] = setting(
        "",
        "columns of the rows besides the usual ones or those of --columns",
        ColumnNames(),
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
        Choice(PCM),
        usual=f"that of its header, or {PCM[0]}",
    )
    device: str | None = setting("-d --device", "input device: its index or part of its name")
    channels: tuple[int, ...] | None = setting(
        "-c --channels LIST",
        "channels, counted from 1: one for both ears (1) or left and right (1,2); with --source -, "
        "one number is how many there are",
        parse=parse_ears,
    )
    samplerate: int | None = setting(
        "-r --samplerate HZ",
        "sampling rate of the device, the demo sound, or standard input",
        Number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        usual=f"{PCM_FS}",
    )
    blocksize: int | None = setting(
        "-b --blocksize N",
        "samples per block",
        Number(1, 192000, "samples", whole=True),
        usual="the preset's block_ms",
    )


@dataclass(frozen=True)
class LiveInputSettings(InputSettings):
    """The sound source of a live measurement: one microphone or several."""

    heading: ClassVar = "input"

    microphones: tuple[NamedChannels, ...] = setting(
        "",
        "several microphones, each measured separately",
        MicrophoneChannels(),
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
        Number(1e-3, 1e9, "seconds of sound"),
    )


@dataclass(frozen=True)
class CalibrationSettings:
    """The level of full scale, and its uncertainty."""

    heading: ClassVar = "calibration"

    full_scale_db: float | None = setting(
        "--full-scale-db DB",
        "level of a full-scale sine in dB SPL",
        Number(0, 250, "dB SPL"),
    )
    calibration_uncertainty: float | None = setting(
        "--calibration-uncertainty DB",
        "expanded uncertainty (k = 2) of --full-scale-db, or of the calibrator behind the device's "
        "stored calibration; loudness then has an uncertainty band",
        Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        usual="as stored by `calibrate`, or none",
    )
    microphone_uncertainty: float | None = setting(
        "--microphone-uncertainty DB",
        "expanded uncertainty (k = 2) of the microphone for sounds other than the calibrator's "
        "tone; used if the uncertainty of the calibration is known",
        Number(0, LARGEST_UNCERTAINTY_DB, "dB"),
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
        raise NotAllowed(
            f"{text!r}: give one or more of {', '.join(beside)}, separated by commas, or one of "
            f"{', '.join(alone)}"
        )
    return names


def _alone() -> tuple[str, ...]:
    return catalog.names(lambda entry: entry.alone)


def _takers(option: catalog.ReadingsTake) -> str:
    """The names of the models whose readings take an option."""
    return ", ".join(catalog.names(lambda entry: option in entry.readings_take))


def _words_of(name: str) -> Callable[[], Choice]:
    """The values that any model allows for a setting."""
    return lambda: Choice(settings_of(catalog.names())[name])


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
        lambda: Names((*catalog.names(), CHAIN), catalog.models_side_by_side()),
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
    stages: Sequence[Mapping[str, Any]] = setting(
        "",
        f"for `{CHAIN}`: your own stages",
        Tables(),
        default=(),
        key="model.stages",
        page="rows.md#models-with-a-row-for-each-cell",
    )
    compute: str | None = setting(
        "--compute",
        "where the models run: on the CPU, or on a GPU with CUDA (on the CPU if there is none)",
        Choice(COMPUTE_DEVICES),
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
        Number(1, 1000, "ms"),
        default=20.0,
        key="engine.block_ms",
    )
    run_in: RunIn = setting(
        "",
        "run the models in a separate thread, or in the sound card's callback",
        Choice(("engine", "callback")),
        default="engine",
        key="engine.run_in",
    )
    history_s: float = setting(
        "",
        "time span of `Engine.history`",
        Number(1, 3600, "s"),
        default=60.0,
        key="engine.history_s",
    )
    ladder: Sequence[str] = setting(
        "",
        "what the engine gives up, in this order, when the computer cannot keep up",
        Names(("none", *RUNGS), RUNGS),
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
        Number(1, LONGEST_STEP_MS, "ms", whole=True),
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
        Elapsed(0, 1e9),
        usual="0",
    )
    to_s: float | None = setting(
        "--to S",
        "end rows and statistics at this time in the sound: seconds, or 1h30m",
        Elapsed(1e-3, 1e9),
    )
    target_lufs: float | None = setting(
        "--target LUFS",
        lambda: f"target loudness: adds readings relative to it, in LU ({_takers('target_lufs')})",
        Number(-70, 0, "LUFS"),
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


@dataclass(frozen=True)
class CsvSettings:
    """Forms of CSV for spreadsheets."""

    heading: ClassVar = "CSV"

    csv_dialect: str = setting(
        "--csv-dialect",
        "form of CSV: plain, with commas and decimal points; excel, the same with a mark by which "
        "Excel knows UTF-8; excel-de, with semicolons and decimal commas too, as Excel expects in "
        "German and most languages of Europe",
        Choice(tuple(DIALECTS)),
        default="plain",
        usual="plain",
    )

    no_header: bool = switch(
        "--no-header",
        "begin CSV with the column names, for spreadsheets; the header goes to standard error as a "
        "line of JSON",
    )
    local_time: bool = switch(
        "--local-time",
        "add a column local_time to CSV, in the zone of --zone and in a form that spreadsheets "
        "read: 2026-11-22 14:00:00.250",
    )

    @property
    def dialect(self) -> CsvDialect:
        """The form of CSV."""
        return DIALECTS[self.csv_dialect]


@dataclass(frozen=True)
class LimitSettings:
    """Upper or lower limits of columns."""

    heading: ClassVar = "limits"

    limit: Sequence[str] = setting(
        "--limit --limits NORM|'COLUMN>VALUE'",
        lambda: (
            f"limits of columns: one or more of {', '.join(shipped_norms())}; a TOML file; or text "
            "such as 'laeq_15min_db>100,amber=97,hysteresis=1,hold=2' (< for a lower limit). May "
            "be repeated. Rows have the state of each limit: green, amber or red. Without --model "
            "and --preset, the models that the columns need are run"
        ),
        LimitTables(),
        default=(),
        key="limits",
        page="rows.md#limits",
        action="append",
    )
    audience: Audience | None = setting(
        "--audience DB[,DB]",
        "how much louder it is in the audience than at the microphone: the difference of "
        "A-weighted levels, or those of A and C as 4.2,6. Rows have levels in the audience "
        "besides, named ..._audience_db, and limits of levels are of these",
        AudienceTable(MOST_DB),
        parse=as_audience,
        key="meter.audience",
        page="rows.md#levels-in-the-audience",
    )
    fail_above: bool = switch(
        "--fail-above",
        f"end with status {EXCEEDED} if a limit was exceeded, and with 1 if the state of one was "
        "never known",
    )


@dataclass(frozen=True)
class EventSettings:
    """When a sound event begins, and what is stored of it."""

    heading: ClassVar = "events of sound"

    event: Sequence[Trigger] = setting(
        "--event 'COLUMN>VALUE'",
        "report when a sound begins and ends: 'laf_db>85'; 'stl_phon>background+15', relative to "
        "the value exceeded for 90 % of the last 5 minutes; or limits, while one is red. The event "
        f"ends once the value stays {HYSTERESIS:g} below for {HOLD_S:g} s; set other values with "
        "'laf_db>85,hysteresis=6,hold=3'. With for=2, events last at least 2 s. May be repeated",
        EventTables(),
        default=(),
        parse=trigger_from_text,
        key="events",
        page="events.md",
        action="append",
    )
    event_folder: str | None = setting(
        "--event-folder PATH",
        "hold the latest sound in memory, and write a sound file of each event to this folder, and "
        "of each request by the command replay or the key i",
        parse=parse_path,
        lack="sound files: add --event-folder PATH",
    )
    keep_sound: float | None = setting(
        "--keep-sound S",
        "seconds of sound held in memory",
        Number(1, 600, "seconds"),
        usual=f"{KEPT_S:g}",
        needs="event_folder",
    )
    event_before: float | None = setting(
        "--event-before S",
        "seconds of sound before an event in its file",
        Number(0, 86400, "seconds"),
        usual=f"{BEFORE_S:g}",
        needs="event_folder",
    )
    event_after: float | None = setting(
        "--event-after S",
        "seconds of sound after an event in its file",
        Number(0, 86400, "seconds"),
        usual=f"{AFTER_S:g}",
        needs="event_folder",
    )
    event_longest: float | None = setting(
        "--event-longest S",
        "longest part of one event that is stored, in seconds",
        Number(1, 86400, "seconds"),
        usual=f"{LONGEST_S:g}",
        needs="event_folder",
    )


@dataclass(frozen=True)
class LogSettings:
    """The session folder for rows, events and sound."""

    heading: ClassVar = "log"

    log: str | None = setting(
        "--log PATH",
        "log rows and events in this session folder: a new one, or one to continue. Without "
        "--model and --preset, sound levels (spl) are measured too",
        lack="a log: add --log PATH",
    )
    log_format: LogFormat | None = setting(
        "--log-format",
        f"format of its rows (default: {LOG_FORMATS[0]}, which other programs can read while it "
        "grows); csv, jsonl and parquet (extra data) begin a file each hour",
        Choice(LOG_FORMATS),
        needs="log",
    )
    log_sound: SoundFormat | None = setting(
        "--log-sound",
        f"record the sound in the log too, in hourly files: {SOUND_FORMATS[0]} (default; 24 bits), "
        "or wav (32-bit float, exactly the samples measured)",
        Choice(SOUND_FORMATS),
        nargs="?",
        const=SOUND_FORMATS[0],
        needs="log",
    )
    restore: bool | str = setting(
        "--restore",
        "continue the log's last run, for example after a power cut: a file continues at that "
        "place; with a microphone, the time between is a gap, and averages continue. A log without "
        "a run begins one. If the settings have changed, the command refuses, or with "
        f"{OR_ANEW} begins a new run",
        Choice((OR_ANEW,)),
        default=False,
        nargs="?",
        const=True,
        needs="log",
    )
    keep_days: float | None = setting(
        "--keep-days DAYS",
        "remove hourly files of the log that are older than this",
        Number(0.05, 36525, "days"),
        usual="keep all",
        needs="log",
    )
    keep_size: int | None = setting(
        "--keep-size SIZE",
        "remove the oldest hourly files of the log, those of sound first, while it is larger than "
        "this, such as 500MB or 1.5TB",
        parse=parse_size,
        usual="keep all",
        needs="log",
    )


@dataclass(frozen=True)
class StationSettings:
    """Settings of an unattended station."""

    run: Mapping[str, Any] = setting(
        "", "options of `amt-stream serve` by name", OptionTable(), key="run", page="unattended.md"
    )


@dataclass(frozen=True)
class ReportSettings:
    """The paper of a report, and who made it."""

    heading: ClassVar = "report"

    paper: str | None = setting(
        "--paper", "paper size", Choice(PAPERS), key="report.paper", usual=PAPERS[0]
    )
    company: str | None = setting(
        "--company TEXT", "company that measured", Text(), key="report.company"
    )
    logo: str | None = setting(
        "--logo FILE", "its logo: a PNG, JPEG or SVG file", Text(), key="report.logo"
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
    ReportSettings,
    StationSettings,
)
"""All groups of settings of a measurement."""


def keyed() -> dict[str, Setting]:
    """The settings that a preset may have, by key."""
    found = [one for group in GROUPS for _, one, _ in settings_in(group) if one.key]
    return {one.key: one for one in sorted(found, key=_section)}


_SECTIONS = ("description", "model", "engine", "meter", "limits", "report", "run", "events")


def _section(one: Setting) -> int:
    return _SECTIONS.index(one.key.partition(".")[0])
