"""Constructor arguments of a module, and checked state_dicts: this package's and torch_amt's."""

import functools
import hashlib
import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.functional.compiler import private_torch

SAME = 1e-5
"""Relative difference below which two constants are equal: float32 rounding."""

LARGEST = torch.finfo(torch.float64).max

MADE_WITH = "made_with"
"""Metadata key of a state_dict for the values of the `binding` arguments."""

EXTRA_STATE = "_extra_state"
"""Key of a state_dict for the result of `get_extra_state`."""

_LONG = 6


class Checkpointed(nn.Module):
    """A module that records its constructor arguments and checks the checkpoints it loads.

    A state_dict holds the parameters. Its metadata, which `torch.save` stores, also holds the
    arguments that give the parameters their meaning; `load_state_dict` raises RuntimeError if they
    differ.

    A state_dict of torch_amt loads too: `translated` converts its learned values into parameters
    of this module, and its constants are compared with the constants here. A value that is neither
    converted nor equal counts as an unexpected key: an error, or with strict=False a part of what
    `load_state_dict` returns, plus a warning if it may have been learned.
    """

    binding: tuple[str, ...] = ()
    """Names of arguments that give the parameters their meaning; numbers or strings."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Range of each parameter that a checkpoint may hold, inclusive."""

    derived: ClassVar[tuple[str, ...]] = ()
    """Names of torch_amt values that follow from the others and are ignored."""

    foreign: ClassVar[tuple[str, ...]] = ()
    """Names of values that torch_amt learns and this module cannot represent."""

    rounding: ClassVar[Mapping[str, float]] = {}
    """Absolute float32 rounding error of each constant for which SAME does not fit."""

    if TYPE_CHECKING:  # a name that is registered, and set nowhere, is that of a tensor

        def __getattr__(self, name: str) -> Tensor: ...

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def arguments(self) -> dict[str, Any]:
        """Constructor arguments by name, except `dtype` and modules.

        An argument that was None or is a tensor attribute is given with its present value.
        """
        values = {}
        for name, value in vars(self).get("_made_with", {}).items():
            now = getattr(self, name, None)
            values[name] = now if value is None or isinstance(now, Tensor) else value
        return values

    def with_arguments(self, **changed: object) -> Self:
        """A copy made with some arguments changed, with the parameters of this module."""
        new = type(self)(**{**vars(self).get("_made_with", {}), **changed})
        new.load_state_dict(self.state_dict())
        return new

    def extra_repr(self) -> str:
        """All arguments, numbers with seven digits."""
        return ", ".join(f"{name}={short_text(value)}" for name, value in self.arguments().items())

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        """Parameters of this module converted from those of torch_amt, popped from `given`.

        given: all values that a checkpoint has for this module

        Raises ValueError if the parameters here cannot represent them; then none is loaded.
        """
        return {}

    def _wrong(self, key: str, value: object) -> str:
        """Why a parameter cannot have this value, or ""."""
        if not isinstance(value, Tensor) or value.is_meta or not value.is_floating_point():
            return ""
        low, high = self.ranges.get(key, (-LARGEST, LARGEST))
        wrong = value[~((value >= low) & (value <= high))]  # NaN is neither
        if not wrong.numel():
            return ""
        allowed = f"numbers from {low:g} to {high:g}" if key in self.ranges else "finite numbers"
        return f"is {short_text(wrong.flatten()[0])} in the checkpoint: give {allowed}"

    def _bound(self) -> dict[str, Any]:
        made = vars(self).get("_made_with", {})
        return {name: _plain(made[name]) for name in self.binding if name in made}

    def _save_to_state_dict(self, destination: object, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        metadata = private_torch.metadata_of(destination)
        if self._parameters and self.binding and metadata is not None:
            metadata.setdefault(prefix[:-1], {})[MADE_WITH] = self._bound()

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
        lists = missing_keys, unexpected_keys, error_msgs
        error_msgs += self._differing_arguments(local_metadata)
        # Hooks may rename entries, so they run before anything is read.
        for hook in private_torch.load_hooks(self):
            hook(state_dict, prefix, local_metadata, strict, *lists)
        given = {
            key[len(prefix) :]: value
            for key, value in state_dict.items()
            if key.startswith(prefix) and key[len(prefix) :].partition(".")[0] not in self._modules
        }
        extra = {key: given.pop(key) for key in (EXTRA_STATE,) if key in given}
        own, others, of_children = self._sorted_out(given)
        for key, value in of_children.items():  # which are loaded later
            state_dict[prefix + key] = value  # type: ignore[index]
        refused = own is None
        own = self._shaped(own or {}, local_metadata.get("assign_to_params_buffers", False))
        for key in self._parameters:
            why = self._wrong(key, own.get(key))
            if why:
                error_msgs.append(f"{type(self).__name__}: {key} {why}")
                del own[key]
                strict = False  # it is not missing
        with private_torch.without_load_hooks(self):
            super()._load_from_state_dict(
                {prefix + key: value for key, value in (own | extra).items()},
                prefix,
                local_metadata,
                strict,
                *lists,
            )
        # After loading, because some constants follow from the parameters.
        unequal = [key for key, value in others.items() if not self._has_equal(key, value)]
        unexpected_keys += [prefix + key for key in unequal]
        if not refused:
            self._warn_of({key: others[key] for key in unequal})

    def _differing_arguments(self, metadata: Mapping[str, Any]) -> list[str]:
        """A sentence for each `binding` argument that the checkpoint has differently."""
        bound, found = self._bound(), []
        for key, value in metadata.get(MADE_WITH, {}).items():
            mine = bound.get(key, value)
            if mine != value:
                found.append(
                    f"{type(self).__name__}: the checkpoint was made with "
                    f"{key}={short_text(value)}, this one has {key}={short_text(mine)}: make it "
                    "with the same"
                )
        return found

    def _sorted_out(
        self, given: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any], dict[str, Any]]:
        """The values of a checkpoint for this module, all others, and those of its children.

        The first are None, with a warning, if `translated` refuses.
        """
        held = private_torch.saved_names(self)
        others = {k: value for k, value in given.items() if k not in {*held, *self.derived}}
        taken: dict[str, Tensor] = {}
        if others:
            try:
                taken = self.translated(given)
            except ValueError as error:
                warnings.warn(f"{type(self).__name__}: {error}: not taken", stacklevel=3)
                return None, others, {}
        own = {key: value for key, value in given.items() if key in held}
        own |= {key: value for key, value in taken.items() if "." not in key}
        of_children = {key: value for key, value in taken.items() if "." in key}
        return own, {key: value for key, value in others.items() if key in given}, of_children

    def _shaped(self, own: dict[str, Any], assigned: bool) -> dict[str, Any]:
        """Values as this module has them: one value for all bands, and if assigned its dtype."""
        shaped = {}
        for key, value in own.items():
            like = self._parameters.get(key, self._buffers.get(key))
            if isinstance(like, Tensor) and isinstance(value, Tensor):
                if not value.dim() and like.dim() == 1:
                    value = value.expand_as(like)
                if assigned:
                    # All tensors of a module share one dtype, whatever is assigned.
                    value = value.to(like.dtype)
            shaped[key] = value
        return shaped

    def _constant(self, key: str) -> Any:
        """The constant of this module that torch_amt calls `key`, or None."""
        return getattr(self, key, getattr(self, key.lstrip("_"), None))

    def _has_equal(self, key: str, value: object) -> bool:
        return _same(value, self._constant(key), self.rounding.get(key))

    def _warn_of(self, unequal: Mapping[str, object]) -> None:
        """Warn of values that may have been learned and have no place here."""
        name = type(self).__name__
        unknown = []
        for key, value in unequal.items():
            mine = self._constant(key)
            if mine is not None:
                warnings.warn(
                    f"{name}: {key} is {short_text(value)} in the checkpoint and "
                    f"{short_text(mine)} here, where it is not learned: not taken",
                    stacklevel=3,
                )
            elif "." in key or key in self.foreign:
                unknown.append(key)
        if unknown:
            rest = f" and {len(unknown) - 1} more" if unknown[1:] else ""
            warnings.warn(
                f"{name}: {unknown[0]}{rest} of the checkpoint: no place for it here, not taken",
                stacklevel=3,
            )


def _remembering(init: Any) -> Any:
    """`init` that first records its arguments, unless a subclass has."""

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
        return {}  # init raises a better error
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
    """A one-line hash of a module's structure and weights; any change of them changes it."""
    parts = hashlib.sha256(repr(module).encode())
    for name, value in module.state_dict().items():
        parts.update(name.encode())
        parts.update(value.detach().cpu().contiguous().numpy().tobytes())
    return f"{type(module).__name__}({module.extra_repr()}) {parts.hexdigest()[:16]}"


def short_text(value: object) -> str:
    """`value` for display: numbers with seven digits, long sequences by their ends."""
    if isinstance(value, Tensor):
        if value.is_meta:
            return f"({', '.join(map(str, value.shape))})"
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {short_text(v)}' for key, v in value.items())}}}"
    if isinstance(value, list | tuple):
        if len(value) > _LONG:
            return f"{short_text(value[0])}..{short_text(value[-1])} ({len(value)})"
        inner = ", ".join(map(short_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def number(value: Tensor | float) -> float:
    """The shortest decimal that rounds to `value` in its dtype: 0.08, not 0.07999999821."""
    return float(str(value.detach().cpu().numpy()[()]) if isinstance(value, Tensor) else value)


def _plain(value: object) -> Any:
    """`value` as a Python number or string, which a safe `torch.load` accepts."""
    return value.item() if isinstance(value, Tensor | np.generic) else value


def _same(value: Any, mine: Any, rounding: float | None) -> bool:
    if not isinstance(value, Tensor) or not isinstance(mine, Tensor | float | int):
        return False
    mine = torch.as_tensor(mine, device="cpu").detach()
    value = value.detach().cpu()
    # A scalar may stand for an array of equal values, on either side.
    if (value.shape != mine.shape and value.dim() and mine.dim()) or mine.is_meta:
        return False
    wide = torch.complex128 if value.is_complex() or mine.is_complex() else torch.float64
    value, mine = torch.broadcast_tensors(value.to(wide), mine.to(wide))
    relative, absolute = (SAME, 1e-12) if rounding is None else (0.0, rounding)
    return torch.allclose(value, mine, rtol=relative, atol=absolute)
