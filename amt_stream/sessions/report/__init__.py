"""What a measurement has given on one page, to be handed on: HTML that is whole in itself."""

from amt_stream.sessions.report.content import About
from amt_stream.sessions.report.page import PAGE_CHARTS, report_page

__all__ = ["PAGE_CHARTS", "About", "report_page"]
