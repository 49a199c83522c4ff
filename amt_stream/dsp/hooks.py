"""Torch hooks around a stage's step; torch itself runs them only when a module is called."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import BackwardHook

from amt_stream.dsp.functional.compiler.private_torch import backward_hooks, forward_hooks, hooked


def steps_as(stage: Any, home: Any) -> bool:
    """Whether the step of `stage` is that of the class `home`, with no hook around it."""
    return type(stage).step is home.step and not hooked(stage)


def with_hooks(module: nn.Module, step: Callable[[Tensor], Any], x: Tensor) -> Any:
    """`step(x)` with the hooks of `module`, in torch's order."""
    hooks = forward_hooks(module)
    after = hooks.after
    args: tuple[Any, ...] = (x,)
    kwargs: dict[str, Any] = {}
    y: Any = None
    ran = set()

    def seen(key: int) -> Any:
        ran.add(key)
        hook: Any = after[key]
        named = key in hooks.after_with_kwargs
        return hook(module, args, kwargs, y) if named else hook(module, args, y)

    try:
        for key, before_hook in hooks.before.items():
            hook: Any = before_hook
            if key in hooks.before_with_kwargs:
                given = hook(module, args, kwargs)
                args, kwargs = (args, kwargs) if given is None else given
            else:
                given = hook(module, args)
                args = args if given is None else given if isinstance(given, tuple) else (given,)
        full, first = backward_hooks(module)
        backward: Any = BackwardHook(module, full, first) if full or first else None
        if backward:
            args = backward.setup_input_hook(args)
        y = step(args[0])
        for key in [*after]:
            given = seen(key)
            y = y if given is None else given
        return backward.setup_output_hook(y) if backward else y
    except Exception:
        for key in [key for key in after if key in hooks.always and key not in ran]:
            try:
                given = seen(key)
                y = y if given is None else given
            except Exception as error:
                warnings.warn(
                    f"a forward hook with always_call=True raised too: {error}", stacklevel=2
                )
        raise
