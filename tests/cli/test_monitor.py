"""`amt-monitor`: the entry in the menu of a desktop, and what it refuses."""

import configparser
from pathlib import Path

import pytest

from amt_stream.cli.commands.monitor import build_monitor_parser, run_monitor
from amt_stream.cli.desktop import install_desktop, remove_desktop
from amt_stream.cli.messages import Mistake


@pytest.fixture
def data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_a_desktop_finds_the_program_its_icon_and_its_window(data_home):
    written = install_desktop(Path("/opt/My programs/100 % $new/amt-monitor"))
    assert [path.relative_to(data_home).as_posix() for path in written] == [
        "applications/amt-monitor.desktop",
        "icons/hicolor/scalable/apps/amt-monitor.svg",
    ]
    entry = configparser.RawConfigParser()
    entry.optionxform = str
    entry.read(written[0], encoding="utf-8")
    (told,) = (entry[name] for name in entry.sections())
    assert told["Icon"] == told["StartupWMClass"] == "amt-monitor"
    # Two layers: of a text of the file, then of a quoted argument; %% is a per cent sign.
    line = told["Exec"].replace("\\\\", "\\").replace("%%", "%")
    assert line == '"/opt/My programs/100 % \\$new/amt-monitor"'
    assert written[1].read_text(encoding="utf-8").startswith("<svg")
    assert remove_desktop() == written
    assert not any(path.exists() for path in written)
    assert remove_desktop() == []


def test_a_program_that_no_entry_can_name_is_refused(data_home):
    with pytest.raises(Mistake, match="a desktop entry cannot contain"):
        install_desktop(Path("/opt/a\nb/amt-monitor"))


def test_a_place_that_cannot_be_written_is_told(data_home):
    (data_home / "icons").write_text("a file")
    with pytest.raises(Mistake, match=r"amt-monitor\.svg cannot be written: "):
        install_desktop(Path("/opt/amt-monitor"))


def test_without_a_display_it_says_what_needs_none(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert run_monitor(["--source", "demo"]) == 1
    assert capsys.readouterr().err == (
        "amt-stream: there is no display: `amt-stream meter --terminal` needs none\n"
    )


def test_it_takes_what_the_meter_takes(capsys):
    args = build_monitor_parser().parse_args(["--source", "demo", "--model", "moore2016,bs1770"])
    assert (args.command, args.source, args.model) == ("meter", "demo", ("moore2016", "bs1770"))
    assert run_monitor(["--source", "demo", "--fast", "--duration", "1", "--format", "csv"]) == 0
    assert "ltl_sone" in capsys.readouterr().out
