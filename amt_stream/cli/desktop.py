"""The meter in the menu of a Linux desktop: its entry and its icon, in the user's own folders.

Not files of the wheel: pip puts those below the environment that it installs into, where no desktop
looks unless that is the system's; and what an entry starts is known only where it is.
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
Comment=Loudness in sone and phon, sound levels and LUFS, while they are heard
Exec={program}
Icon={name}
Terminal=false
Categories=AudioVideo;Audio;Science;
Keywords=loudness;sone;phon;LUFS;sound level;SPL;microphone;
StartupWMClass={name}
StartupNotify=true
"""


def install_desktop(program: Path) -> list[Path]:
    """Write entry and icon of a program; gives the files. Raises Mistake where there is no place.

    program: what the entry starts, as `amt-monitor` of an environment
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
    """Remove what `install_desktop` wrote; gives those files that were there."""
    there = [path for path in _places() if path.exists()]
    for path in there:
        path.unlink(missing_ok=True)
    return there


def this_program() -> Path:
    """The program that runs, or that of its name beside the interpreter. Raises Mistake."""
    # pip's own place for a user's programs is not where the interpreter is.
    started = Path(sys.argv[0]).absolute()
    if started.name == NAME and started.exists():
        return started
    frozen = getattr(sys, "frozen", False)
    program = Path(sys.executable) if frozen else Path(sys.executable).with_name(NAME)
    if not program.exists():
        raise Mistake(f"{program} is not there, which the desktop would start: install with pip")
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
    """A path as the value of Exec: quoted, and then escaped as any text of such a file."""
    text = str(program)
    if not text.isprintable():
        raise Mistake(f"{text!r} cannot stand in a desktop entry: install to another folder")
    quoted = re.sub(r'(["`$\\])', r"\\\1", text).replace("%", "%%")
    return '"' + quoted.replace("\\", "\\\\") + '"'
