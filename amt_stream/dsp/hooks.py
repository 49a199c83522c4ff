"""Torch hooks around a stage's step; torch itself runs them only when a module is called."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import BackwardHook


def hooked(module: nn.Module) -> bool:
    """Whether a hook is registered on `module`."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def steps_as(stage: Any, home: Any) -> bool:
    """Whether the step of `stage` is that of the class `home`, with no hook around it."""
    return type(stage).step is home.step and not hooked(stage)


def with_hooks(module: nn.Module, step: Callable[[Tensor], Any], x: Tensor) -> Any:
    """`step(x)` with the hooks of `module`, in torch's order."""
    after = module._forward_hooks
    args: tuple[Any, ...] = (x,)
    kwargs: dict[str, Any] = {}
    y: Any = None
    ran = set()

    def seen(key: int) -> Any:
        ran.add(key)
        hook: Any = after[key]
        named = key in module._forward_hooks_with_kwargs
        return hook(module, args, kwargs, y) if named else hook(module, args, y)

    try:
        for key, before_hook in module._forward_pre_hooks.items():
            hook: Any = before_hook
            if key in module._forward_pre_hooks_with_kwargs:
                given = hook(module, args, kwargs)
                args, kwargs = (args, kwargs) if given is None else given
            else:
                given = hook(module, args)
                args = args if given is None else given if isinstance(given, tuple) else (given,)
        full, _ = module._get_backward_hooks()
        first = module._get_backward_pre_hooks()
        backward: Any = BackwardHook(module, full, first) if full or first else None
        if backward:
            args = backward.setup_input_hook(args)
        y = step(args[0])
        for key in [*after]:
            given = seen(key)
            y = y if given is None else given
        return backward.setup_output_hook(y) if backward else y
    except Exception:
        always = module._forward_hooks_always_called
        for key in [key for key in after if key in always and key not in ran]:
            try:
                given = seen(key)
                y = y if given is None else given
            except Exception as error:
                warnings.warn(
                    f"a forward hook with always_call=True raised too: {error}", stacklevel=2
                )
        raise
