"""Asks for a file to write, and never overwrites one without a question."""

from collections.abc import Mapping
from pathlib import Path

from pyqtgraph.Qt import QtWidgets


def ask_save_path(
    over: QtWidgets.QWidget, title: str, stem: str, kinds: Mapping[str, str]
) -> Path | None:
    """The file that the user chooses; None if canceled.

    kinds: endings by their descriptions; the first is the default

    Raises FileExistsError if the ending was added after the dialog had checked the name, and that
    file exists.
    """
    usual = next(iter(kinds.values()))
    filters = ";;".join(f"{name} (*{ending})" for name, ending in kinds.items())
    chosen, chosen_kind = QtWidgets.QFileDialog.getSaveFileName(
        over, title, f"{stem}{usual}", filters
    )
    if not chosen:
        return None
    named = Path(chosen)
    wanted = kinds.get(chosen_kind.rpartition(" (")[0], usual)
    path = _with_ending(named, wanted, usual, [*kinds.values()])
    if path != named and path.exists():
        raise FileExistsError(f"{path} exists: type the complete name to replace it")
    return path


def _with_ending(path: Path, wanted: str, usual: str, endings: list[str]) -> Path:
    """A typed ending stays; a proposed one gives way to the chosen one."""
    ending = path.suffix.lower()
    if ending not in endings:
        return path.with_name(f"{path.name}{wanted}")
    return path.with_suffix(wanted) if ending == usual != wanted else path
