"""Specific loudness for the page; it is not a column of rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from amt_stream.core.importing import has_torch
from amt_stream.meters import catalog
from amt_stream.offline.output_track import axis_of
from amt_stream.service.message import Message

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine

SCALES = ("erb_number", "bark")


def asks() -> dict[str, bool]:
    """The arguments with which models compute it; models that were compiled ahead do not."""
    if not has_torch():
        return {}
    outputs = [output for entry in catalog.entries().values() for output in entry.outputs.values()]
    return {one.takes: True for one in outputs if one.takes and _is_specific(one)}


def specific(engine: "Engine") -> list[Message]:
    """Specific loudness of the newest frame of each model and microphone [any-thread]."""
    found = []
    for history in engine.histories.values():
        if (frames := history.latest) is None:
            continue
        model = engine.models.get(frames.model)
        if model is None or (entry := catalog.entry_of(model)) is None:
            continue
        for output in filter(_is_specific, entry.outputs.values()):
            values = getattr(frames.values, output.field, None)
            if values is not None:
                found.append(_message(frames, entry.name, output, values))
    return found


def _is_specific(output: catalog.Output) -> bool:
    return output.axes[-1] in SCALES and output.unit.startswith("sone/")


def _message(frames: Any, model: str, output: catalog.Output, values: Any) -> Message:
    newest = np.asarray(values)[:, -1]
    axis = axis_of(output.axes[-1], newest.shape[-1])
    content = {
        "model": model,
        "microphone": frames.microphone,
        "time_s": round(frames.end_s, 6),
        "unit": output.unit,
        "scale": output.axes[-1],
        "at": [round(float(at), 4) for at in axis.values],
        "sone": [[round(float(v), 5) if np.isfinite(v) else None for v in ear] for ear in newest],
    }
    return Message("specific", content)
