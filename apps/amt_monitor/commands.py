"""What can be done in the window, by which key; the sheet of keys and the menus read this list."""

from typing import NamedTuple


class Command(NamedTuple):
    """One of them.

    name: of the method of the window that does it
    text: in the menu
    key: as Qt writes it; with a comma and a space between, several
    menu: where it stands
    about: what it does, in a sentence
    checked: whether it is on or off
    """

    name: str
    text: str
    key: str
    menu: str
    about: str
    checked: bool = False

    @property
    def keys(self) -> list[str]:
        """Each of them."""
        return self.key.split(", ")


COMMANDS = (
    Command("open_file", "&Open a file...", "Ctrl+O", "File", "plays or analyzes a sound"),
    Command("open_session", "Open a sess&ion...", "Ctrl+Shift+O", "File", "shows what was kept"),
    Command("save_session", "&Save the session...", "Ctrl+S", "File", "keeps what was measured"),
    Command("report", "&Report...", "Ctrl+P", "File", "writes one page, as HTML or PDF"),
    Command("compare", "&Compare...", "Ctrl+D", "File", "with another session, in phon and dB"),
    Command("export", "&Export the history...", "Ctrl+E", "File", "what is visible of it"),
    Command("choose_settings", "Se&ttings...", "Ctrl+,", "File", "folder, colors, sound, limits"),
    Command(
        "quit", "&Quit", "Q, Ctrl+Q", "File", "closes the window; asks where readings are lost"
    ),
    Command("pause", "&Pause", "Space", "Measure", "nothing is counted until it goes on"),
    Command("stop", "&Stop", "S", "Measure", "lets the input go; after that, goes on"),
    Command("anew", "&New measurement", "Ctrl+N", "Measure", "begins from nothing"),
    Command("clear", "&Reset readings", "R", "Measure", "forgets averages, maxima, percentiles"),
    Command("undo_clear", "&Undo reset", "Ctrl+Z, U", "Measure", "counts readings again, for 10 s"),
    Command("reset", "Reset &filters", "Shift+R", "Measure", "models go back to silence"),
    Command("mark", "&Marker...", "M", "Measure", "keeps this moment with a note"),
    Command("log", "&Log", "L", "Measure", "keeps rows and events in a folder", checked=True),
    Command("replay", "&Keep last sound", "I", "Measure", "writes the last seconds to a file"),
    Command(
        "calibrate",
        "Cali&brate a microphone...",
        "Ctrl+K",
        "Measure",
        "with a calibrator's tone, or a file of its response",
    ),
    Command("calibrations", "C&alibrations...", "Ctrl+Shift+K", "Measure", "lists what is kept"),
    Command("freeze", "&Freeze", "F", "View", "holds the picture alone", checked=True),
    Command("wall", "&Wall view", "F11", "View", "two or three numbers for a whole room"),
    Command("first_steps", "&Getting started", "F1", "Help", "input, calibration, badge, keys"),
    Command("keys", "&Keys", "?", "Help", "shows this list"),
)

GROUPS = ("report", "choose_settings", "quit", "clear", "mark", "calibrate")
"""Commands that begin a group in their menu."""
