"""A reading in a pane."""

from collections.abc import Callable
from typing import NamedTuple

from amt_stream.meters.rows import NO_READING, reading_text
from amt_stream.meters.rows.captions import Caption, caption_of


class ReadingCell(NamedTuple):
    """A reading by its name, and its format.

    label: name of the label, and of the reading whose caption is shown, if another
    words, unit: in place of those of the caption
    """

    name: str
    label: str = ""
    text: Callable[[float], str] | None = None
    words: str = ""
    unit: str = ""

    @property
    def shown_as(self) -> str:
        return self.label or self.name

    @property
    def caption(self) -> Caption:
        caption = caption_of(self.shown_as)
        caption = caption._replace(words=self.words, symbol="") if self.words else caption
        return caption._replace(unit=self.unit) if self.unit else caption

    def write(self, value: float | None) -> str:
        if value is None or self.text is None:
            return NO_READING if value is None else reading_text(self.name, value)
        return self.text(value)
