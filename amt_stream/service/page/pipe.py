"""Lines between the page's process and the measuring process.

A line has a kind, a key and a JSON text, separated by tabs. To the page:

    header, row, event, state, summary, specific, screen
                                                    a message; the key of a row is its microphone
    reply                                           reply to the command with this key
    metrics                                         [body, content type] by key of the request

From the page:

    open        the port it listens at; error: why there is none
    ask         a command with a unique key; "ask to look" from clients that may not send commands
    metrics     the header Accept of a request, with a unique key
    wants       which of the kinds `specific` and `screen` any client subscribes to
    dropped     number of clients that were too slow
"""

LONGEST = 1 << 24
"""Longest line in bytes; a header of thousands of columns is far below it."""


def pipe_line(kind: str, key: object, text: str) -> bytes:
    """Make a line, with its newline."""
    return f"{kind}\t{key}\t{text}\n".encode()


def parts(line: bytes) -> tuple[str, str, str]:
    """Split a line into kind, key and text."""
    kind, key, text = line.decode().rstrip("\n").split("\t", 2)
    return kind, key, text
