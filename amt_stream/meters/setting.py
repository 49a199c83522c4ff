"""A setting: what a field of a specification declares."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

Words = str | Callable[[], str]
"""A text or a function that returns it: models may be added to the catalog after the import."""


@dataclass(frozen=True)
class Setting:
    """What a field of a specification declares besides its type and its default.

    flag: option and metavar as help shows them, "-r --samplerate HZ"; a positional argument has no
        "-"; "" means that the command has no such option
    about: help text, one sentence
    kind: a type of `amt_stream.core.values`, or a function that returns one; None for any text
        and for yes or no
    parse: function that reads the text instead of `kind`
    key: key in a preset
    usual: default in words, if it is not a number
    page: document with details
    needs: another setting that this one requires
    lack: completes "--x needs ..." in the error if a setting that others require is missing
    option: further arguments of argparse's `add_argument`
    """

    flag: str
    about: Words
    kind: Any = None
    parse: Callable[[str], Any] | None = None
    key: str = ""
    usual: Words = ""
    page: str = ""
    needs: str = ""
    lack: str = ""
    option: Mapping[str, Any] = field(default_factory=dict)

    @property
    def long_flag(self) -> str:
        """The option as in `--target`, without short form and metavar."""
        return next(word for word in self.flag.split() if word.startswith("--"))

    @property
    def rule(self) -> Any:
        """The allowed values."""
        return _called(self.kind)

    @property
    def help(self) -> str:
        """The help text with the default."""
        about, usual = _called(self.about), _called(self.usual)
        return f"{about} (default: {usual})" if usual else about


def _called(value: object) -> Any:
    return value() if callable(value) else value


def setting(
    flag: str,
    about: Words,
    kind: object = None,
    *,
    default: object = None,
    parse: Callable[[str], object] | None = None,
    key: str = "",
    usual: Words = "",
    page: str = "",
    needs: str = "",
    lack: str = "",
    **option: object,
) -> Any:
    """A field of a specification; the arguments are those of `Setting`."""
    usual = usual or _in_words(default)
    one = Setting(flag, about, kind, parse, key, usual, page, needs, lack, option)
    return field(default=default, metadata={"setting": one})


def switch(flag: str, about: Words, needs: str = "") -> Any:
    """A field that is False unless the flag is given."""
    return setting(flag, about, default=False, needs=needs)


def _in_words(default: object) -> str:
    """A default that is a number or a tuple of numbers, as text."""
    if isinstance(default, tuple):
        return ",".join(map(_in_words, default))
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if is_number else ""


def changed(group: type, name: str, default: Any = MISSING, **changes: Any) -> Any:
    """A field of a group with changes for one command, such as another help text or default."""
    one, usual = declared(group, name)
    default = usual if default is MISSING else default
    return field(default=default, metadata={"setting": replace(one, **changes)})


def declared(group: type, name: str) -> tuple[Setting, Any]:
    """Declaration and default of one setting of a group."""
    return next((one, usual) for known, one, usual in settings_in(group) if known == name)


def settings_in(group: type) -> Iterator[tuple[str, Setting, Any]]:
    """Yield name, declaration and default of each setting of a group, in order."""
    for one in fields(group):
        if "setting" in one.metadata:
            yield one.name, one.metadata["setting"], one.default
