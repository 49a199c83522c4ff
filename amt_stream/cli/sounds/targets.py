"""The output files of each sound, and protection of existing files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amt_stream.cli.files import identities, not_to_write, path_kind, refuse_no_folder
from amt_stream.cli.messages import Mistake, WrongUsage
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.sounds.batch import Task
from amt_stream.core.formats import FILE_FORMATS, header_path
from amt_stream.core.values import EACH
from amt_stream.core.workbooks import XLSX, refuse_no_excel

_ENDINGS = " or ".join(f".{name}" for name in FILE_FORMATS)


def summary_file(args: AnalyzeOptions) -> Path | None:
    """The file for summaries, if --out names one."""
    out = None if args.out is None else Path(args.out)
    return out if args.summary and out is not None and out.suffix in (".json", XLSX) else None


def row_format(args: AnalyzeOptions) -> str:
    """The format of rows: that of --format, else by the ending of --out, else csv.

    Raises WrongUsage if both are given and differ, and for .json, which is for summaries.
    """
    if args.out == "":
        raise WrongUsage("--out is empty: give a file, a folder, or - for standard output")
    ending = "" if args.out is None else Path(args.out).suffix.removeprefix(".")
    if ending == "json" and not args.summary:
        raise WrongUsage(
            f"{args.out} ends in .json, which is for a summary (--summary): rows are written as "
            f"{_ENDINGS}"
        )
    if ending in FILE_FORMATS and args.format not in (None, ending):
        raise WrongUsage(
            f"{args.out} ends in .{ending} and --format is {args.format}: leave one out"
        )
    format: str = args.format or (ending if ending in FILE_FORMATS else "csv")
    if format in ("parquet", "xlsx") and args.out in (None, "-"):
        raise WrongUsage(f"{format} needs a file or a folder: name it with --out")
    if format == "parquet":
        from amt_stream.sessions.parquet import refuse_no_parquet

        refuse_no_parquet()
    if format == "xlsx":
        if args.interval is None and summary_file(args) is None:
            raise WrongUsage(
                "xlsx is for tables of intervals (--interval 15min) and of whole sounds (--summary "
                f"--out TABLE{XLSX}): rows are too many for a sheet, so choose csv or parquet"
            )
        refuse_no_excel()
    return format


def planned(tasks: Sequence[Task], args: AnalyzeOptions) -> tuple[list[Task], Path | None]:
    """The tasks with their output files, and the output folder if there is one.

    Tasks that would overwrite something are refused, except in a folder, which has a manifest.
    Raises WrongUsage or Mistake, before anything is measured, if no output can be written.
    """
    if args.out == "-" and args.summary:
        raise WrongUsage("--summary and --out - both write to standard output: leave one out")
    if args.resume and (args.out in (None, "-") or summary_file(args)):
        raise WrongUsage("--resume continues an output folder: name it with --out")
    if summaries := summary_file(args):
        refusal = overwriting(summaries, tasks, args)
        if refusal:
            raise Mistake(f"{refusal} (nothing was read)")
        return list(tasks), None
    if args.out in (None, "-"):
        if len(tasks) > 1 and not args.summary:
            raise WrongUsage("several files: name a folder with --out, or add --summary")
        return [replace(task, target=None if args.summary else "-") for task in tasks], None
    out = Path(args.out)
    kind = path_kind(out)
    several = len(tasks) > 1 or args.resume
    if several:
        refuse_no_folder(out, "for several files --out names")
    if not several and kind != "folder":
        refusal = overwriting(out, tasks, args)
        if not refusal:
            _require_ending(out, args)
        elif not tasks[0].refusal:
            tasks = [replace(tasks[0], refusal=f"{refusal} ({tasks[0].file} was not read)")]
        return [replace(tasks[0], target=out)], None
    found = [replace(task, target=_part(out, task, args)) for task in tasks]
    for target, count in Counter(task.target for task in found if not task.refusal).items():
        if count > 1:
            raise Mistake(f"two of the files would be written to {target}: analyze them separately")
    return found, out


def _part(folder: Path, task: Task, args: AnalyzeOptions) -> Path:
    channel = f".ch{task.channels[0]}" if args.channels == EACH and task.channels else ""
    return folder / task.below.parent / f"{task.below.stem}{channel}.{args.format}"


def _require_ending(out: Path, args: AnalyzeOptions) -> None:
    """Raise WrongUsage if a path has an ending that is not one of rows."""
    if out.suffix.removeprefix(".") not in ("", *FILE_FORMATS) and not args.format_typed:
        raise WrongUsage(
            f"{out} ends in {out.suffix}: rows are written as {_ENDINGS} (or add --format)"
        )


def overwriting(target: Path, tasks: Sequence[Task], args: AnalyzeOptions) -> str:
    """Why `target` must not be written: it is one of the sounds, or it exists; else ""."""
    sounds = identities(task.file for task in tasks if not task.refusal)
    refusals = (not_to_write(path, args.force, sounds) for path in written(target, args))
    return next(filter(None, refusals), "")


def written(target: Path, args: AnalyzeOptions) -> tuple[Path, ...]:
    """The file of rows, and that of its header with --no-header."""
    return (target, header_path(target)) if args.no_header else (target,)
