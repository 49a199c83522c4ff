"""Commands: what they may be is what `docs/wire.md` says."""

from pathlib import Path

import pytest

from amt_stream.service import COMMANDS, CommandRefused, understood

WIRE = Path(__file__).parents[2] / "docs" / "wire.md"


def table(heading):
    """The cells of the table under a heading."""
    text = WIRE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_document_has_each_command_and_argument():
    told = {}
    for command, argument, what in table("Commands"):
        if command:
            name, told[command] = command, [what]
        else:
            told[name].append((argument, what))
    for name, command in COMMANDS.items():
        arguments = [
            (key, one.meaning + ("; needed" if one.needed else ""))
            for key, one in command.arguments.items()
        ]
        assert told.pop(name) == [command.does, *arguments]
    assert not told


ANY = {"text": "a", "microphone": "left", "full_scale_db": 94, "settings": {"field": "free"}}
ANY |= {"preset": "moore2016", "what": "models", "seconds": 10, "time_s": 4.2}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_takes_its_arguments_and_no_other(name):
    arguments = COMMANDS[name].arguments
    given = {key: ANY[key] for key in arguments}
    assert understood({"command": name, "id": 3, **given}) == (name, given, 3)
    with pytest.raises(CommandRefused, match="has no argument 'banana': there are"):
        understood({"command": name, "banana": 1})
    for key, argument in arguments.items():
        for wrong in (None, [1], True, "x" * 1001, 1e9, {"a": 1}):
            with pytest.raises(CommandRefused, match=rf"{key} of {name} is .*: give "):
                understood({"command": name, **given, key: wrong})
        if argument.needed:
            with pytest.raises(CommandRefused, match=f"{name} needs {key}: "):
                understood({"command": name})


@pytest.mark.parametrize(
    "asked", [None, 1, "start", [], {}, {"command": 1}, {"command": "jump"}, {"command": "\x1b[2J"}]
)
def test_what_is_no_command_is_said_in_one_line(asked):
    with pytest.raises(CommandRefused) as refusal:
        understood(asked)
    assert "is not a command: " in str(refusal.value)
    assert str(refusal.value).isprintable()
