"""Torch hooks around a stage's step; torch itself runs them only when a module is called."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.hooks import BackwardHook

# The hooks of all modules; torch changes these dicts in place.
_BEFORE, _AFTER = torch_module._global_forward_pre_hooks, torch_module._global_forward_hooks
_BACK, _BACK_PRE = torch_module._global_backward_hooks, torch_module._global_backward_pre_hooks

EVERYWHERE = (_BEFORE, _AFTER)
"""Global forward hooks."""


def hooked(module: nn.Module) -> bool:
    """Whether calling `module` would run a hook."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or _BEFORE
        or _AFTER
        or _BACK
        or _BACK_PRE
    )


def steps_as(stage: Any, home: Any) -> bool:
    """Whether the step of `stage` is that of the class `home`, with no hook around it."""
    return type(stage).step is home.step and not hooked(stage)


def with_hooks(module: nn.Module, step: Callable[[Tensor], Any], x: Tensor) -> Any:
    """`step(x)` with the hooks of `module`, in torch's order."""
    before = {**_BEFORE, **module._forward_pre_hooks}
    after = {**_AFTER, **module._forward_hooks}
    named = {*torch_module._global_forward_hooks_with_kwargs, *module._forward_hooks_with_kwargs}
    args: tuple[Any, ...] = (x,)
    kwargs: dict[str, Any] = {}
    y: Any = None
    ran = set()

    def seen(key: int) -> Any:
        ran.add(key)
        hook: Any = after[key]
        return hook(module, args, kwargs, y) if key in named else hook(module, args, y)

    try:
        for key, before_hook in before.items():
            hook: Any = before_hook
            if key in module._forward_pre_hooks_with_kwargs:
                given = hook(module, args, kwargs)
                args, kwargs = (args, kwargs) if given is None else given
            else:
                given = hook(module, args)
                args = args if given is None else given if isinstance(given, tuple) else (given,)
        full, of_output = module._get_backward_hooks()
        first = module._get_backward_pre_hooks()
        backward: Any = BackwardHook(module, full, first) if full or first else None
        if backward:
            args = backward.setup_input_hook(args)
        y = step(args[0])
        for key in after:
            given = seen(key)
            y = y if given is None else given
        if backward:
            y = backward.setup_output_hook(y)
        _of_output(module, of_output, args, y)
        return y
    except Exception:
        always = {
            *torch_module._global_forward_hooks_always_called,
            *module._forward_hooks_always_called,
        }
        for key in [key for key in after if key in always and key not in ran]:
            try:
                given = seen(key)
                y = y if given is None else given
            except Exception as error:
                warnings.warn(
                    f"a forward hook with always_call=True raised too: {error}", stacklevel=2
                )
        raise


def _of_output(module: nn.Module, hooks: Any, args: Any, y: Any) -> None:
    """Register the older hooks of `register_backward_hook` on the step that gave `y`."""
    first = y[0] if isinstance(y, tuple) else y
    if hooks and first.grad_fn is not None:
        for hook in hooks:
            first.grad_fn.register_hook(torch_module._WrappedHook(hook, module))
        module._maybe_warn_non_full_backward_hook(args, y, first.grad_fn)
