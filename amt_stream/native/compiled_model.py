"""A model of the catalog that an engine runs as machine code, without torch and numba."""

import ctypes
import json
import weakref
from collections import namedtuple
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.built_ahead import engine_library, file_of, this_target
from amt_stream.core.importing import NeedsTorch
from amt_stream.core.words import counted
from amt_stream.dsp.contract import rows_of
from amt_stream.native.library import FailedModel, Library


class CompiledModel:
    """A model whose library was built before, with its default settings.

    It has the attributes of the `Stage` that it was made of, as far as an engine and readings need
    them.

    catalog_name: its name in the catalog
    fs: sampling rate in Hz
    channels: that it is to hear
    settings: those that are wanted

    Raises NeedsTorch for what no library was built for.
    """

    uncertainty_db = None
    device = "cpu"

    def __init__(
        self, catalog_name: str, fs: int, channels: int, settings: Mapping[str, str]
    ) -> None:
        self.catalog_name = catalog_name
        self.compute = f"{self.device}, compiled ahead for {this_target()}"
        missing = NeedsTorch(
            f"{catalog_name} at {fs} Hz for {counted(channels, 'channel')} is not among the models "
            f"that were built for {this_target()}: install the package amt_stream, which has it"
        )
        counts = dict.fromkeys((channels, max(2, channels)))
        files = (file_of(engine_library(catalog_name, fs, count)) for count in counts)
        path = next(filter(None, files), None)
        if path is None:
            raise missing
        whole = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        about = whole["stage"]
        self._arguments: dict[str, str] = about["arguments"]
        for key, word in settings.items():
            if self._arguments.get(key, word) != word:
                raise NeedsTorch(
                    f"{catalog_name} was built with {key} = {self._arguments[key]}: for {word} "
                    "install the package amt_stream"
                )
        self.library, self.about = Library(path), about
        self.block_size: int = whole["block"]
        self.fs: int = about["fs"]
        self.ratio, self.latency = Fraction(*about["ratio"]), Fraction(*about["latency"])
        self.settle_s: float = about["settle_s"]
        self.memory_s: float = about["memory_s"]
        self.tail_s: float = about["tail_s"]
        self.frames_stand_for_end: bool = about["frames_stand_for_end"]
        self.per_channel: bool = about["per_channel"]
        self.channels: int | None = about["channels"]
        self.input_unit: Literal["pascal", "full scale"] = about["input_unit"]
        self.nominal: list[float] = about["nominal"]
        """Midband frequencies in Hz, of a model with bands."""
        dims = about["out_time_dim"]
        self.kind: Any = None
        if isinstance(dims, list):
            names = [name for name, _ in about["outputs"]]
            self.kind = namedtuple("Output", names)  # type: ignore[misc]
        self.out_time_dim: Any = dims if self.kind is None else self.kind(*dims)
        # Only a model of two ears hears one channel with both.
        if rows_of(self, channels) != self.library.info.channels:
            raise missing

    def arguments(self) -> dict[str, str]:
        """The settings that it was built with."""
        return self._arguments


class CompiledInstance:
    """One sound of a `CompiledModel`: `run` takes whole blocks (channel, time)."""

    def __init__(self, model: CompiledModel) -> None:
        self._model, self._c = model, model.library.c
        self._at = self._c.amt_create(None)
        if not self._at:
            raise MemoryError(f"{model.catalog_name}: no memory for an instance")
        weakref.finalize(self, self._c.amt_destroy, self._at)
        info, about = model.library.info, model.about
        self._frames = np.empty((info.frames_per_block, len(info.columns)), np.float32)
        self._starts = (ctypes.c_void_p * info.channels)()
        # With an axis of listeners, which some models have themselves.
        places = [place for _, place in about["outputs"]]
        ends = [p["place"] + _bytes_of(p) for p in places if p is not None]
        address = self._c.amt_outputs(self._at)
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * max(ends)).from_address(address))
        views = [None if p is None else output_view(memory, p) for p in places]
        if not about["listeners"]:
            views = [None if v is None else v[None] for v in views]
        self._outputs = views
        self._state_at = self._c.amt_state(self._at)

    def run(self, sound: NDArray[np.float32]) -> Any:
        """The output of a block (channel, time), as a copy: (listener, ...).

        Raises FailedModel if the calculation fails.
        """
        sound = np.ascontiguousarray(sound)
        for k, channel in enumerate(sound):
            self._starts[k] = channel.ctypes.data
        used = ctypes.c_int32()
        given = self._frames.ctypes.data, len(self._frames), ctypes.byref(used)
        status = self._c.amt_process(self._at, self._starts, sound.shape[1], *given)
        if status < 0:
            name = self._model.catalog_name
            raise FailedModel(f"{name}: its calculation failed, status {status}")
        values = [None if view is None else view.copy() for view in self._outputs]
        kind = self._model.kind
        return values[0] if kind is None else kind(*values)

    def reset(self) -> None:
        """Set the state of silence."""
        self._c.amt_reset(self._at)

    def begin_now(self) -> None:
        """The sound begins now, after a constant input that was none."""
        for place, dtype, value in self._model.about["begins"]:
            self._number(place, dtype)[...] = value

    def end_after(self, samples: int) -> None:
        """The sound ends after so many more samples."""
        for place, dtype in self._model.about["ends"]:
            self._number(place, dtype)[...] = samples

    def _number(self, place: int, dtype: str) -> NDArray[Any]:
        kind = np.dtype(dtype)
        memory = (ctypes.c_uint8 * kind.itemsize).from_address(self._state_at + place)
        return np.ctypeslib.as_array(memory).view(kind)

    @property
    def state(self) -> NDArray[np.uint8]:
        """The state, as `amt_save` writes it."""
        to = ctypes.create_string_buffer(self._model.library.info.state_bytes)
        self._c.amt_save(self._at, to)
        return np.frombuffer(to.raw, np.uint8)

    @state.setter
    def state(self, given: NDArray[np.uint8]) -> None:
        content = given.astype(np.uint8).tobytes()
        if self._c.amt_load(self._at, content, len(content)):
            raise ValueError(f"the state is not one of this {self._model.catalog_name}")


def _bytes_of(place: Mapping[str, Any]) -> int:
    """Bytes from the first number of an output to the end of its last one."""
    spans = zip(place["shape"], place["strides"], strict=True)
    before: int = sum((n - 1) * stride for n, stride in spans)
    return before + int(np.dtype(place["dtype"]).itemsize)


def output_view(memory: NDArray[np.uint8], place: Mapping[str, Any]) -> NDArray[Any]:
    """An output in the memory of all outputs of a block; place: as `stage_about` gives it."""
    shape, strides, at = place["shape"], place["strides"], place["place"]
    return np.ndarray(shape, place["dtype"], memory, at, strides)
