"""The plan of a compiled model, relocatable: places in segments of memory instead of addresses."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from amt_stream import __version__
from amt_stream.core.words import counted
from amt_stream.dsp.functional.compiler.call_table import WIDTH
from amt_stream.dsp.fused import Fused, FusedStage, HostOutput, Workspace
from amt_stream.meters import catalog
from amt_stream.meters.rows import column_named
from amt_stream.meters.rows.column import AT_LEAST
from amt_stream.native.limit import names_in_rows
from amt_stream.native.moore import GlasbergMeter, MooreMeter
from amt_stream.native.programme import ProgrammeMeter
from amt_stream.native.sound_level import LevelMeter
from amt_stream.native.stage_about import NotNative, stage_about
from amt_stream.native.zwicker import ZwickerMeter

ALIGNMENT = 64
"""Bytes to which each array is aligned: a line of the cache."""

METERED: Mapping[str, Callable[[int, int], Any]] = {
    "zwicker": lambda fs, channels: ZwickerMeter(fs),
    "moore2016": lambda fs, channels: MooreMeter(fs),
    "gm2002": lambda fs, channels: GlasbergMeter(fs),
    "bs1770": ProgrammeMeter,
    "spl": lambda fs, channels: LevelMeter(fs),
}
"""Models that have their readings in the plan, by the names of the catalog."""

HIGHEST_INTEGER = 1 << 20
"""A larger number in a plan is an address."""


class Segment(IntEnum):
    """What the number of a row of a plan is: itself, or a place in memory of this kind."""

    NUMBER = 0
    KERNEL = 1
    TABLE = 2
    WORK = 3
    STATE = 4
    INPUT = 5
    OUTPUT = 6


@dataclass(frozen=True)
class PlanRow:
    """A row of a plan: `value` is an integer, the number of a kernel or a place in bytes."""

    name: str
    row: int
    segment: Segment
    value: int
    sizes: tuple[int, ...]


class OfColumn(NamedTuple):
    """What limits need to know of a column, as `LimitMonitor` does."""

    counted: bool = False
    rises: bool = False


@dataclass(frozen=True)
class HostColumn:
    """A number of each frame: `place` is that of its first frame, in bytes of the outputs."""

    name: str
    unit: str
    place: int
    about: OfColumn


@dataclass(frozen=True)
class HostPlan:
    """All that a program in another language needs to run a model in blocks of one length.

    lead: shape of the model's input without time
    block: samples of a channel in a block; each block gives `frames` frames
    home, kernels, entry: the module of the kernels, those called by address, and the one that calls
    gives: whether the entry returns a bool
    length: rows of the plan; `rows` has those that are not zero
    tables, state: constant memory, and that of the state before the first sample
    work, outputs: bytes of them
    about_stage: what `stage_about` gives, for an engine
    """

    model: str
    fs: int
    channels: int
    lead: tuple[int, ...]
    block: int
    frames: int
    input_unit: str
    latency_s: float
    settle_s: float
    tail_s: float
    home: str
    kernels: tuple[str, ...]
    entry: str
    gives: bool
    dtype: str
    length: int
    rows: tuple[PlanRow, ...]
    columns: tuple[HostColumn, ...]
    tables: bytes
    state: bytes
    work: int
    outputs: int
    about_stage: str = ""

    @property
    def frame_s(self) -> float:
        return self.block / self.fs / self.frames

    @property
    def initial(self) -> bytes:
        """The state before the first sample, without the zeros at its end."""
        return self.state.rstrip(b"\0") or b"\0"

    @property
    def digest(self) -> int:
        """A number of 64 bits that differs for each model, rate, block length and version."""
        whole = hashlib.sha256(f"{__version__} {self}".encode())
        return int.from_bytes(whole.digest()[:8], "little")


def host_plan(
    name: str, fs: int, channels: int, block_s: float, for_engine: bool = False
) -> HostPlan:
    """The plan of a model of the catalog, with its default settings.

    block_s: length of a block in seconds, rounded to whole blocks of the model
    for_engine: with what an engine needs to know, and without readings

    Raises NotNative for a model with steps in Python, or for a number of channels that it does not
    take; ValueError for a sampling rate that the model refuses.
    """
    model = model_for(name, fs, channels, for_engine)
    if not isinstance(model, FusedStage):
        able = ", ".join(one for one in catalog.names() if _is_fused(one))
        raise NotNative(f"{name} cannot be exported to C: it has steps in Python; {able} can")
    fused = model.as_fused()

    def lead_of(count: int) -> tuple[int, ...]:
        return (1, count) if fused.axes == 2 else (count,)

    if not fused.serves or not fused.suits(lead_of(channels)):
        able = " or ".join(str(one) for one in (1, 2) if fused.suits(lead_of(one)))
        raise NotNative(
            f"{name} cannot be exported to C for {counted(channels, 'channel')}: give {able}"
        )
    block = model.block_size * max(1, round(block_s * fs / model.block_size))
    with torch.no_grad():
        return _planned(name, fs, model, fused, lead_of(channels), block, for_engine)


def model_for(name: str, fs: int, channels: int, for_engine: bool = False) -> Any:
    """The model of the catalog that a plan runs; arguments and errors are those of `host_plan`."""
    if name in METERED and not for_engine:
        return METERED[name](fs, channels)
    return catalog.entry(name).build(fs, layout=channels)


def _is_fused(name: str) -> bool:
    return issubclass(catalog.entry(name).load("model"), FusedStage)


def _planned(
    name: str,
    fs: int,
    model: Any,
    fused: Fused,
    lead: tuple[int, ...],
    block: int,
    for_engine: bool,
) -> HostPlan:
    state = {key: value.clone().contiguous() for key, value in model.initial_state(lead).items()}
    workspace = fused.planned(torch.zeros(*lead, block, dtype=fused.dtype), state)
    assert workspace is not None
    outputs = fused.outputs(workspace)
    (entry,) = fused.kernels
    memory = {
        Segment.TABLE: [*fused.tables, *fused.made.arrays.values()],
        Segment.WORK: [*workspace.arrays.values()],
        Segment.STATE: [*state.values()],
        Segment.OUTPUT: [*outputs],
    }
    rows, used = _rows(fused, workspace, memory)
    tables = _Laid(used)
    laid = {segment: _Laid(arrays) for segment, arrays in memory.items()} | {Segment.TABLE: tables}
    plan_rows = tuple(
        PlanRow(key, row, of, value if array is None else laid[of].place(array) + value, sizes)
        for key, row, of, array, value, sizes in rows
    )
    columns = tuple(_columns(name, fused.host_outputs, outputs, laid[Segment.OUTPUT]))
    about = ""
    if for_engine:
        # It reads the outputs themselves, so that this column is only the first of them.
        columns = (HostColumn("first", "", laid[Segment.OUTPUT].place(outputs[0]), OfColumn()),)
        places = [laid[Segment.OUTPUT].place(x) for x in outputs]
        of_state = {key: laid[Segment.STATE].place(x) for key, x in state.items()}
        about = stage_about(model, fused, lead, block, places, of_state)
    return HostPlan(
        model=name,
        fs=fs,
        channels=prod(lead),
        lead=lead,
        block=block,
        frames=int(block * model.ratio),
        input_unit=model.input_unit,
        latency_s=float(model.latency) / fs,
        settle_s=model.settle_s,
        tail_s=model.tail_s,
        home=fused.home,
        kernels=tuple(fused.called),
        entry=entry,
        gives=fused.gives,
        dtype=str(fused.like.dtype),
        length=len(fused.rows),
        rows=plan_rows,
        columns=columns,
        tables=tables.content(),
        state=laid[Segment.STATE].content(),
        work=laid[Segment.WORK].size,
        outputs=laid[Segment.OUTPUT].size,
        about_stage=about,
    )


class _Laid:
    """Arrays one after the other in a segment, each once."""

    def __init__(self, arrays: Iterable[Tensor]) -> None:
        self.size = 0
        self._places: dict[int, int] = {}
        self._arrays: list[Tensor] = []
        for x in arrays:
            if x.numel() and x.data_ptr() not in self._places:
                self._places[x.data_ptr()] = self.size
                self._arrays.append(x)
                self.size += -(-x.nbytes // ALIGNMENT) * ALIGNMENT

    def place(self, x: Tensor) -> int:
        return self._places[x.data_ptr()]

    def content(self) -> bytes:
        whole = bytearray(self.size)
        for x in self._arrays:
            at = self.place(x)
            whole[at : at + x.nbytes] = x.detach().numpy().tobytes()
        return bytes(whole)


_Found = tuple[str, int, Segment, Tensor | None, int, tuple[int, ...]]


def _rows(
    fused: Fused, workspace: Workspace, memory: dict[Segment, list[Tensor]]
) -> tuple[list[_Found], list[Tensor]]:
    """The rows that are not zero, each with its array and the place in it; and the tables used."""
    numbers = {name: k for k, name in enumerate(fused.called)}
    spans = [(segment, x) for segment, arrays in memory.items() for x in arrays if x.numel()]
    found: list[_Found] = []
    used = []
    for row, name in enumerate(fused.rows._fields):
        value, *rest = workspace.plan[row].tolist()
        sizes = tuple(rest)
        assert len(sizes) == WIDTH - 1
        if name in numbers:
            found.append((name, row, Segment.KERNEL, None, numbers[name], sizes))
        elif name == "given":
            found.append((name, row, Segment.INPUT, None, 0, sizes))
        elif value >= HIGHEST_INTEGER:
            # An address outside all that is kept would be one that nobody can relocate.
            segment, array = next(
                (of, x) for of, x in spans if 0 <= value - x.data_ptr() < x.nbytes
            )
            if segment is Segment.TABLE:
                used.append(array)
            found.append((name, row, segment, array, value - array.data_ptr(), sizes))
        elif value or any(sizes):
            found.append((name, row, Segment.NUMBER, None, value, sizes))
    return found, used


def _columns(
    model: str, wanted: Sequence[HostOutput], outputs: Sequence[Tensor], laid: _Laid
) -> Iterable[HostColumn]:
    for (word, unit, labels), output in zip(wanted, outputs, strict=False):
        lines = output.reshape(-1, output.shape[-1])
        ears = [_ears(size) for size in output.shape[: -1 - len(labels)]]
        for place, words in enumerate(product(*ears, *labels)):
            start = laid.place(output) + place * lines.shape[1] * output.element_size()
            parts = word, *words[len(ears) :], *words[: len(ears)]
            name = "_".join(filter(None, parts))
            yield HostColumn(name, unit, start, _about(names_in_rows(model, name, unit)))


def _about(names: Sequence[str]) -> OfColumn:
    """What is known of the column of rows that has one of these names."""
    column = next(filter(None, map(column_named, names)), None)
    if column is None:
        return OfColumn()
    return OfColumn(column.counted, column.if_clipped == AT_LEAST)


def _ears(size: int) -> Sequence[str]:
    """Names of so many ears or channels."""
    if size == 2:
        return ["left", "right"]
    return [""] if size == 1 else [str(k + 1) for k in range(size)]
