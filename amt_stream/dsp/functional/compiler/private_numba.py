"""Every name of numba and llvmlite that may change without notice; no other file has one.

For each new version, look here, then raise the bound in `pyproject.toml`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
from llvmlite.binding import Linkage
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import nrtdynmod
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.np.arrayobj import populate_array

from amt_stream.core.compiling import Turn, compiling
from amt_stream.dsp.functional.compiler.lowering import (
    Builder,
    Context,
    Kernel,
    Kind,
    Value,
    Values,
)

UNCOUNTED = {"_nrt": False}
"""Option of `numba.njit` for what allocates nothing: references to arrays are not counted."""


class OwnCode(JITCodeLibrary):
    """Machine code of a kernel that calls its own copies of functions, not those of other kernels.

    Copies differ by what surrounds them, and thus in the last bit of results. Those of one process
    would depend on what else it compiled, and differ from those of a process with a cache.
    """

    def _finalize_final_module(self) -> None:
        shared = self._final_module.clone()
        _change_linkage(shared, Linkage.external, Linkage.linkonce_odr)
        self._shared_module = shared  # for kernels that call this one, as numba makes it
        _change_linkage(self._final_module, Linkage.linkonce_odr, Linkage.internal)
        super()._finalize_final_module()


class OwnCodeCompiler(Compiler):
    """Numba's compiler, which makes `OwnCode`."""

    def compile_extra(self, func: Callable[..., object]) -> Any:
        self.state.library = OwnCode(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


def _change_linkage(module: Any, before: Linkage, after: Linkage) -> None:
    for function in module.functions:
        if not function.is_declaration and function.linkage == before:
            function.linkage = after


def item_pointer(
    context: Context, builder: Builder, kind: Kind, array: Value, indices: Sequence[Value]
) -> Value:
    """Pointer to an element of an array of the type `kind`."""
    made = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, made, list(indices))


def variable(builder: Builder, value: Value) -> Value:
    """Pointer to a new variable of the function with this value."""
    return cgutils.alloca_once_value(builder, value)


@contextlib.contextmanager
def repeated(builder: Builder, start: Value, stop: Value, step: Value) -> Iterator[Value]:
    """A loop in the code; gives its index."""
    with cgutils.for_range_slice(builder, start, stop, step) as (k, _):
        yield k


def array_at(
    context: Context, builder: Builder, kind: Kind, data: Value, shape: list[Value], size: Value
) -> Value:
    """A C-contiguous array of the type `kind` at the address `data`; size: bytes of a number."""
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = context.make_array(kind)(context, builder)
    populate_array(made, data, shape, strides[: len(shape)], size, None)
    return made._getvalue()


def call_at(
    context: Context, builder: Builder, address: Value, result: Kind, kinds: Values, given: Values
) -> Value:
    """Call the kernel at an address; its exceptions pass on."""
    convention = context.call_conv
    form = convention.get_function_type(result, kinds).as_pointer()
    function = builder.inttoptr(address, form)
    status, value = convention.call_function(builder, function, result, kinds, given)
    with builder.if_then(status.is_error, likely=False):
        convention.return_status_propagate(builder, status)
    return value


def compiled_address(kernel: Kernel, kinds: tuple[Kind, ...], result: Kind) -> int:
    """The address of a kernel compiled for these types; it never changes."""
    kernel.compile(kinds)
    made = kernel.overloads[kinds]
    assert made.signature.return_type == result, made.signature
    address: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return address


def code_of(kernel: Kernel, kinds: tuple[Kind, ...]) -> tuple[str, str]:
    """The symbol and the LLVM IR of a kernel for these types, which must not come from a cache."""
    kernel.compile(kinds)
    return _code(kernel.overloads[kinds])


def compiled_codes(module: ModuleType) -> Iterator[tuple[str, tuple[Kind, ...], tuple[str, str]]]:
    """Each kernel of a module for each types that it was compiled for: its name, these, its code.

    The code is that of `code_of`.
    """
    for name, kernel in vars(module).items():
        if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__:
            for kinds, made in kernel.overloads.items():
                yield name, kinds, _code(made)


def _code(made: Any) -> tuple[str, str]:
    return made.fndesc.llvm_func_name, made.library.get_llvm_str()


def tuple_type(kinds: Sequence[Kind], named: Kind) -> Kind:
    """The type of the NamedTuple `named` of these types."""
    return types.BaseTuple.from_types(kinds, named)


class CheckedFiles(IndexDataCacheFile):
    """Index and machine code of one function.

    Each entry stores its key, because two processes that write at once may mix up the files.

    read: the content of a file; raises FileNotFoundError if there is none that is whole
    checked: the bytes of a file with a content
    """

    def __init__(
        self,
        folder: str,
        name: str,
        stamp: object,
        read: Callable[[Path], Any],
        checked: Callable[[bytes], bytes],
    ) -> None:
        super().__init__(folder, name, stamp)
        self.read, self.checked = read, checked

    def save(self, key: object, data: object) -> None:
        super().save(key, (key, data))

    def load(self, key: object) -> Any:
        entry = super().load(key)
        return entry[1] if entry is not None and entry[0] == key else None

    def names(self) -> dict[Any, str]:
        """The file of each entry; none if the index cannot be read."""
        return self._load_index()

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, names = self.read(Path(self._index_path))
        except FileNotFoundError:
            return {}
        return names if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return self.read(Path(self._data_path(name)))

    def _dump(self, obj: object) -> bytes:
        return self.checked(dumps(obj))


class DiskCache(FunctionCache):
    """Numba's cache of one function in `CheckedFiles`; any failure counts as a missing entry.

    stamp: of the sources besides that of the function
    ending: of the names of the files
    say: reports a failure in one sentence
    """

    def __init__(
        self,
        function: Callable[..., object],
        stamp: object,
        ending: str,
        read: Callable[[Path], Any],
        checked: Callable[[bytes], bytes],
        say: Callable[[str], None],
    ) -> None:
        super().__init__(function)
        self._ending, self._read, self._checked, self._say = ending, read, checked, say
        stamps = self._impl.locator.get_source_stamp(), stamp
        self._cache_file: CheckedFiles = self._files(self._impl.filename_base, stamps)
        self._turn = Turn(Path(self._cache_path), self._impl.filename_base)

    def _files(self, name: str, stamp: object) -> CheckedFiles:
        return CheckedFiles(self._cache_path, name + self._ending, stamp, self._read, self._checked)

    def load_overload(self, sig: object, target_context: object) -> Any:
        entry = self._stored(sig, target_context)
        if entry is None:
            compiling.begins()
            self._turn.begin()
            entry = self._stored(sig, target_context)  # by the process that had the turn
            if entry is not None:
                self._ends()
        return entry

    def save_overload(self, sig: object, data: object) -> None:
        self._keep(lambda: super(DiskCache, self).save_overload(sig, data))
        self._ends()

    def _ends(self) -> None:
        compiling.ends()
        self._turn.end()

    def _stored(self, sig: object, target_context: object) -> Any:
        try:
            self._start_runtime(target_context)
            with self._guard_against_spurious_io_errors():
                # Not by `super().load_overload`, which first loads all that a compiler needs: half
                # a second, 50 MB and scipy.linalg. Numba loads them before it compiles.
                return self._load_overload(sig, target_context)
        except Exception as error:
            self._say(f"a compiled kernel cannot be read and is recompiled: {error}")
        return None

    def _start_runtime(self, target_context: object) -> None:
        """Start what counts references; numba compiles it anew, which maps 28 MB of LLVM."""
        with global_compiler_lock:
            compile_anew = nrtdynmod.compile_nrt_functions
            nrtdynmod.compile_nrt_functions = self._runtime
            try:
                rtsys.initialize(target_context)
            finally:
                nrtdynmod.compile_nrt_functions = compile_anew

    def _runtime(self, target_context: Any) -> Any:
        files = self._files("numba_runtime", llvmlite.__version__)
        codegen = target_context.codegen()
        key = codegen.magic_tuple()
        with contextlib.suppress(FileNotFoundError):
            if (entry := files.load(key)) is not None:
                return codegen.unserialize_library(entry)
        module, library = nrtdynmod.create_nrt_module(target_context)
        library.enable_object_caching()
        library.add_ir_module(module)
        library.finalize()
        self._keep(lambda: files.save(key, library.serialize_using_object_code()))
        return library

    def _keep(self, save: Callable[[], object]) -> None:
        try:
            save()
        except Exception as error:
            self._say(f"compiled kernels cannot be cached: {error}")


def set_cache(kernel: Kernel, cache: DiskCache) -> None:
    """Make a kernel load and save its compiled forms by `cache`."""
    kernel._cache = cache


def is_stored(kernel: Kernel) -> bool:
    """Whether a kernel was compiled before, for any types, or cannot be cached."""
    cache: Any = kernel._cache
    kept = not isinstance(cache, DiskCache) or bool(cache._cache_file.names())
    return bool(kernel.overloads) or kept
