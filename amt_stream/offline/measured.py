"""The readings of a whole sound, as arrays and data frames."""

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.importing import install
from amt_stream.core.json_types import JsonDict
from amt_stream.core.words import counted
from amt_stream.meters import rows

if TYPE_CHECKING:
    import pandas
    import xarray


from amt_stream.offline.output_track import Axis


class Measured:
    """The readings of one sound.

    `m["ltl_phon"]` is a column as an array (row,), NaN without a reading, and
    `m["specific_loudness"]` a chosen output (row, ...) along `m.axes`. `m.columns` are the names of
    all columns, and `m.outputs` those of outputs. `header` describes the sound, the columns and the
    settings, and `summary` has the statistics of the whole sound, as in `amt-stream analyze`.
    `intervals` has the table of intervals, if chosen: `m.intervals["laeq_db"]` is a column of it.
    """

    def __init__(
        self,
        table: rows.Rows,
        header: JsonDict,
        summary: JsonDict,
        outputs: Mapping[str, NDArray[np.float32]],
        axes: Mapping[str, tuple[Axis, ...]],
        units: Mapping[str, str],
        intervals: rows.Rows | None = None,
    ) -> None:
        self.intervals = intervals
        self.rows, self.header, self.summary = table, header, summary
        self.outputs, self.axes, self._units = dict(outputs), dict(axes), dict(units)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, beginning with the time."""
        return self.rows.columns

    @property
    def time_s(self) -> NDArray[np.float64]:
        """Times of the rows in seconds."""
        return self["time_s"]

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.outputs:
            return self.outputs[name]
        if name not in self.columns:
            raise KeyError(f"{name!r}: there are {', '.join([*self.columns, *self.outputs])}")
        return self.rows[name]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __repr__(self) -> str:
        source = self.header["source"]
        names = ", ".join([*(c["name"] for c in self.header["columns"]), *self.outputs])
        return f"<Measured {source['name']}: {counted(len(self), 'row')} of {names}>"

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a data frame; `attrs` has the header.

        Needs pandas: pip install "amt_stream[data]".
        """
        pandas = _extra("pandas")
        frame = pandas.DataFrame({name: self.rows[name] for name in self.columns})
        frame.attrs.update(self.header)
        return frame

    def to_xarray(self) -> "xarray.Dataset":
        """Columns and outputs along `time_s`, with units.

        If there are several rows at a time, such as of a spectrum, they are along `row`. The header
        is JSON text, as netCDF has no dicts: json.loads(data.attrs["header"]). Needs xarray: pip
        install "amt_stream[data]".
        """
        xarray = _extra("xarray")

        dimension = "time_s" if len(np.unique(self.time_s)) == len(self) else "row"
        units = {column["name"]: column["unit"] for column in self.header["columns"]}
        data: dict[str, object] = {}
        coordinates: dict[str, object] = {"time_s": (dimension, self.time_s, {"units": "s"})}
        for name in self.columns[1:]:
            unit = {"units": units[name]} if name in units else {}
            data[name] = (dimension, self.rows[name], unit)
        for name, values in self.outputs.items():
            dimensions = [dimension, *(axis.name for axis in self.axes[name])]
            data[name] = (dimensions, values, {"units": self._units[name]})
            for axis in self.axes[name]:
                coordinates[axis.name] = axis.values
                if axis.center_hz is not None:
                    coordinates["center_hz"] = (axis.name, axis.center_hz, {"units": "Hz"})
        return xarray.Dataset(data, coordinates, attrs={"header": json.dumps(self.header)})


def to_pandas(measured: "Iterable[Measured | Exception]") -> "pandas.DataFrame":
    """A data frame of the results of `measure_files`, with a row per sound: its name and summary.

    A sound that failed only has the reason, in the column `error`. To get the rows of all sounds in
    one frame, use `pandas.concat({m.header["source"]["name"]: m.to_pandas() for m in measured})`.
    Needs pandas: pip install "amt_stream[data]".
    """
    pandas = _extra("pandas")
    found = [
        {"error": str(one)}
        if isinstance(one, Exception)
        else {key: v for key, v in one.summary.items() if not isinstance(v, dict | list)}
        for one in measured
    ]
    frame = pandas.DataFrame(found)
    return frame if "error" in frame else frame.assign(error=None)


def _extra(package: str) -> Any:
    """Import a package of the extra `data`. Raises ModuleNotFoundError, which names the extra."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"this needs {package}, which is not installed: {install('data')}",
            name=package,
        ) from error
