"""The dialog for settings of all measurements."""

from collections.abc import Callable

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.base.theme import CHOICES, NAMES, theme
from amt_monitor.base.widgets import Button, DialogButtons, plain_label, set_up_spin
from amt_stream.meters.output_settings import EventSettings
from amt_stream.meters.setting import declared
from amt_stream.meters.triggers import KEPT_S

KEEP_RULE = declared(EventSettings, "keep_sound")[0].rule
KEPT_ABOUT = (
    "The sound stays in memory and is overwritten, unless you press I to save it to a file. It may "
    "contain people's voices: tell them, and ask before you save it."
)


class SettingsDialog(QtWidgets.QDialog):
    """Stores settings when accepted, then calls `changed`.

    tray: whether the desktop has a tray for icons
    """

    def __init__(
        self,
        settings: Settings,
        changed: Callable[[], object],
        parent: QtWidgets.QWidget | None = None,
        tray: bool = True,
    ) -> None:
        super().__init__(parent, objectName="settings_dialog", windowTitle="Settings")
        self._settings, self._changed = settings, changed
        form = QtWidgets.QFormLayout(self, verticalSpacing=10)
        self.theme = QtWidgets.QComboBox()
        for choice in CHOICES:
            self.theme.addItem(NAMES[choice], choice)
        self.theme.setCurrentIndex(CHOICES.index(theme.choice))
        form.addRow("Co&lors", self.theme)

        self.folder = QtWidgets.QLineEdit(settings.get("log_folder", ""))
        self.folder.setPlaceholderText("amt-stream in your documents")
        self.folder.setMinimumWidth(40 * self.fontMetrics().averageCharWidth())
        browse = QtWidgets.QPushButton("&Browse...")
        browse.clicked.connect(lambda _: self._browse())
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self.folder, 1)
        row.addWidget(browse)
        label = QtWidgets.QLabel("&Folder of logs and sounds")
        label.setBuddy(self.folder)
        form.addRow(label, row)

        keep_s = settings.get("keep_s", 0)
        self.keep = QtWidgets.QCheckBox("&Keep the last of the sound in memory", checked=keep_s > 0)
        self.seconds = QtWidgets.QSpinBox()
        self.seconds.setRange(int(KEEP_RULE.low), int(KEEP_RULE.high))
        set_up_spin(self.seconds, "s", "seconds of sound")
        self.seconds.setValue(round(keep_s if keep_s > 0 else KEPT_S))
        self.seconds.setEnabled(self.keep.isChecked())
        self.keep.toggled.connect(self.seconds.setEnabled)
        row = QtWidgets.QHBoxLayout()
        row.addWidget(self.keep)
        row.addWidget(self.seconds)
        row.addStretch(1)
        form.addRow("Sound", row)
        form.addRow("", plain_label("", KEPT_ABOUT, wrap=True, role="second"))

        self.sound = QtWidgets.QCheckBox("&Beep when a limit is exceeded, or soon will be")
        self.sound.setChecked(settings.get("limit_sound", False))
        form.addRow("Limits", self.sound)
        self.tray = QtWidgets.QCheckBox("Show their light as an &icon in the tray")
        self.tray.setChecked(settings.get("tray", False))
        self.minimize = QtWidgets.QCheckBox("&Minimize to that icon")
        self.minimize.setChecked(settings.get("minimize_to_tray", False))
        self.minimize.setEnabled(tray and self.tray.isChecked())
        self.tray.toggled.connect(self.minimize.setEnabled)
        self.tray.setEnabled(tray)
        if not tray:
            self.tray.setToolTip("this desktop has no tray")
        form.addRow("", self.tray)
        form.addRow("", self.minimize)

        form.addRow(DialogButtons(self, Button.Ok | Button.Cancel))

    def accept(self) -> None:
        self._settings.put(
            theme=self.theme.currentData(),
            log_folder=self.folder.text().strip(),
            keep_s=self.seconds.value() if self.keep.isChecked() else 0,
            limit_sound=self.sound.isChecked(),
            tray=self.tray.isChecked(),
            minimize_to_tray=self.minimize.isChecked(),
        )
        super().accept()
        self._changed()

    def _browse(self) -> None:
        title = "Folder of logs and sounds"
        name = QtWidgets.QFileDialog.getExistingDirectory(self, title, self.folder.text())
        if name:
            self.folder.setText(name)
