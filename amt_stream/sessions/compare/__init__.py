"""Comparison of two measurements, with uncertainties, and its page."""

from amt_stream.sessions.compare.difference import (
    Comparison,
    Course,
    NotComparable,
    compare,
)
from amt_stream.sessions.compare.page import comparison_page
from amt_stream.sessions.compare.reading_difference import Difference
from amt_stream.sessions.compare.several import reports_page

__all__ = [
    "Comparison",
    "Course",
    "Difference",
    "NotComparable",
    "compare",
    "comparison_page",
    "reports_page",
]
