"""Two measurements side by side: how much louder one is, how sure that is, and a page of it."""

from amt_stream.sessions.compare.difference import (
    Comparison,
    Course,
    Difference,
    NotComparable,
    compare,
)
from amt_stream.sessions.compare.page import comparison_page

__all__ = ["Comparison", "Course", "Difference", "NotComparable", "compare", "comparison_page"]
