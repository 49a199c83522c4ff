"""The report of a measurement as self-contained HTML."""

from amt_stream.sessions.report.content import About
from amt_stream.sessions.report.logo import LogoError
from amt_stream.sessions.report.page import PAGE_CHARTS, report_page

__all__ = ["PAGE_CHARTS", "About", "LogoError", "report_page"]
