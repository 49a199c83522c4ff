"""Names for what numba and LLVM hand to the functions that write machine code for a kernel.

Neither declares the attributes of these objects, so that mypy cannot check them.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Context: TypeAlias = Any
"""numba's target: gives the machine types and constants of its types."""

Builder: TypeAlias = Any
"""LLVM's `IRBuilder`."""

Kind: TypeAlias = Any
"""A type in numba's words, or LLVM's."""

Value: TypeAlias = Any
"""What an instruction gives."""

Values: TypeAlias = Sequence[Value]

Number: TypeAlias = Any
"""In a kernel a number or `Lanes`; called from Python, an array or a tensor too."""

Kernel: TypeAlias = Any
"""What numba makes of a function: its stubs give the parameters of what writes the code."""

Typed: TypeAlias = tuple[Kind, Callable[[Context, Builder, Kind, Values], Value]]
"""How an intrinsic is typed, and what writes its code."""
