"""Parts of an output folder that are done, and parts that may be written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from amt_stream import __version__
from amt_stream.cli.files import identities, not_to_write, path_kind
from amt_stream.cli.messages import Mistake
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.sounds.batch import Task
from amt_stream.cli.sounds.targets import written
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.output_settings import CsvSettings
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.sessions.manifest import BatchPart, Manifest


def part_settings(args: AnalyzeOptions, preset: Preset) -> JsonDict:
    """All settings that determine the rows of a part, as data for JSON."""
    names = [one.name for group in (RowSettings, CsvSettings) for one in fields(group)]
    settings = {
        "version": __version__,
        "model": preset.tables["model"],
        "format": args.format,
        **{name: getattr(args, name) for name in names},
        "step_ms": args.step_ms or preset.row_step_ms,
        "zone": None if args.zone is None else str(args.zone),
        "began": None if args.began is None else args.began.text,
        "replace_invalid": args.replace_invalid,
        "layout": args.layout or preset.layout,
        "keep_offset": args.keep_offset,
        "background": _version_of(args.background),
        "without_impulses": args.without_impulses,
        "limits": preset.tables.get("limits"),
        "audience": preset.tables["meter"].get("audience"),
    }
    read_again: dict[str, object] = json.loads(json.dumps(settings))
    return read_again


def _version_of(background: str | None) -> list[str | int] | None:
    """A background file by its path, size and time of change."""
    if background is None or not Path(background).is_file():
        return None
    found = Path(background).stat()
    return [background, found.st_size, found.st_mtime_ns]


def name_in_manifest(task: Task, folder: Path) -> str:
    """The name of a sound's part in the manifest of its folder."""
    assert isinstance(task.target, Path)
    return task.target.relative_to(folder).as_posix()


def split_done(
    tasks: Sequence[Task], manifest: Manifest, settings: Mapping[str, object], args: AnalyzeOptions
) -> tuple[list[Task], dict[int, JsonMap]]:
    """The tasks, refused if they would overwrite something, and the summaries of finished parts.

    Summaries are by position in `tasks`. Raises Mistake if a part was measured with other settings.
    """
    sounds = identities(task.file for task in tasks if not task.refusal)
    found, done = [], {}
    for place, task in enumerate(tasks):
        if not task.refusal:
            assert isinstance(task.target, Path)
            known = manifest.known(name_in_manifest(task, manifest.folder))
            ours = args.resume and known is not None
            files = written(task.target, args)
            refusals = (not_to_write(path, args.force or ours, sounds) for path in files)
            part = known if known is not None and args.resume and _is_done(known, task) else None
            if part is not None:
                _require_same(part, task, settings)
            # A part whose header file is missing is measured again.
            if part is not None and all(map(path_kind, files)):
                done[place] = part.summary or {}
            elif refusal := next(filter(None, refusals), ""):
                more = "" if known is None or args.force else ", or --resume to go on"
                refusal = f"{refusal}{more} ({task.file} was not read)"
                task = replace(task, refusal=refusal)
        found.append(task)
    return found, done


def _is_done(known: BatchPart, task: Task) -> bool:
    """Whether a part of this version of the sound exists. Raises Mistake if it was changed."""
    assert isinstance(task.target, Path)
    if known.state != "done" or not path_kind(task.target):
        return False
    length = task.target.stat().st_size
    if length != known.length:
        raise Mistake(
            f"{task.target} has changed since it was measured ({length} bytes instead of "
            f"{known.length}): remove it to measure it again"
        )
    same = ("bytes", "modified_ns", "channels")
    return all(known.sound.get(key) == task.sound[key] for key in same)


def _require_same(known: BatchPart, task: Task, settings: Mapping[str, object]) -> None:
    """Raise Mistake if a part was measured with other settings."""
    before = {**known.settings, "calibration": known.sound.get("levels")}
    now = {**settings, "calibration": task.sound["levels"]}
    for key, value in now.items():
        if before.get(key) != value:
            raise Mistake(
                f"{task.target} was measured with another {key} ({json.dumps(before.get(key))}, "
                f"instead of {json.dumps(value)}): give the same to continue, or another folder"
            )
