"""Type names for the numba and LLVM objects in functions that generate machine code.

Neither library declares the attributes of these objects, so mypy cannot check them.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Context: TypeAlias = Any
"""Numba's target: machine types and constants of its types."""

Builder: TypeAlias = Any
"""LLVM's `IRBuilder`."""

Kind: TypeAlias = Any
"""A numba or LLVM type."""

Value: TypeAlias = Any
"""The result of an instruction."""

Values: TypeAlias = Sequence[Value]

Number: TypeAlias = Any
"""In a kernel a number or `Lanes`; called from Python, also an array or a tensor."""

Kernel: TypeAlias = Any
"""A compiled function or an intrinsic; numba's stubs give the code generator's parameters."""

Typed: TypeAlias = tuple[Kind, Callable[[Context, Builder, Kind, Values], Value]]
"""The signature of an intrinsic, and its code generator."""
