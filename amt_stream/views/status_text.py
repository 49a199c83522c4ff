"""The status line and the title of the window."""

from typing import TYPE_CHECKING

from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.meters.rows.captions import HEADLINES, caption_of, row_text
from amt_stream.sessions.events import keeper_in

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Health
    from amt_stream.views.view_state import ViewState


def status_text(engine: "Engine", health: "Health") -> str:
    """The input, the load of the computer, lost samples and stored sound."""
    source, keeper = engine.source, keeper_in(engine.sinks)
    words = (
        source.name,
        f"{source.fs / 1000:g} kHz",
        health.load_words,
        f"{counted(health.lost_samples, 'sample')} lost",
        *([] if keeper is None else [keeper.words]),
        *([] if engine.device == "cpu" else [f"on {engine.device}"]),
    )
    return plain(" \N{MIDDLE DOT} ".join(words))


def title_text(engine: "Engine | None", state: str, view: "ViewState | None") -> str:
    """As "LTL 68.3 sone - USB microphone - amt-stream"; the state while not running.

    An uncalibrated reading says so; one of a model that is switched off is not of now.
    """
    if engine is None:
        return "amt-stream"
    title = _headline(view) if view is not None and state == "running" else ""
    title = title or state
    return plain(f"{title} - {engine.source.name} - amt-stream")


def _headline(view: "ViewState") -> str:
    """The first headline that a running model gives; "" if there is none."""
    for name in HEADLINES:
        status, caption = view.number_status(name), caption_of(name)
        if view.values.get(name) is not None and not status.off:
            text = f"{caption.symbol} {row_text(name, view.values)} {caption.unit}"
            return f"{text}, uncalibrated" if status.uncalibrated else text
    return ""
