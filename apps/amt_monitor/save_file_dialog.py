"""The name of a file that is to be written, with its ending, and nothing overwritten unasked."""

from collections.abc import Mapping
from pathlib import Path

from pyqtgraph.Qt import QtWidgets


def ask_save_path(
    over: QtWidgets.QWidget, title: str, stem: str, kinds: Mapping[str, str]
) -> Path | None:
    """The file that a person chooses; None for none.

    kinds: endings by what they are called, the first of them proposed

    Raises FileExistsError where the dialog has asked for another name than the file then has, and
    that one is there.
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
        raise FileExistsError(f"{path} is there already: choose it by its whole name")
    return path


def _with_ending(path: Path, wanted: str, usual: str, endings: list[str]) -> Path:
    """An ending that was typed stays; one that was only proposed gives way to the wanted one."""
    ending = path.suffix.lower()
    if ending not in endings:
        return path.with_name(f"{path.name}{wanted}")
    return path.with_suffix(wanted) if ending == usual != wanted else path
