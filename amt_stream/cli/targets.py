"""Where the rows of each sound go, and what must not be overwritten for them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from amt_stream.cli.batch import Task
from amt_stream.cli.files import identities, not_to_write, path_kind
from amt_stream.cli.messages import Mistake, WrongUsage
from amt_stream.cli.options import AnalyzeOptions
from amt_stream.core.formats import FILE_FORMATS, header_path
from amt_stream.core.values import EACH

_ENDINGS = " or ".join(f".{name}" for name in FILE_FORMATS)


def summary_file(args: AnalyzeOptions) -> Path | None:
    """The file for summaries, where --out names one."""
    out = None if args.out is None else Path(args.out)
    return out if args.summary and out is not None and out.suffix == ".json" else None


def row_format(args: AnalyzeOptions) -> str:
    """The format of rows: as asked for, else by the ending of --out, else csv.

    Raises WrongUsage where both are given and differ, and for .json, in which no rows are written.
    """
    if args.out == "":
        raise WrongUsage("--out names nothing: give a file, a folder, or - for standard output")
    ending = "" if args.out is None else Path(args.out).suffix.removeprefix(".")
    if ending == "json" and not args.summary:
        raise WrongUsage(
            f"{args.out} ends in .json: rows are written as {_ENDINGS}, and a summary (--summary) "
            "as .json"
        )
    if ending in FILE_FORMATS and args.format not in (None, ending):
        raise WrongUsage(f"{args.out} ends in .{ending} and --format is {args.format}: drop one")
    format: str = args.format or (ending if ending in FILE_FORMATS else "csv")
    if format == "parquet":
        _require_parquet(args)
    return format


def _require_parquet(args: AnalyzeOptions) -> None:
    if args.out in (None, "-"):
        raise WrongUsage("parquet is for files: name one, or a folder, with --out")
    if find_spec("pyarrow") is None:
        raise Mistake(
            'parquet needs pyarrow, which is not installed: pip install "amt_stream[data]", or '
            "take another format"
        )


def planned(tasks: Sequence[Task], args: AnalyzeOptions) -> tuple[list[Task], Path | None]:
    """The same with where their rows go, and the folder of parts where there is one.

    Raises WrongUsage, or Mistake, before anything is measured where none can be written. What
    would overwrite something is refused, but for parts: a manifest tells whose they are.
    """
    if args.out == "-" and args.summary:
        raise WrongUsage("--summary and --out - both write to standard output: leave one out")
    if args.resume and (args.out in (None, "-") or summary_file(args)):
        raise WrongUsage("--resume goes on in a folder of parts: name it with --out")
    if summaries := summary_file(args):
        refusal = overwriting(summaries, tasks, args)
        if refusal:
            raise Mistake(f"{refusal} (nothing was read)")
        return list(tasks), None
    if args.out in (None, "-"):
        if len(tasks) > 1 and not args.summary:
            raise WrongUsage("several files: name a folder with --out, or ask for a --summary")
        return [replace(task, target=None if args.summary else "-") for task in tasks], None
    out = Path(args.out)
    kind = path_kind(out)
    several = len(tasks) > 1 or args.resume
    if several and kind not in ("", "folder"):
        raise Mistake(f"{out} is a file: for several files --out names a folder")
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
            raise Mistake(f"two of the files would be written to {target}: analyze them apart")
    return found, out


def _part(folder: Path, task: Task, args: AnalyzeOptions) -> Path:
    channel = f".ch{task.channels[0]}" if args.channels == EACH and task.channels else ""
    return folder / task.below.parent / f"{task.below.stem}{channel}.{args.format}"


def _require_ending(out: Path, args: AnalyzeOptions) -> None:
    """Raise WrongUsage for the ending of another format than that of the rows."""
    if out.suffix.removeprefix(".") not in ("", *FILE_FORMATS) and not args.format_typed:
        raise WrongUsage(
            f"{out} ends in {out.suffix}: rows are written as {_ENDINGS} (or say --format)"
        )


def overwriting(target: Path, tasks: Sequence[Task], args: AnalyzeOptions) -> str:
    """Why `target` must not be written: it is one of the sounds, or it exists; else nothing."""
    sounds = identities(task.file for task in tasks if not task.refusal)
    refusals = (not_to_write(path, args.force, sounds) for path in written(target, args))
    return next(filter(None, refusals), "")


def written(target: Path, args: AnalyzeOptions) -> tuple[Path, ...]:
    """All files that are written for one of rows."""
    return (target, header_path(target)) if args.no_header else (target,)
