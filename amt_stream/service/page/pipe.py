"""Lines between the page's process and the one that measures.

A line has a kind, a key and a text with tabs between. The text is of JSON, and so has no end of a
line in it. To the page:

    header, row, event, state, summary, specific    a message; the key of a row says whose it is
    reply                                           to the command of that key
    metrics                                         [body, content type], to the request of that key

From the page:

    open        the port that it listens to; error: why there is none, in a sentence
    ask         a command, by a key of its own; "ask to look" of whoever may only look
    metrics     what kinds of content are accepted, by a key of its own
    wants       whether somebody wants `specific`
    dropped     how many clients have fallen behind
"""

LONGEST = 1 << 24
"""A header of thousands of columns is far below it."""


def pipe_line(kind: str, key: object, text: str) -> bytes:
    """One line, with its end."""
    return f"{kind}\t{key}\t{text}\n".encode()


def parts(given: bytes) -> tuple[str, str, str]:
    """Kind, key and text of a line."""
    kind, key, text = given.decode().rstrip("\n").split("\t", 2)
    return kind, key, text
