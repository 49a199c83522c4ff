"""Sound held in memory and written to files of events, according to the options."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from amt_stream.cli.messages import say
from amt_stream.meters.output_settings import EventSettings
from amt_stream.meters.table import Table
from amt_stream.meters.triggers import AFTER_S, BEFORE_S, KEPT_S, LONGEST_S
from amt_stream.sessions.events import SoundKeeper, keeper_in

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.engine.sources import Source

Asked = TypeVar("Asked", bound=EventSettings)


def kept_s(args: EventSettings) -> float:
    """Seconds of sound held in memory; 0 without --event-folder."""
    if args.event_folder is None:
        return 0.0
    return KEPT_S if args.keep_sound is None else args.keep_sound


def keeping(args: Asked, seconds: float, folder: Path) -> Asked:
    """The options with this much sound in memory, if they hold none."""
    if kept_s(args) or not seconds:
        return args
    return replace(args, event_folder=str(folder), keep_sound=seconds)


def open_keeper(args: EventSettings, table: Table, source: "Source") -> SoundKeeper:
    """Open the keeper of a source's sound. Raises SessionError."""
    assert args.event_folder is not None
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
    """Write the pending files, and say how many there are."""
    keeper = keeper_in(engine.sinks)
    if keeper is None:
        return
    if not keeper.close(timeout):
        say(f"sound is missing in {keeper.folder}: its disk did not write it within {timeout:g} s")
    if keeper.note:
        say(keeper.note)
    files = "file" if keeper.files == 1 else "files"
    say(f"{keeper.files} sound {files} in {keeper.folder}")
