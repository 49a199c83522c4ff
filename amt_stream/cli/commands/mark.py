"""`amt-stream mark`: a mark in a log that another process writes."""

from amt_stream.cli.messages import say
from amt_stream.cli.options.sessions import MarkOptions
from amt_stream.sessions.marks import mark


def run_mark(args: MarkOptions) -> int:
    mark(args.session, args.text)
    say(f"marked: {args.text}")
    return 0
