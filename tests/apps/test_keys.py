"""Keys: the same in the window and in the terminal."""

from pathlib import Path

from amt_monitor.actions.window_commands import COMMANDS
from amt_stream.cli.terminal.keys import KEYS


def as_qt_writes(key):
    if key == " ":
        return "Space"
    return f"Shift+{key}" if key.isupper() else key.upper()


def test_keys_of_the_terminal_do_the_same_in_the_window():
    window = {command.name: command.keys for command in COMMANDS}
    for one in KEYS:
        assert as_qt_writes(one.key) in window[one.name], one


def test_no_key_does_two_things():
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(set(keys)) == len(keys)


def test_the_text_on_the_window_lists_every_key():
    text = (Path(__file__).parents[2] / "docs" / "window.md").read_text()
    for one in COMMANDS:
        line = f"| {one.key} | {one.text.replace('&', '').rstrip('.')} | {one.about} |"
        assert line in text, f"docs/window.md: {line}"
    table = text[text.index("\n| key | what | |") :].partition("\n\n")[0]
    assert table.count("\n| ") == len(COMMANDS) + 1, "a line of no command"
