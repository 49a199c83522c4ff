"""The processors that objects are made for, and the files of a model in C."""

from collections.abc import Sequence

TARGETS = ("x86-64-v3", "x86-64", "aarch64", "x86-64-windows", "aarch64-macos", "wasm32")
"""Those of Linux by the names of LLVM: x86-64-v3 has AVX2, as most processors since 2015; x86-64 is
any."""


def files_of(model: str, targets: Sequence[str]) -> tuple[str, ...]:
    """Names of the files of a model, besides those that are the same for all models."""
    objects = (f"{model}-{target}.o" for target in targets)
    return f"{model}_plan.h", f"{model}.json", f"{model}.ttl", *objects
