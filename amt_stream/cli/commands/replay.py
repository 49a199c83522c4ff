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
    replayed = replay_session(args.session, args.run)
    for note in replayed.notes:
        say(f"{args.session}: {note}")
    if not replayed.rows:
        say(f"{args.session}: run {replayed.run} has no row that could be measured again")
        return DIFFERENT
    rows = f"run {replayed.run}: {counted(replayed.rows, 'row')}"
    if replayed.absent:
        rows = f"{rows}, and {replayed.absent} more that the log lacks"
    if replayed.same:
        print(f"{rows}: identical, SHA-256 {replayed.again}")
        return 0
    print(f"{rows}: different, SHA-256 {replayed.logged} logged, {replayed.again} measured again")
    print(plain(replayed.differs))
    return DIFFERENT
