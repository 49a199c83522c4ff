"""Every name of torch that may change without notice; no other file has one.

For each new version, look here, then raise the bound in `pyproject.toml`.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._pytree import _register_namedtuple

# Looked up once, because they are called a dozen times per block.
transform = torch._C._functorch.peek_interpreter_stack
"""The innermost transform of torch.func that runs, or None."""

trace = torch._C._get_tracing_state
"""The state of `torch.jit.trace`, or None."""

autocast = torch._C._is_any_autocast_enabled
"""Whether any device has autocast on; faster than asking for one device."""

register_namedtuple = _register_namedtuple

TORCH_LIBRARY: str = torch._C.__file__
"""The library that torch's OpenMP and MKL are linked with."""


def forward_mode() -> bool:
    """Whether forward-mode differentiation is active."""
    return forward_ad._current_level >= 0


def in_backward() -> bool:
    """Whether a backward pass runs in this thread."""
    return torch._C._current_graph_task_id() >= 0


def changes(x: Tensor) -> int:
    """How often `x` was changed in place."""
    return x._version


def with_autograd() -> Any:
    """Context that re-enables autograd, which is off inside an operator."""
    key = torch._C.DispatchKey
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for one in (key.AutogradFunctionality, key.AutogradOther, key.AutogradNestedTensor):
        excluded = excluded.remove(one)
    included = torch._C._dispatch_tls_local_include_set()
    return torch._C._ForceDispatchKeyGuard(included, excluded)


class Hooks(NamedTuple):
    """The hooks of a module by their keys, and the keys of those with an option."""

    before: Mapping[int, Any]
    after: Mapping[int, Any]
    before_with_kwargs: Mapping[int, bool]
    after_with_kwargs: Mapping[int, bool]
    always: Mapping[int, bool]


def forward_hooks(module: nn.Module) -> Hooks:
    """The forward hooks of a module; torch changes these mappings in place."""
    return Hooks(
        module._forward_pre_hooks,
        module._forward_hooks,
        module._forward_pre_hooks_with_kwargs,
        module._forward_hooks_with_kwargs,
        module._forward_hooks_always_called,
    )


def global_hooks() -> tuple[Mapping[int, Any], ...]:
    """The hooks of every call of a module; torch changes these mappings in place."""
    modules = torch.nn.modules.module
    return modules._global_forward_pre_hooks, modules._global_forward_hooks


def hooked(module: nn.Module) -> bool:
    """Whether a hook is registered on `module`."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def backward_hooks(module: nn.Module) -> tuple[list[Any], list[Any]]:
    """The full backward hooks of a module, and those before them."""
    return module._get_backward_hooks()[0], module._get_backward_pre_hooks()


def buffers_of(module: nn.Module) -> Any:
    """The buffers of a module itself; torch changes this dict in place."""
    return module._buffers


def members_of(module: nn.Module) -> dict[str, nn.Module | None]:
    """The modules in a module; torch changes this dict in place."""
    return module._modules


def saved_names(module: nn.Module) -> set[str]:
    """The names of the parameters and buffers of a module itself that its state_dict holds."""
    held = {*module._parameters, *module._buffers}
    return held - module._non_persistent_buffers_set


@contextlib.contextmanager
def without_load_hooks(module: nn.Module) -> Iterator[None]:
    """Set aside the hooks before loading, which `load_hooks` gives."""
    hooks = vars(module)["_load_state_dict_pre_hooks"]
    vars(module)["_load_state_dict_pre_hooks"] = type(hooks)()
    try:
        yield
    finally:
        vars(module)["_load_state_dict_pre_hooks"] = hooks


def load_hooks(module: nn.Module) -> list[Any]:
    """The hooks of a module that run before it loads a state_dict."""
    return [*vars(module)["_load_state_dict_pre_hooks"].values()]


def metadata_of(state_dict: object) -> dict[str, Any] | None:
    """The metadata of a state_dict by the names of modules; None for a plain dict."""
    return getattr(state_dict, "_metadata", None)
