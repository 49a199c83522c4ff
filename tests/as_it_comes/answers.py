"""The ways in which people measure a sound, and the answer that each gives."""

import contextlib
import io
import json
import os
import sys
import threading
import warnings
from dataclasses import dataclass, field
from functools import partial

import pytest

from amt_stream import measure
from amt_stream.cli.command import run_command
from amt_stream.engine import SourceError
from amt_stream.meters.calibration import Calibration


@dataclass(frozen=True)
class Answer:
    """The exit status, the sentences beside the readings, and the summary; {} if it is refused."""

    status: int
    words: str
    summary: dict = field(default_factory=dict)

    @property
    def sound(self):
        return self.summary["sound"]

    @property
    def clipped_s(self):
        return max(one["clipped_s"] for one in self.summary["statistics"].values())


@dataclass(frozen=True)
class Settings:
    """What a person chooses, in the words of the command and of Python."""

    models: str
    full_scale_db: float | None = 100.0
    layout: str | None = None
    channels: str | None = None
    more: tuple[str, ...] = ()

    @property
    def typed(self):
        typed = ["--model", self.models, *self.more]
        given = {
            "--full-scale-db": self.full_scale_db,
            "--layout": self.layout,
            "--channels": self.channels,
        }
        return [
            *typed,
            *(str(word) for pair in given.items() if pair[1] is not None for word in pair),
        ]

    @property
    def named(self):
        level = None if self.full_scale_db is None else Calibration(self.full_scale_db)
        channels = self.channels and [int(one) for one in self.channels.split(",")]
        return {"calibration": level, "layout": self.layout, "channels": channels, "step_ms": 100}


def command(*typed, stdin=None):
    """Status, standard output and standard error of a command that runs here."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), piped(stdin):
        try:
            status = run_command([*map(str, typed)])
        except SystemExit as ended:
            status = ended.code
    return status, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def piped(content):
    """Standard input is a pipe into which `content` is written, while a `with` block runs."""
    if content is None:
        yield
        return
    reading, writing = os.pipe()

    def write():
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
            pipe.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading) as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        yield
    writer.join()


def by_analyze(path, settings):
    status, out, err = command("analyze", path, "--summary", *settings.typed)
    return Answer(status, err, json.loads(out) if out else {})


def by_measure(path, settings):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            m = measure(path, models=settings.models, **settings.named)
        except (SourceError, ValueError) as refusal:
            return Answer(1, str(refusal))
    return Answer(0, "\n".join(str(one.message) for one in said), m.summary)


def by_meter(source, settings, stdin=None):
    rows = "--format", "jsonl", "--step-ms", "100"
    status, out, err = command(
        "meter", "--source", source, "--fast", *rows, *settings.typed, stdin=stdin
    )
    return Answer(status, err, json.loads(out.splitlines()[-1])["summary"] if out else {})


def by_pipe(path, settings):
    return by_meter("-", settings, stdin=path.read_bytes())


WAYS = {
    "analyze": by_analyze,
    "measure": by_measure,
    "meter": partial(by_meter),
    "pipe": by_pipe,
}
