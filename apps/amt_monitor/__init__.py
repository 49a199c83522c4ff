"""The desktop window of the meter: it shows a running engine and does no signal processing."""

from amt_monitor.run import run_window

__all__ = ["run_window"]
