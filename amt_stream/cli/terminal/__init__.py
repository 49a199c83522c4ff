"""The meter in the terminal: a screen of Textual's, or a line of text each second."""

from amt_stream.cli.terminal.lines import LinePrinter
from amt_stream.cli.terminal.meter import TerminalMeter
from amt_stream.cli.terminal.show import show

__all__ = ["LinePrinter", "TerminalMeter", "show"]
