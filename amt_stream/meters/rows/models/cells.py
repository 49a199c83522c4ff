"""Readings of a chain of user stages: the output of the last stage, a row for each number."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.contract import rows_of
from amt_stream.meters.frames import Frames, scalar_field
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.readings import Uncounted

AXES = (
    Column("channel", "", "channel of the output, counted from 1"),
    Column("band", "", "auditory band, or what else the second axis holds, counted from 1"),
    Column("modulation", "", "modulation band, or what else the third axis holds, counted from 1"),
)
"""Names of the axes of a stage's output without batch and time."""

OUTPUT = Column("output", "", "name of the output")


class CellReadings(Uncounted):
    """Each number of a model's output: a row per output, channel, band and modulation.

        name: name of the model
        shapes: shape of each output without the axes of batch and time, by name; "value" is the
            output of a model without named outputs
        time_dims: axis of time of each output, negative

    Raises ValueError for an output of more than three axes besides these.
    """

    def __init__(
        self, name: str, shapes: Mapping[str, tuple[int, ...]], time_dims: Mapping[str, int]
    ) -> None:
        self._time_dims = dict(time_dims)
        deepest = max(shapes, key=lambda output: len(shapes[output]))
        axes = len(shapes[deepest])
        if axes > len(AXES):
            raise ValueError(
                f"{name}: the output {deepest} has {axes} axes besides batch and time: rows tell "
                f"{len(AXES)}, which are {', '.join(axis.name for axis in AXES)}"
            )
        named = list(shapes) != ["value"]
        self.keys = ((OUTPUT,) if named else ()) + AXES[:axes]
        self.cells = tuple(
            ((output,) if named else ())
            + tuple(i + 1 for i in place)
            + (None,) * (axes - len(shape))
            for output, shape in shapes.items()
            for place in np.ndindex(*shape)
        )
        value = Column("value", "", "output of the last stage, in its own unit", name)
        super().__init__(name, [value], ["value"])

    def take(self, frames: Frames) -> NDArray[np.float64]:
        outputs = [
            np.moveaxis(scalar_field(frames.values, output), dim, 0).reshape(len(frames), -1)
            for output, dim in self._time_dims.items()
        ]
        cells = np.concatenate(outputs, axis=1)[:, :, None]
        return cells.repeat(len(self.columns), axis=2).astype(np.float64)


def cell_readings(name: str, model: Any, channels: int) -> CellReadings:
    """Make the readings of a model with this number of channels.

    Its outputs are found with a block of silence.
    """
    import torch

    from amt_stream.dsp.stream import Stream
    from amt_stream.dsp.streaming import without

    rows = rows_of(model, channels)
    with torch.inference_mode():
        y = Stream(model, (1, rows))(torch.zeros(1, rows, model.block_size, dtype=model.dtype))
    outputs = {"value": y} if isinstance(y, torch.Tensor) else y._asdict()
    dims = model.out_time_dim
    time_dims = {"value": dims} if isinstance(dims, int) else dims._asdict()
    there = [output for output, v in outputs.items() if v is not None]
    shapes = {output: without(outputs[output].shape, time_dims[output])[1:] for output in there}
    return CellReadings(name, shapes, {output: time_dims[output] for output in there})
