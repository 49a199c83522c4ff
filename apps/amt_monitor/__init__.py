"""The desktop meter: a window that looks at a running engine and does no signal processing."""

from amt_monitor.run import run_window

__all__ = ["run_window"]
