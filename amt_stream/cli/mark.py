"""`amt-stream mark`: a mark in a log that another process writes."""

import argparse

from amt_stream.cli.messages import say
from amt_stream.session.marks import mark


def run_mark(args: argparse.Namespace) -> int:
    """Put it there, and say so."""
    mark(args.session, args.text)
    say(f"marked: {args.text}")
    return 0
