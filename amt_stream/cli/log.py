"""The log of --log."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from amt_stream.cli.inputs import Input
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options.live import LiveOptions
from amt_stream.core.formats import LOG_FORMATS
from amt_stream.engine.sources import FileSource
from amt_stream.meters.table import Table
from amt_stream.sessions import SessionLog, SoundLog
from amt_stream.sessions.folder import refuse_no_session
from amt_stream.sessions.retention import Retention

Live = TypeVar("Live", bound=LiveOptions)


def refuse_log_options(args: LiveOptions, serves: bool = False) -> None:
    """Raise WrongUsage for options that need a log, and SessionError for an unusable folder.

    serves: rows are sent to clients and not written
    """
    if args.interval is not None and args.log is None and (not args.format or serves):
        more = "" if serves else ", or --format csv"
        raise WrongUsage(f"--interval needs a file to write: add --log PATH{more}")
    if args.quiet and (args.format or args.terminal):
        shown = "--terminal" if args.terminal else "--format"
        raise WrongUsage(f"--quiet shows nothing, and {shown} does: leave one out")
    if args.restore and args.source == "-":
        raise WrongUsage(
            "--restore continues a file or a live input, and standard input is neither"
        )
    hourly = args.log_format not in (None, LOG_FORMATS[0])
    if (args.keep_days is not None or args.keep_size is not None) and not hourly:
        raise WrongUsage(
            "--keep-days and --keep-size need a log of files by the hour: add --log-format jsonl, "
            "csv or parquet"
        )
    if args.log is not None:
        refuse_no_session(Path(args.log))  # before anything slow


def open_log(
    args: LiveOptions, table: Table, given: Input, engine: Mapping[str, object]
) -> SessionLog:
    """Open the log of a measurement, and report repairs after an interrupted run.

    Raises SessionError.
    """
    assert args.log is not None
    source = given.source
    identity: dict[str, object] = {
        "kind": type(source).__name__,
        "name": source.name,
        "fs": source.fs,
        "channels": source.channels,
        "live": source.live,
        "picked": None if given.pick is None else list(given.pick),
        "layout": source.description.layout.to_dict(),
    }
    if isinstance(source, FileSource) and args.source is not None:
        identity["path"] = str(Path(args.source).absolute())
    settings = {"engine": dict(engine), "source": identity}
    format, restore = args.log_format or LOG_FORMATS[0], bool(args.restore)
    keep = None
    if args.keep_days is not None or args.keep_size is not None:
        keep = Retention(args.keep_days, args.keep_size)
    log: SessionLog
    if args.log_sound is None:
        log = SessionLog(
            args.log, table, format=format, settings=settings, restore=restore, keep=keep
        )
    else:
        log = SoundLog(
            args.log,
            table,
            fs=source.fs,
            channels=source.channels,
            sound=args.log_sound,
            format=format,
            settings=settings,
            restore=restore,
            keep=keep,
        )
    if restore and log.engine_state is None:
        say(f"{args.log} has no run to continue, so run {log.folder.run} begins")
    for sentence in log.folder.repaired:
        say(f"{args.log}: {sentence}")
    return log


def log_folder(among: Path | None = None) -> Path:
    """The folder of a log that begins now, in `among` or in the default folder."""
    began = datetime.now().strftime("%Y-%m-%d %H.%M.%S")
    return (among or usual_folder()) / began


def usual_folder() -> Path:
    """The default folder of logs and sounds."""
    from platformdirs import user_documents_dir

    return Path(user_documents_dir()) / "amt-stream"


def logged(args: Live, path: Path | None, restore: bool | str) -> Live:
    """The options with another log."""
    return replace(args, log=str(path) if path else None, restore=restore if path else False)
