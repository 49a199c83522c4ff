"""The parser that reads the options of a command into an object of their class.

The settings of a measurement come from `amt_stream.meters.specification`; further options are
declared in this folder in the same way.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from amt_stream.cli.messages import WrongUsage
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict
from amt_stream.core.values import Choice
from amt_stream.meters.setting import Setting, settings_in, switch


@dataclass(frozen=True)
class Options:
    """Options of every command."""

    command: str | None = None
    list_devices: bool = False


@dataclass(frozen=True)
class ListsDevices(Options):
    """Options of commands that accept -l."""

    list_devices: bool = switch("-l --list-devices", "list the input devices and exit")


class OptionsParser(argparse.ArgumentParser):
    """An argument parser that returns an object of the class whose options were added."""

    def add_options(self, options: type) -> None:
        """Add the settings of a class as arguments, under the headings of its base classes."""
        self.register("action", "yes_or_no", argparse.BooleanOptionalAction)
        self.set_defaults(options=options)
        homes = {
            name: next(one for one in reversed(options.__mro__) if name in vars(one))
            for name, _, _ in settings_in(options)
        }
        groups: JsonDict = {"": self}
        for home in sorted(set(homes.values()), key=options.__mro__.index):
            heading = vars(home).get("heading", "")
            if heading not in groups:
                groups[heading] = self.add_argument_group(heading)
        for name, one, default in settings_in(options):
            if one.flag:
                flags, arguments = _argument(name, one, default)
                group = groups[vars(homes[name]).get("heading", "")]
                action = group.add_argument(*flags, **arguments)
                if one.option.get("nargs") == argparse.REMAINDER:
                    action.required = False  # else the error for NAME names this one too

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command line; options that were not given have the defaults of their class.

        Raises WrongUsage if an option lacks another one that it needs.
        """
        known, unknown = self.parse_known_args(args, namespace)
        found = vars(known)
        options = found["options"]
        if unknown:
            flags = " ".join(one.flag for _, one, _ in settings_in(options)).split()
            meant = get_close_matches(unknown[0].partition("=")[0], flags, 1, 0.8)
            hint = f": did you mean {meant[0]}?" if meant else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        names = {one.name for one in fields(options)}
        typed = options(**{name: value for name, value in found.items() if name in names})
        declared = {name: one for name, one, _ in settings_in(options)}
        for name, one in declared.items():
            if name in found and one.needs and getattr(typed, one.needs) in (None, ()):
                raise WrongUsage(f"{one.long_flag} needs {declared[one.needs].lack}")
        return typed


def _argument(name: str, one: Setting, default: object) -> tuple[list[str], JsonDict]:
    """The flags and keyword arguments for argparse's `add_argument`."""
    words = one.flag.split()
    flags = [word for word in words if word.startswith("-")]
    arguments: dict[str, object] = {"help": one.help.replace("%", "%%")}
    if len(flags) < len(words):
        arguments["metavar"] = words[-1]
    if flags:
        arguments |= {"dest": name, "default": argparse.SUPPRESS}
    rule = one.rule
    read = one.parse or getattr(rule, "parse", None)
    if read is not None:
        arguments["type"] = _refusing(read)
    elif isinstance(rule, Choice):
        arguments["choices"] = rule.words
    elif default is False:
        arguments["action"] = "store_true"
    return flags or [name], {**arguments, **one.option}


def _refusing(read: Callable[[str], object]) -> Callable[[str], Any]:
    """Wrap a parser so that its refusals become argparse's errors."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except Refusal as refusal:
            raise argparse.ArgumentTypeError(str(refusal)) from refusal

    return parse
