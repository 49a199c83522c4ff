"""The options of commands that read sound files or make their sounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amt_stream.cli.options.arguments import LAYOUT_OF_EACH
from amt_stream.cli.options.live import CalibrateOptions
from amt_stream.cli.options.parser import Options
from amt_stream.core.clock import Moment, date_and_time
from amt_stream.core.formats import FILE_FORMATS, WAYS
from amt_stream.core.values import (
    Choice,
    Listed,
    Number,
    parse_channels,
    parse_channels_or_each,
    parse_path,
)
from amt_stream.meters import catalog, specification
from amt_stream.meters.output_settings import CsvSettings, LimitSettings
from amt_stream.meters.setting import changed, setting, switch
from amt_stream.native.targets import TARGETS


def _row_steps() -> str:
    """The time between the rows of a file for each model, as text."""
    steps: dict[int, list[str]] = {}
    for name in catalog.names():
        steps.setdefault(catalog.entry(name).row_step_ms, []).append(name)
    listed = [f"{step} for {', '.join(names)}" for step, names in sorted(steps.items())]
    return f"{'; '.join(listed)}; the longest of these for several models"


@dataclass(frozen=True)
class AnalyzeOptions(
    specification.CalibrationSettings,
    specification.CorrectionSettings,
    specification.ModelSettings,
    specification.RowSettings,
    CsvSettings,
    LimitSettings,
    Options,
):
    files: Sequence[str] = setting(
        "FILE",
        "a sound file, a folder of them, or a pattern such as 'day/*.wav'",
        default=(),
        nargs="+",
    )
    background: str | None = setting(
        "--background NOISE",
        "measure how loud FILE is in this background, a recording of the same rate and calibration "
        "(experimental: the model `partial`). One that is shorter than FILE counts as steady, by "
        "its mean",
        page="partial.md",
    )
    without_impulses: tuple[float, ...] = setting(
        "--without-impulses TIMES",
        "leave out the impulses that began at these seconds, such as 12.46,31.1 (column "
        "`impulse_s`): a dog, a door. Of the models `impulses` and `rating`",
        Listed(Number(0, 1e9, "seconds")),
        default=(),
        page="rating.md",
    )
    out: str | None = setting(
        "--out PATH",
        "file for the rows, or a folder for the rows of several files; with --summary, a .json "
        "or .xlsx file for the summaries",
        usual="-, standard output",
    )
    force: bool = switch("--force", "overwrite existing output")
    resume: bool = switch(
        "--resume",
        "continue in the folder of --out after an interruption: skip finished files, and analyze "
        "the others and those that failed",
    )
    summary: bool = switch(
        "--summary",
        "write one JSON line per file instead of rows, with maxima, percentiles and other "
        "statistics of the whole sound, or with those that --columns chooses; with --format csv, a "
        "table",
    )
    format: str | None = setting(
        "--format",
        "format of the rows; parquet needs the extra `data`; xlsx, for intervals and summaries, "
        "the extra `excel`",
        Choice(FILE_FORMATS),
        usual="by the ending of --out, or csv",
    )
    format_typed: bool = False
    no_header: bool = changed(
        CsvSettings,
        "no_header",
        about="begin CSV with the column names, for spreadsheets; the header goes to "
        "FILE.csv.header.json beside each file, or to standard error, as a line of JSON",
    )
    step_ms: int | None = changed(specification.RowSettings, "step_ms", usual=_row_steps)
    replace_invalid: bool = switch(
        "--replace-invalid",
        "replace NaN, infinity and samples beyond a million times full scale by 0, report how many "
        "there were, and leave them out of statistics",
    )
    channels: tuple[int, ...] | str | None = changed(
        specification.InputSettings,
        "channels",
        about="channels: 1, or 1,2, or more for programme loudness; all (or each) analyzes every "
        "channel separately",
        parse=parse_channels_or_each,
    )
    layout: str | None = changed(specification.LiveInputSettings, "layout")
    keep_offset: bool = changed(specification.LiveInputSettings, "keep_offset")
    jobs: int = setting(
        "--jobs N",
        "number of processes, for several files at once or for the parts of a long one",
        Number(1, 1024, "processes", whole=True),
        default=1,
    )
    progress_s: float | None = setting(
        "--progress S",
        "seconds between lines of progress on standard error",
        Number(0.1, 86400, "seconds"),
        usual="a progress bar on a terminal, otherwise a line a minute",
    )
    calibrations: str | None = setting(
        "--calibrations FILE",
        "CSV file of calibrations, with the columns file, channel and full_scale_db, or "
        "sensitivity_dbfs (the level in dBFS of a sine of 94 dB SPL); file may be a pattern, and "
        "an empty file or channel stands for all",
    )
    calibrator: str | None = setting(
        "--calibrator FILE",
        "recording of an acoustic calibrator at the same gain, with at least 3 s of its tone in "
        "each channel that is analyzed; one channel stands for all. A pattern such as "
        "'day*/tone.wav' gives a recording for each folder: each file uses the nearest",
    )
    level: float | None = changed(
        CalibrateOptions, "level", default=None, usual="94; needed for a tone of 250 Hz"
    )
    frequency: float | None = changed(
        CalibrateOptions, "frequency", default=None, usual="1000 or 250, as the recording has"
    )
    interval: int | None = changed(
        specification.RowSettings,
        "interval",
        about=f"write statistics of each interval instead of rows: {specification.LENGTHS}. "
        "Intervals follow the clock with --began, and otherwise the time since the start",
    )
    began: Moment | None = setting(
        "--began WHEN",
        "when the recording began, such as 2026-11-20T22:00:00, in the zone of --zone or with an "
        "offset such as +01:00",
        parse=date_and_time,
    )
    zone: Any = changed(
        specification.RowSettings,
        "zone",
        about="time zone of intervals, --local-time and --began, such as Europe/Berlin or UTC",
    )


@dataclass(frozen=True)
class MatchOptions(Options):
    files: Sequence[str] = setting(
        "FILE",
        "files of sound: the reference, then those that are made as loud",
        default=(),
        nargs="+",
    )
    by: str = setting(
        "--by MEASURE",
        "the measure of loudness: ltl, the highest long-term loudness (Moore et al. 2016, the "
        "default); zwicker, N5 (ISO 532-1); ecma, the power mean (ECMA-418-2); lufs, integrated "
        "(BS.1770); or laeq",
        Choice(("ltl", "zwicker", "ecma", "lufs", "laeq")),
        default="ltl",
    )
    channels: tuple[int, ...] | None = changed(
        specification.InputSettings,
        "channels",
        about="channels of each file: 1, or 1,2; or more, with --by lufs",
        parse=parse_channels,
    )
    layout: str | None = changed(specification.LiveInputSettings, "layout", about=LAYOUT_OF_EACH)
    full_scale_db: float | None = changed(specification.CalibrationSettings, "full_scale_db")
    field: str | None = changed(specification.ModelSettings, "field", usual="free")
    out: str | None = setting(
        "--out FOLDER",
        "also write the sounds with their gains, the reference unchanged, as 32-bit float WAV",
        parse=parse_path,
    )
    force: bool = switch("--force", "overwrite an existing file")
    json: bool = switch("--json", "print a JSON object")


@dataclass(frozen=True)
class ExplainOptions(Options):
    file: str = setting("FILE", "a file of sound of 1 s or more", default="")
    channels: tuple[int, ...] | None = changed(
        specification.InputSettings, "channels", about="one or two channels of the file: 1, or 1,2"
    )
    layout: str | None = changed(specification.LiveInputSettings, "layout")
    bands: str = setting(
        "--bands WIDTH",
        "width of the bands: octaves (default) or thirds of an octave",
        Choice(("octave", "third")),
        default="octave",
    )
    lowest_hz: float = setting(
        "--lowest-hz HZ",
        "middle of the lowest band, which has all lower frequencies too",
        Number(31.5, 16000, "Hz"),
        default=31.5,
    )
    highest_hz: float = setting(
        "--highest-hz HZ",
        "middle of the highest band, which has all higher frequencies too",
        Number(31.5, 16000, "Hz"),
        default=16000.0,
    )
    full_scale_db: float | None = changed(specification.CalibrationSettings, "full_scale_db")
    field: str = setting(
        "--field NAME",
        "sound field at the microphone: free (default) or diffuse",
        Choice(("free", "diffuse")),
        default="free",
    )
    jobs: int = setting("--jobs N", "number of processes", Number(1, 1024, whole=True), default=1)
    progress_s: float | None = changed(AnalyzeOptions, "progress_s")
    format: str = setting(
        "--format",
        "format of the result (default: text); json also has the shares of each second",
        Choice(("text", "csv", "json")),
        default="text",
    )
    csv_dialect: str = changed(CsvSettings, "csv_dialect")


@dataclass(frozen=True)
class SelftestOptions(Options):
    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: (
            f"check only some of {', '.join(catalog.names(lambda entry: entry.checks is not None))}"
            ", separated by commas"
        ),
        parse=specification.parse_models,
    )
    way: tuple[str, ...] | None = setting(
        "--way LIST",
        f"how its sounds reach the models: {'; '.join(f'{k}, {v}' for k, v in WAYS.items())}; "
        "several are separated by commas",
        Listed(words=tuple(WAYS)),
        usual="all",
    )
    faults: bool = switch(
        "--faults",
        "insert faults into a sound instead (losses, late blocks, clipping, an unplugged device "
        "...), and compare the faults counted with those inserted; takes about 30 seconds",
    )
    report: str | None = setting("--report PATH", "write a verification report in Markdown")
    force: bool = switch("--force", "overwrite an existing report")


@dataclass(frozen=True)
class ExportOptions(Options):
    what: str = setting(
        "STAGE|PRESET", "the name of a stage, or a preset with one model", default=""
    )
    out: str = setting("FILE", "file to write, such as moore2016.pt2", nargs="?", default="")
    c: str = setting(
        "--c FOLDER",
        "write a C library of a model into this folder, which needs no Python",
        default="",
    )
    wasm: str = setting(
        "--wasm FOLDER",
        "write a model as WebAssembly into this folder, with a page that measures in a browser",
        default="",
    )
    targets: tuple[str, ...] = setting(
        "--target LIST",
        lambda: f"processors to write objects for: {', '.join(TARGETS)}",
        Listed(words=TARGETS),
        default=TARGETS[:1],
    )
    force: bool = switch("--force", "overwrite an existing file")
    fs: int = setting(
        "-r --samplerate HZ",
        "sampling rate",
        Number(specification.SLOWEST_FS, specification.FASTEST_FS, "Hz", whole=True),
        default=specification.PCM_FS,
    )
    channels: int = setting(
        "-c --channels N",
        "number of ears or channels",
        Number(1, 64, "channels", whole=True),
        default=2,
    )
    shape: tuple[int, ...] | None = setting(
        "--shape LIST",
        "shape of a stage's input without time, such as 1,2,31",
        Listed(Number(1, 1e6, whole=True)),
        usual="1 and the channels",
    )
    block_ms: float = setting(
        "--block-ms MS",
        "block length, rounded to whole blocks of the stage",
        Number(0.01, 1000, "ms"),
        default=10.0,
    )


@dataclass(frozen=True)
class BenchOptions(Options):
    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: f"time only some of {', '.join(catalog.names())}, separated by commas",
        lambda: Listed(words=tuple(catalog.names())),
    )
    stages: bool = switch("--stages", "also time each stage of a model, on its actual input")
    block_ms: tuple[float, ...] = setting(
        "--block-ms LIST",
        "block lengths, separated by commas",
        Listed(Number(0.1, 1000, "ms")),
        default=(1.0, 10.0),
    )
    streams: tuple[int, ...] = setting(
        "--streams LIST",
        "numbers of listeners that one model processes at once",
        Listed(Number(1, 4096, "streams", whole=True)),
        default=(1,),
    )
    dtype: tuple[str, ...] = setting(
        "--dtype LIST",
        "float32 (default), float64 or both",
        Listed(words=("float32", "float64")),
        default=("float32",),
    )
    seconds: float = setting(
        "--seconds S", "seconds of sound for each figure", Number(0.01, 3600, "s"), default=2.0
    )
    start: bool = switch("--start", "also time the start of a new process with each model")
    json: bool = switch("--json", "print one JSON object per line")
