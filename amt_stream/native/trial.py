"""A plan run in this process, before it is written: how much scratch memory its kernels take, and
whether its frames are those of the model."""

import ctypes
import json
from collections.abc import Sequence
from math import ceil
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from amt_stream.dsp.functional.compiler.call_table import WIDTH
from amt_stream.dsp.stream import Stream
from amt_stream.native.compiled_model import output_view
from amt_stream.native.machine import Processor, Program, UnknownCode, machine_for, make_module
from amt_stream.native.plan import ALIGNMENT, HostPlan, Segment, model_for

NEAR = 2e-6
"""Most difference of a frame from the model's, in proportion: processors round differently."""

NEAR_OF_ALL = 2e-5
"""The same of outputs that no column shows, such as core loudness, a difference of larger ones."""

LEAST = 1e-3
"""Of the highest frame of a column: lower ones are compared with it."""

VARYING = 1 << 16
"""More bytes for arrays whose length depends on the sound, than in the trial: the longest, bases of
a fit of 26 lines, take half of it."""

TRIED_S = 6.0
"""Seconds of sound: longer than any window of a reading."""

_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(_POINTER,) * 4,
    *(_LONG,) * 2,
    _POINTER,
    *(_LONG,) * 4,
    *(_POINTER,) * 2,
    *(_LONG,) * 2,
    _POINTER,
    *(_LONG,) * 2,
)


class PlanTrial:
    """An instance of a model from its plan and kernels; `scratch` grows to what they take."""

    def __init__(self, plan: HostPlan, program: Program) -> None:
        self.plan = plan
        self.scratch = 0
        self._arrays: list[np.ndarray] = []
        self._callbacks = self._provide()
        here = Processor(llvm.get_process_triple(), llvm.get_host_cpu_name())
        machine = machine_for(here)
        module = make_module(program, here, machine)
        self._compiler = llvm.create_mcjit_compiler(module, machine)
        self._compiler.finalize_object()
        kernels = self._compiler.get_global_value_address(f"{plan.model}_kernels")
        addresses = np.ctypeslib.as_array(
            ctypes.cast(kernels, ctypes.POINTER(_LONG)), (len(program.codes),)
        )
        self._entry = _ENTRY(self._compiler.get_function_address(f"{plan.model}_entry"))
        self._memory = {
            Segment.TABLE: _aligned(plan.tables),
            Segment.STATE: _aligned(plan.state),
            Segment.WORK: _aligned(bytes(plan.work)),
            Segment.OUTPUT: _aligned(bytes(plan.outputs)),
            Segment.INPUT: _aligned(bytes(4 * plan.channels * plan.block)),
        }
        self._rows = np.zeros((plan.length, WIDTH), np.int64)
        for one in plan.rows:
            if one.segment is Segment.KERNEL:
                value = int(addresses[one.value])
            elif one.segment is Segment.NUMBER:
                value = one.value
            else:
                value = self._memory[one.segment].ctypes.data + one.value
            self._rows[one.row] = value, *one.sizes

    def __call__(self, sound: np.ndarray) -> np.ndarray:
        """Frames (frame, column) of a block (channel, time)."""
        plan, size = self.plan, self._rows.shape[0]
        self._memory[Segment.INPUT].view(np.float32)[: sound.size] = sound.ravel()
        self._arrays = []
        result, error, like = _LONG(0), _LONG(0), ctypes.c_float(0)
        status = self._entry(
            ctypes.addressof(result), ctypes.addressof(error), None, None,
            self._rows.size, 8, self._rows.ctypes.data, size, WIDTH, 8 * WIDTH, 8,
            None, None, 0, 4, ctypes.addressof(like), 0, 4,
        )  # fmt: skip
        assert status == 0, f"{plan.model}: its kernels end with status {status}"
        given = self._memory[Segment.OUTPUT]
        if plan.about_stage:
            stage = json.loads(plan.about_stage)
            views = [None if of is None else output_view(given, of) for _, of in stage["outputs"]]
            return _in_columns(views, stage["out_time_dim"])
        columns = [
            given[one.place : one.place + 4 * plan.frames].view(np.float32) for one in plan.columns
        ]
        return np.stack(columns, axis=1)

    def compare(self) -> None:
        """Raises UnknownCode if frames of a tone in noise are not those of the model."""
        import torch

        plan, random = self.plan, np.random.default_rng(0)
        count = ceil(TRIED_S * plan.fs / plan.block)
        noise = random.standard_normal((plan.channels, count * plan.block))
        # With a tone, because the tonality of noise alone is mostly rounding.
        tone = np.sin(2 * np.pi * 1000 / plan.fs * np.arange(noise.shape[1]))
        sound = (0.02 * noise + 0.1 * tone).astype(plan.dtype)
        blocks = np.split(sound, count, axis=1)
        frames = np.concatenate([self(block) for block in blocks])
        with torch.inference_mode():
            whole = torch.from_numpy(sound).reshape(*plan.lead, -1)
            model = model_for(plan.model, plan.fs, plan.channels, bool(plan.about_stage))
            outputs = Stream(model, plan.lead)(whole)
        values = [None if x is None else x.numpy() for x in _in_tuple(outputs)]
        right = _in_columns(values, model.out_time_dim)
        if not plan.about_stage:  # the columns are those of the first outputs
            right = right[:, : len(plan.columns)]
        known = np.isfinite(right)
        size = np.where(known, np.abs(right), 0)
        different = np.where(known, np.abs(frames - right), 0)
        least = LEAST * size.max(axis=0)
        worst = np.max(different / np.maximum(size, np.where(least > 0, least, 1)))
        same = np.array_equal(frames[~known], right[~known], equal_nan=True)
        if not (same and worst <= (NEAR_OF_ALL if plan.about_stage else NEAR)):
            raise UnknownCode(f"{plan.model} differs by {worst:g} of a frame from the model")

    def _provide(self) -> list[object]:
        """What kernels call of numba's runtime, from this class."""
        allocate = ctypes.CFUNCTYPE(_POINTER, ctypes.c_size_t, ctypes.c_uint32)(self._allocate)
        count = ctypes.CFUNCTYPE(None, _POINTER)
        more, fewer = count(lambda at: self._count(at, 1)), count(lambda at: self._count(at, -1))
        reshape = ctypes.CFUNCTYPE(
            ctypes.c_int32, _LONG, _POINTER, _POINTER, _LONG, _POINTER, _POINTER, _LONG,
            ctypes.c_int32,
        )(_new_strides)  # fmt: skip
        for name, function in (
            ("NRT_MemInfo_alloc_aligned", allocate),
            ("NRT_incref", more),
            ("NRT_decref", fewer),
            ("numba_attempt_nocopy_reshape", reshape),
        ):
            llvm.add_symbol(name, ctypes.cast(function, _POINTER).value)
        return [allocate, more, fewer, reshape]

    def _allocate(self, size: int, _alignment: int) -> int:
        """As `NRT_MemInfo_alloc_aligned` of amt_numba.c, which takes as much."""
        room = _aligned(bytes(ALIGNMENT + size))
        self._arrays.append(room)
        at = int(room.ctypes.data)
        room[:48].view(np.int64)[:] = 1, 0, 0, at + ALIGNMENT, size, 0
        used = sum(-(-one.nbytes // ALIGNMENT) * ALIGNMENT for one in self._arrays)
        self.scratch = max(self.scratch, used + VARYING)
        return at

    def _count(self, at: int | None, change: int) -> None:
        """As `NRT_incref` and `NRT_decref` of amt_numba.c."""
        if at:
            _LONG.from_address(at).value += change
            while self._arrays and not self._arrays[-1][:8].view(np.int64)[0]:
                self._arrays.pop()


def _in_tuple(y: Any) -> tuple[Any, ...]:
    """The outputs of a model, or its only one."""
    return y if isinstance(y, tuple) else (y,)


def _in_columns(values: Sequence[Any], time_dim: Any) -> np.ndarray:
    """Outputs, each along its axis of time, as (frame, column)."""
    dims = time_dim if isinstance(time_dim, Sequence) else [time_dim] * len(values)
    lines = [np.moveaxis(v, dim, 0) for v, dim in zip(values, dims, strict=True) if v is not None]
    return np.concatenate([v.reshape(len(v), -1) for v in lines], axis=1)


def _new_strides(
    _axes: int, _shape: int, _strides: int, axes: int, shape: int, strides: int, item: int, _f: int
) -> int:
    """As `numba_attempt_nocopy_reshape` of amt_numba.c."""
    words = ctypes.POINTER(_LONG)
    sizes, to = ctypes.cast(shape, words), ctypes.cast(strides, words)
    stride = item
    for k in reversed(range(axes)):
        to[k] = stride
        stride *= sizes[k]
    return 1


def _aligned(content: bytes) -> np.ndarray:
    """A copy as bytes, aligned as in C."""
    whole = np.zeros(len(content) + 2 * ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    part = whole[start : start + len(content) + ALIGNMENT]
    part[: len(content)] = np.frombuffer(content, np.uint8)
    return part
