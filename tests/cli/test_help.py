"""What each command says of itself, and its headers, beside what they said before a rebuilding.

`tests/data/before/help.json` and `headers.json` were written by this file before the options came
from one specification; `renames.toml` there is the list of what has been renamed or said better
since. To rewrite what was before: `python -m tests.cli.test_help`.
"""

import contextlib
import io
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import soundfile

from amt_stream.meters import catalog, output_settings
from amt_stream.meters.norms import shipped_norms
from tests.service.served import forks

BEFORE = Path(__file__).parents[1] / "data" / "before"
COMMANDS = (
    *("", "meter", "serve", "run", "devices", "calibrate", "analyze", "replay", "report"),
    *("compare", "lden", "mark", "verify", "selftest", "export", "bench"),
)
HEADERS = {
    "meter": ["meter", "--source", "tone.wav", "--fast"],
    "analyze": ["analyze", "tone.wav"],
    "serve": ["serve", "--source", "tone.wav", "--fast", "--stdio"],
}
WAYS = {
    "default": [],
    "several": ["--model", "moore2016,spl,bs1770", "--target", "-23", "--dual-mono", "-c", "1"],
    "part": ["--from", "0.1", "--to", "0.3", "--columns", "ltl_*", "--step-ms", "50"],
    "limits": ["--model", "spl", "--limit", "laf_db>85", "--event", "laf_db>85"],
    "intervals": ["--model", "spl", "--interval", "1s", "--zone", "UTC"],
    "preset": ["--preset", "low-power", "--field", "diffuse", "--calibration-uncertainty", "0.5"],
}
TOLD = [*((command, way) for command in ("meter", "analyze") for way in WAYS), ("serve", "default")]
TOLD.remove(("analyze", "limits"))  # which has no events


def told_of(command):
    """The help of a command by option: a line each, whatever their order and headings are."""
    from amt_stream.cli.command import build_parser

    out = io.StringIO()
    words = [command, "--help"] if command else ["--help"]
    wide = mock.patch.dict(os.environ, COLUMNS="10000")
    with wide, contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        build_parser().parse_args(words)
    _, _, text = out.getvalue().partition("\n\n")  # the usage lists the same options again
    lines = []
    for line in text.splitlines():
        if re.match(r" {6,}\S", line) and lines:
            lines[-1] += f" {line}"
        elif line.strip() and not re.fullmatch(r"[A-Za-z ]+:", line):
            lines.append(line)
    return sorted(" ".join(line.split()) for line in lines)


def header_of(command, way):
    """The header of the rows that a command writes of a tone, as JSON has it."""
    from amt_stream.cli.command import build_parser, run_chosen

    typed = [*HEADERS[command], *WAYS[way], "--full-scale-db", "100"]
    if command == "serve":
        reading, writing = os.pipe()  # which ends with the sound, and not with its input
        with forks().begin(*typed, stdin=reading, folder=Path.cwd()) as process:
            lines = process.stdout.read().splitlines()
        os.close(reading)
        os.close(writing)
    else:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run_chosen(build_parser().parse_args([*typed, "--format", "jsonl"])) == 0
        lines = out.getvalue().splitlines()
    found = next(json.loads(line)["header"] for line in lines if line.startswith('{"header"'))
    for key in ("host", "start_utc", "version", "versions"):
        found.pop(key, None)
    return found


@pytest.fixture
def tone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tone()


def write_tone():
    sound = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(24000) / 48000)
    soundfile.write("tone.wav", np.stack([sound, sound], 1), 48000, subtype="FLOAT")


def renamed(section, command, text):
    """What was said before, as it is to be said now."""
    changes = tomllib.loads((BEFORE / "renames.toml").read_text(encoding="utf-8")).get(section, [])
    for one in changes:
        if command in one.get("commands", [command]):
            text = text.replace(one["before"], one["now"])
    return text


@pytest.fixture
def names_of_before(monkeypatch):
    """Lists of models and norms without those that have been added since."""
    text = (BEFORE / "help.json").read_text(encoding="utf-8")
    models = {k: v for k, v in catalog._installed().items() if re.search(rf"\b{k}\b", text)}
    norms = [name for name in shipped_norms() if re.search(rf"\b{name}\b", text)]
    monkeypatch.setattr(catalog, "_installed", lambda: models)
    monkeypatch.setattr(output_settings, "shipped_norms", lambda: norms)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("names_of_before")
def test_help_is_as_it_was_but_for_what_was_renamed(command):
    before = json.loads((BEFORE / "help.json").read_text(encoding="utf-8"))[command]
    wanted = renamed("help", command, "\n".join(before)).split("\n")
    told, known = told_of(command), {line.partition(" ")[0] for line in wanted}
    gone = [line for line in wanted if line and line not in told]
    assert gone == [], "tell the old and the new text in tests/data/before/renames.toml"
    # A new option is no change of what there was.
    new = [line for line in told if line not in wanted]
    assert [line for line in new if line.partition(" ")[0] in known] == []


@pytest.mark.cases(2)
@pytest.mark.parametrize(("command", "way"), TOLD)
def test_headers_are_as_they_were_but_for_what_was_renamed(command, way, tone):
    before = json.loads((BEFORE / "headers.json").read_text(encoding="utf-8"))[f"{command} {way}"]
    wanted = json.loads(renamed("headers", command, json.dumps(before)))
    now = header_of(command, way)
    for column in now["columns"]:
        for key in ("label", "symbol", "if_clipped"):  # a new key is no change of what there was
            column.pop(key, None)
    now["source"].pop("sound")
    assert now == wanted


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    write_tone()
    known = {
        "help": {command: told_of(command) for command in COMMANDS},
        "headers": {f"{c} {way}": header_of(c, way) for c, way in TOLD},
    }
    for name, told in known.items():
        entries = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in told.items())
        text = "{\n" + ",\n".join(entries) + "\n}\n"
        (BEFORE / f"{name}.json").write_text(text, encoding="utf-8")
