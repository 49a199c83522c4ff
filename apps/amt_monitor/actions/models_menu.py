"""The choice of models and their settings."""

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.base.widgets import add_choice
from amt_stream.engine.run_state import EngineEnded
from amt_stream.meters import catalog
from amt_stream.sessions.events import tables_of_files
from amt_stream.views.measurement_control import has_ended

if TYPE_CHECKING:
    from amt_stream.engine import Engine

Choose = Callable[[tuple[str, ...]], object]
Set = Callable[[str, str], object]

LOOK_S = 0.02


class ModelsMenu(QtWidgets.QMenu):
    """The models of the catalog, checked if they run, and settings of those.

    engine: returns the running engine, if any
    choose: called with the names of other models
    set_one: called with a setting and its new value
    """

    def __init__(self, engine: Callable[[], "Engine | None"], choose: Choose, set_one: Set) -> None:
        super().__init__("M&odels")
        self._engine, self._choose, self._set_one = engine, choose, set_one
        self.aboutToShow.connect(self.fill)

    def fill(self) -> None:
        self.clear()
        engine = self._engine()
        running = {} if engine is None else running_models(engine)
        for name in catalog.names():
            entry = catalog.entry(name)
            tick = partial(self._tick, tuple(running), entry)
            add_choice(self, entry.title, name in running, tick, f"model_{name}", entry.method)
        self.setToolTipsVisible(True)
        for name, model in running.items():
            entry = catalog.entry(name)
            for setting, words in entry.settings.items():
                if setting in model.arguments():
                    self._add_setting(entry.title, setting, words, model.arguments()[setting])

    def _add_setting(self, title: str, setting: str, words: tuple[str, ...], now: str) -> None:
        menu = self.addMenu(f"{title}: {setting.replace('_', ' ')}")
        group = QtGui.QActionGroup(menu)
        for word in words:
            choose = partial(self._set_one, setting, word)
            group.addAction(add_choice(menu, word, word == now, choose, f"{setting}_{word}"))

    def _tick(self, running: tuple[str, ...], entry: catalog.Entry) -> None:
        beside = tuple(one for one in running if not catalog.entry(one).alone)
        if entry.alone:
            chosen: tuple[str, ...] = (entry.name,)
        elif entry.name in beside:
            chosen = tuple(one for one in beside if one != entry.name)
        else:
            chosen = (*beside, entry.name)
        if chosen and chosen != running:
            self._choose(chosen)


def running_models(engine: "Engine") -> Mapping[str, Any]:
    """The catalog models of an engine by name."""
    found = ((catalog.entry_of(model), model) for model in engine.models.values())
    return {entry.name: model for entry, model in found if entry is not None}


def model_names(engine: "Engine | None") -> list[str] | None:
    """The names of the catalog models of an engine; None if there are none."""
    return None if engine is None else [*running_models(engine)] or None


def swap_models(engine: "Engine", setting: str, word: str) -> None:
    """Replace the models by others with this setting, made here while the present ones run
    [any-thread].

    Headers that are written from then on say so. It returns when the new models run.

    Raises ValueError for a model that cannot run there, and if the engine ends first.
    """
    swapped = {}
    for name, model in engine.models.items():
        entry = catalog.entry_of(model)
        if entry is None or setting not in entry.settings:
            continue
        if model.arguments().get(setting) != word:
            swapped[name] = model.with_arguments(**{setting: word})
    if swapped:
        begin = engine.prepared(swapped)
        for table in tables_of_files(engine.sinks):
            table.swap({setting: word}, swapped)
        with contextlib.suppress(EngineEnded):  # reported below
            begin()  # after the tables, as its events ask for their headers
    while any(engine.models[name].arguments()[setting] != word for name in swapped):
        if has_ended(engine):
            raise ValueError(
                f"{setting} is unchanged: the measurement ended before it became {word}"
            )
        time.sleep(LOOK_S)
