"""The meter in the menu of a Linux desktop: an entry and an icon in the user's folders.

The wheel cannot install them: pip puts files below its environment, where desktops do not look, and
the path of the program is only known after the installation.
"""

import re
import sys
from importlib.resources import files
from pathlib import Path

from platformdirs import user_data_path

from amt_stream.cli.messages import Mistake
from amt_stream.core.files import whole_text_file, why

NAME = "amt-monitor"

ENTRY = """[Desktop Entry]
Type=Application
Name=amt-stream
GenericName=Loudness meter
Comment=Live loudness in sone and phon, sound levels and LUFS
Exec={program}
Icon={name}
Terminal=false
Categories=AudioVideo;Audio;Science;
Keywords=loudness;sone;phon;LUFS;sound level;SPL;microphone;
StartupWMClass={name}
StartupNotify=true
"""


def install_desktop(program: Path) -> list[Path]:
    """Write entry and icon, and return their paths. Raises Mistake if that is not possible.

    program: the program that the entry starts, such as `amt-monitor` of an environment
    """
    entry, icon = _places()
    drawing = (files("amt_monitor") / "icons" / icon.name).read_text(encoding="utf-8")
    text = ENTRY.format(name=NAME, program=_quoted(program))
    for path, content in ((icon, drawing), (entry, text)):
        try:
            with whole_text_file(path) as stream:
                stream.write(content)
        except OSError as error:
            raise Mistake(f"{path} cannot be written: {why(error)}") from error
    return [entry, icon]


def remove_desktop() -> list[Path]:
    """Remove the files of `install_desktop`, and return those that existed."""
    there = [path for path in _places() if path.exists()]
    for path in there:
        path.unlink(missing_ok=True)
    return there


def this_program() -> Path:
    """The running program, or `amt-monitor` beside the interpreter.

    Raises Mistake if there is none.
    """
    # First the running one: pip installs a user's programs elsewhere than the interpreter.
    started = Path(sys.argv[0]).absolute()
    if started.name == NAME and started.exists():
        return started
    frozen = getattr(sys, "frozen", False)
    program = Path(sys.executable) if frozen else Path(sys.executable).with_name(NAME)
    if not program.exists():
        raise Mistake(f"there is no {program} for the desktop to start: install with pip")
    return program


def _places() -> tuple[Path, Path]:
    if not sys.platform.startswith("linux"):
        raise Mistake(
            f"a desktop entry is for Linux: on Windows make a shortcut to {NAME}.exe, on macOS an "
            "alias of the program"
        )
    data = user_data_path()
    icons = data / "icons" / "hicolor" / "scalable" / "apps"
    return data / "applications" / f"{NAME}.desktop", icons / f"{NAME}.svg"


def _quoted(program: Path) -> str:
    """A path as the value of Exec: quoted, then escaped like all values of the file."""
    text = str(program)
    if not text.isprintable():
        raise Mistake(f"a desktop entry cannot contain {text!r}: install to another folder")
    quoted = re.sub(r'(["`$\\])', r"\\\1", text).replace("%", "%%")
    return '"' + quoted.replace("\\", "\\\\") + '"'
