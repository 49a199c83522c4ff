"""Sound that is kept, as it is asked for: the last of it in memory, and files of events."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.cli.messages import refuse_without, say
from amt_stream.events import SoundKeeper, keeper_in
from amt_stream.table import Table
from amt_stream.triggers import AFTER_S, BEFORE_S, KEPT_S, LONGEST_S

if TYPE_CHECKING:
    from amt_stream.engine.runner import Engine
    from amt_stream.engine.sources import Source


def refuse_event_options(args: argparse.Namespace) -> None:
    """Raise WrongUsage for options of files that are not asked for."""
    typed = {
        "--keep-sound": args.keep_sound,
        "--event-before": args.event_before,
        "--event-after": args.event_after,
        "--event-longest": args.event_longest,
    }
    refuse_without(args.event_folder, "files of sound: add --event-folder PATH", typed)


def kept_s(args: argparse.Namespace) -> float:
    """How much of the sound is kept in memory: none unless somebody asks for it."""
    if args.event_folder is None:
        return 0.0
    return KEPT_S if args.keep_sound is None else float(args.keep_sound)


def keeping(args: argparse.Namespace, seconds: float, folder: Path) -> argparse.Namespace:
    """The same words with so much sound in memory, where they asked for none."""
    if kept_s(args) or not seconds:
        return args
    changed = {"event_folder": str(folder), "keep_sound": seconds}
    return argparse.Namespace(**{**vars(args), **changed})


def open_keeper(args: argparse.Namespace, table: Table, source: "Source") -> SoundKeeper:
    """What keeps the sound of a source; raises SessionError."""
    before, after, longest = args.event_before, args.event_after, args.event_longest
    return SoundKeeper(
        args.event_folder,
        table,
        fs=source.fs,
        channels=source.channels,
        keep_s=kept_s(args),
        before_s=min(BEFORE_S, kept_s(args)) if before is None else before,
        after_s=AFTER_S if after is None else after,
        longest_s=LONGEST_S if longest is None else longest,
    )


def close_keeper(engine: "Engine", timeout: float) -> None:
    """Write what waits, and say what there is."""
    keeper = keeper_in(engine.sinks)
    if keeper is None:
        return
    if not keeper.close(timeout):
        say(f"sound is missing in {keeper.folder}: its disk has not taken it in {timeout:g} s")
    if keeper.note:
        say(keeper.note)
    files = "file" if keeper.files == 1 else "files"
    say(f"{keeper.files} {files} of sound in {keeper.folder}")
