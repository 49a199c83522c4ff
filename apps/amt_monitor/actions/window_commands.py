"""The commands of the window; its menus and its list of keys are made of this table."""

from typing import NamedTuple

TARGETS = {
    "files": ("open_file", "open_session", "save_session", "report", "compare"),
    "window": ("export", "choose_settings", "quit", "freeze", "venue", "first_steps", "keys"),
    "wall": ("wall",),
    "readings": ("reset_readings", "undo_reset", "reset_filters", "mark", "replay"),
    "limits": ("choose_limits", "choose_audience"),
    "calibration": ("calibrate", "calibrations"),
    "sti": ("measure_sti",),
}
"""What runs commands, by their names; the measurement runs the others."""


class WindowCommand(NamedTuple):
    """A command.

    name: of the method of its target that runs it
    text: in the menu
    key: as Qt writes it; ", " stands between several
    about: what it does
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
        return self.key.split(", ")

    @property
    def target(self) -> str:
        """What runs it: one of `TARGETS`, or "measurement"."""
        return next((one for one, names in TARGETS.items() if self.name in names), "measurement")


COMMANDS = (
    WindowCommand("open_file", "&Open a file...", "Ctrl+O", "File", "plays or analyzes a sound"),
    WindowCommand(
        "open_session", "Open a sess&ion...", "Ctrl+Shift+O", "File", "shows a stored session"
    ),
    WindowCommand(
        "save_session", "&Save the session...", "Ctrl+S", "File", "stores the measurement"
    ),
    WindowCommand("report", "&Report...", "Ctrl+P", "File", "writes one page, as HTML or PDF"),
    WindowCommand(
        "compare", "&Compare...", "Ctrl+D", "File", "with another session, in phon and dB"
    ),
    WindowCommand("export", "&Export the history...", "Ctrl+E", "File", "the visible span"),
    WindowCommand(
        "choose_settings", "Se&ttings...", "Ctrl+,", "File", "folder, colors, sound, limits"
    ),
    WindowCommand(
        "quit",
        "&Quit",
        "Q, Ctrl+Q",
        "File",
        "closes the window; asks first if readings would be lost",
    ),
    WindowCommand("pause", "&Pause", "Space", "Measure", "pauses all statistics"),
    WindowCommand("stop", "&Stop", "S", "Measure", "releases the input; a second time, continues"),
    WindowCommand("new_measurement", "&New measurement", "Ctrl+N", "Measure", "starts from zero"),
    WindowCommand(
        "reset_readings", "&Reset readings", "R", "Measure", "resets averages and maxima"
    ),
    WindowCommand(
        "undo_reset", "&Undo reset", "Ctrl+Z, U", "Measure", "restores the readings, within 10 s"
    ),
    WindowCommand(
        "reset_filters", "Reset &filters", "Shift+R", "Measure", "resets the models to silence"
    ),
    WindowCommand("mark", "&Marker...", "M", "Measure", "marks this moment with a note"),
    WindowCommand(
        "log", "&Log", "L", "Measure", "writes rows and events to a folder", checked=True
    ),
    WindowCommand(
        "replay", "&Keep last sound", "I", "Measure", "writes the last seconds to a file"
    ),
    WindowCommand(
        "choose_limits", "L&imits...", "Ctrl+L", "Measure", "of norms, or a reading and a value"
    ),
    WindowCommand(
        "choose_audience",
        "Correc&tion to the audience...",
        "Ctrl+U",
        "Measure",
        "how much louder it is there than at the microphone",
    ),
    WindowCommand(
        "measure_sti",
        "Spee&ch transmission...",
        "Ctrl+T",
        "Measure",
        "STI at several positions, by the STIPA test signal",
    ),
    WindowCommand(
        "calibrate",
        "Cali&brate a microphone...",
        "Ctrl+K",
        "Measure",
        "with a calibrator's tone or a file of its response",
    ),
    WindowCommand(
        "calibrations",
        "C&alibrations...",
        "Ctrl+Shift+K",
        "Measure",
        "lists the stored calibrations",
    ),
    WindowCommand(
        "freeze",
        "&Freeze",
        "F",
        "View",
        "freezes the panes; the measurement continues",
        checked=True,
    ),
    WindowCommand(
        "venue", "&Venue view", "V", "View", "level and time left to a limit, bass, peak; V ends it"
    ),
    WindowCommand("wall", "&Wall view", "F11", "View", "two or three numbers on the whole screen"),
    WindowCommand(
        "first_steps", "&Getting started", "F1", "Help", "input, calibration, badge, keys"
    ),
    WindowCommand("keys", "&Keys", "?", "Help", "shows this list"),
)

GROUPS = ("report", "choose_settings", "quit", "reset_readings", "mark", "choose_limits")
"""Each of these begins a group in its menu."""
