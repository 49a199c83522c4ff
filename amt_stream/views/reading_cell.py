"""A reading in a pane."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from amt_stream.meters.rows.captions import Caption, caption_of, row_text, sign_in
from amt_stream.meters.rows.words import with_sign


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

    def write(self, values: Mapping[str, Any]) -> str:
        """The reading of a row as text, with a sign if it includes clipped sound."""
        value = values.get(self.name)
        if value is None or self.text is None:
            return row_text(self.name, values)
        return with_sign(self.text(value), sign_in(self.name, values))
