"""Readings of a model without a readings class: its outputs of one number per frame."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Frames, scalar_field
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.readings import Uncounted


class FieldReadings(Uncounted):
    """The outputs of a model as columns.

    model: name of the model, the prefix of the columns' names if it is not empty
    fields: names of outputs with one number per frame; "value" is the output of a model without
        named outputs
    """

    def __init__(self, model: str, fields: Sequence[str]) -> None:
        self._fields = {f"{model}_{field}" if model else field: field for field in fields}
        columns = [Column(name, "", f"output {f}", model) for name, f in self._fields.items()]
        super().__init__(model, columns, self._fields)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        found = np.empty((len(frames), len(self.columns)))
        for k, column in enumerate(self.columns):
            found[:, k] = scalar_field(frames.values, self._fields[column.name])
        return found
