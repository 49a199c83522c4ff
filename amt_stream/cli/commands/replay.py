"""`amt-stream replay`: a session measured again from its sound."""

from amt_stream.cli.messages import say
from amt_stream.cli.options.sessions import ReplayOptions
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted

DIFFERENT = 1


def run_replay(args: ReplayOptions) -> int:
    """Compare the rows with the log; 1 if they differ."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.sessions.replay import replay_session

    say_when_compiling()
    found = replay_session(args.session, args.run)
    for note in found.notes:
        say(f"{args.session}: {note}")
    if not found.rows:
        say(f"{args.session}: run {found.run} has no row that could be measured again")
        return DIFFERENT
    rows = f"run {found.run}: {counted(found.rows, 'row')}"
    if found.absent:
        rows = f"{rows}, and {found.absent} more that the log lacks"
    if found.same:
        print(f"{rows}: identical, SHA-256 {found.again}")
        return 0
    print(f"{rows}: different, SHA-256 {found.logged} logged, {found.again} measured again")
    print(plain(found.differs))
    return DIFFERENT
