"""What a module was made with, and how state_dicts come and go: its own, and those of torch_amt."""

import functools
import hashlib
import inspect
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

SAME = 1e-5
"""Relative difference that leaves a constant the same: float32 has rounded it."""

LARGEST = torch.finfo(torch.float64).max

MADE_WITH = "made_with"
"""Under this key the metadata of a state_dict says what `binding` arguments were."""

_LONG = 6


class Checkpointed(nn.Module):
    """A module that knows its constructor's arguments, and checks the checkpoints that it loads.

    A state_dict holds the parameters. Its metadata, which `torch.save` keeps, also says the
    arguments without which they would mean something else, and `load_state_dict` raises
    RuntimeError where those differ.

    A state_dict of torch_amt loads as well. `translated` turns what was learned there into the
    parameters here. Constants, which stand in such a state_dict too, are compared with those here.
    What is neither taken nor equal is among the unexpected keys: an error, or with strict=False in
    what `load_state_dict` returns. Where a value is known here and is another, a warning says so.
    """

    binding: tuple[str, ...] = ()
    """Names of arguments that give the parameters their meaning, and are numbers or words."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Of parameters by name: what a checkpoint may hold of them, ends included."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def arguments(self) -> dict[str, Any]:
        """What it was made with, by the constructor's names, `dtype` and modules apart.

        For what was left to be chosen, or is a tensor here, such as something learned, its value
        now.
        """
        values = {}
        for name, value in vars(self).get("_made_with", {}).items():
            now = getattr(self, name, None)
            values[name] = now if value is None or isinstance(now, Tensor) else value
        return values

    def with_arguments(self, **changed: Any) -> Self:
        """A new one, made with the same arguments but for these, with what was learned here."""
        new = type(self)(**{**vars(self).get("_made_with", {}), **changed})
        new.load_state_dict(self.state_dict())
        return new

    def extra_repr(self) -> str:
        """All arguments, each number in seven digits."""
        return ", ".join(f"{name}={told(value)}" for name, value in self.arguments().items())

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        """Parameters by their names here, out of those of torch_amt; takes these from `given`.

        Raises ValueError where they are of a form that the parameters here cannot have.
        """
        return {}

    def _wrong(self, key: str, value: Any) -> str:
        """Why a parameter cannot have this value, or ""."""
        if not isinstance(value, Tensor) or value.is_meta or not value.is_floating_point():
            return ""
        low, high = self.ranges.get(key, (-LARGEST, LARGEST))
        wrong = value[~((value >= low) & (value <= high))]  # NaN is neither
        if not wrong.numel():
            return ""
        allowed = f"numbers from {low:g} to {high:g}" if key in self.ranges else "finite numbers"
        return f"is {told(wrong.flatten()[0])} in the checkpoint: give {allowed}"

    def _bound(self) -> dict[str, Any]:
        made = vars(self).get("_made_with", {})
        return {name: _plain(made[name]) for name in self.binding if name in made}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._parameters and self.binding and hasattr(destination, "_metadata"):
            destination._metadata.setdefault(prefix[:-1], {})[MADE_WITH] = self._bound()

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        name = type(self).__name__
        for key, value in local_metadata.get(MADE_WITH, {}).items():
            mine = self._bound().get(key, value)
            if mine != value:
                error_msgs.append(
                    f"{name}: the checkpoint is of one made with {key}={told(value)}, this one has "
                    f"{key}={told(mine)}: make it with the same"
                )
        own = {
            key[len(prefix) :]: value
            for key, value in state_dict.items()
            if key.startswith(prefix) and key[len(prefix) :].partition(".")[0] not in self._modules
        }
        held = {*self._parameters, *self._buffers} - self._non_persistent_buffers_set
        foreign = {key: value for key, value in own.items() if key not in held}
        kept = {key: v for key, v in state_dict.items() if key[len(prefix) :] not in foreign}
        refused = False
        try:
            taken = self.translated(foreign) if foreign else {}
            kept |= {prefix + key: value for key, value in taken.items()}
        except ValueError as refusal:
            refused = True
            warnings.warn(f"{name}: {refusal}: not taken", stacklevel=2)
        if local_metadata.get("assign_to_params_buffers"):
            # A module works in one dtype, whatever is assigned to it.
            for key in held & {key[len(prefix) :] for key in kept if key.startswith(prefix)}:
                like = self._parameters.get(key, self._buffers.get(key))
                if isinstance(like, Tensor) and isinstance(kept[prefix + key], Tensor):
                    kept[prefix + key] = kept[prefix + key].to(like.dtype)
        for key in self._parameters:
            why = self._wrong(key, kept.get(prefix + key))
            if why:
                error_msgs.append(f"{name}: {key} {why}")
                del kept[prefix + key]
                strict = False  # it is not missing
        super()._load_from_state_dict(
            kept, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        # Only now, for some follow from what was learned.
        for key, value in foreign.items():
            if not _same(value, getattr(self, key, None)):
                unexpected_keys.append(prefix + key)
                if hasattr(self, key) and not refused:
                    warnings.warn(
                        f"{name}: {key} is {told(value)} in the checkpoint and "
                        f"{told(getattr(self, key))} here, where it is not learned: not taken",
                        stacklevel=2,
                    )


def _remembering(init: Any) -> Any:
    """`init`, after it has noted its arguments, if no subclass has noted its own."""

    @functools.wraps(init)
    def noting(self: Any, *given: Any, **named: Any) -> None:
        if "_made_with" not in vars(self):
            vars(self)["_made_with"] = _arguments(init, self, given, named)
        init(self, *given, **named)

    return noting


def _arguments(init: Any, *call: Any) -> dict[str, Any]:
    module, given, named = call
    signature = inspect.signature(init)
    try:
        bound = signature.bind(module, *given, **named)
    except TypeError:
        return {}  # init says it better
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
    return {
        name: value
        for name, value in found.items()
        if name != "dtype" and not isinstance(value, nn.Module)
    }


def fingerprint(module: nn.Module) -> str:
    """What a module is made of and has learned, in one line that any change of it changes."""
    parts = hashlib.sha256(repr(module).encode())
    for name, value in module.state_dict().items():
        parts.update(name.encode())
        parts.update(value.detach().cpu().contiguous().numpy().tobytes())
    return f"{type(module).__name__}({module.extra_repr()}) {parts.hexdigest()[:16]}"


def told(value: Any) -> str:
    """`value` for a person: numbers in seven digits, long rows by their ends."""
    if isinstance(value, Tensor):
        if value.is_meta:
            return f"({', '.join(map(str, value.shape))})"
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {told(v)}' for key, v in value.items())}}}"
    if isinstance(value, list | tuple):
        if len(value) > _LONG:
            return f"{told(value[0])}..{told(value[-1])} ({len(value)})"
        inner = ", ".join(map(told, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def _plain(value: Any) -> Any:
    """`value` as a number or a word, as a state_dict that is loaded safely may hold it."""
    return value.item() if isinstance(value, Tensor | np.generic) else value


def _same(value: Any, mine: Any) -> bool:
    if not isinstance(value, Tensor) or not isinstance(mine, Tensor | float | int):
        return False
    mine = torch.as_tensor(mine, device="cpu").detach()
    value = value.detach().cpu()
    if value.shape != mine.shape or mine.is_meta:
        return False
    wide = torch.complex128 if value.is_complex() or mine.is_complex() else torch.float64
    return torch.allclose(value.to(wide), mine.to(wide), rtol=SAME, atol=1e-12)
