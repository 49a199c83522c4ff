"""The kinds of panes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from amt_monitor.base.settings import Settings
from amt_monitor.panes.chosen_readings_pane import ChosenReadingsPane
from amt_monitor.panes.distribution_pane import DistributionPane
from amt_monitor.panes.ears_pane import EarsPane, ears_in
from amt_monitor.panes.events_pane import EventsPane
from amt_monitor.panes.health_pane import HealthPane
from amt_monitor.panes.history_pane import HistoryPane
from amt_monitor.panes.level_pane import LevelPane
from amt_monitor.panes.limits_pane import LimitsPane
from amt_monitor.panes.modulation_panes import ModulationMapsPane, StrongestModulationPane
from amt_monitor.panes.pane import Pane
from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.panes.shares_pane import SharesPane, shared_in
from amt_monitor.panes.specific_pane import (
    SPECIFIC,
    SpecificQualityPane,
    specific_name,
    specific_title,
)
from amt_monitor.panes.spectrogram_pane import SpectrogramPane
from amt_monitor.panes.spectrum_pane import SpectrumPane
from amt_monitor.panes.venue_pane import MODEL as VENUE_MODEL
from amt_monitor.panes.venue_pane import NAME as VENUE
from amt_monitor.panes.venue_pane import VenuePane, venue_limit
from amt_monitor.panes.waterfall_pane import WaterfallPane
from amt_stream.meters import catalog
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import ViewState

Make = Callable[[], Pane]

MANY = 4
"""Models."""


class PaneKind(NamedTuple):
    """A kind of pane.

    name: of its dock, used in layouts
    title: in the menu
    row: in the default layout, from the top; None if it is closed there
    share: of the row's width
    make: makes the pane
    """

    name: str
    title: str
    row: int | None
    share: int
    make: Make
    always: bool = False
    """Whether it is made at once, to follow the measurement while closed."""


NUMBERS, HISTORY, CURVES = range(3)
"""Rows of the default layout."""

SHARES = (210, 278, 210)
"""Of the window's height, by row."""


def pane_kinds(
    view: ViewState, settings: Settings, choose_limits: Callable[[], object]
) -> list[PaneKind]:
    """The kinds for this measurement; settings store the choices in them."""
    return [*_of_models(view), *_of_all(view, settings, choose_limits)]


def _of_models(view: ViewState) -> Iterator[PaneKind]:
    if view.readings is None:
        return
    for name, model in view.engine.models.items():
        entry = catalog.entry_of(model)
        if entry is None or name not in view.readings.models:
            continue
        make = partial(_reading_pane, entry.name, name, tuple(view.readings.of(name)))
        # A venue has a pane of its own, with the levels that it watches.
        row = None if name == VENUE_MODEL and venue_limit(view.readings) else NUMBERS
        yield PaneKind(entry.name, entry.title, row, 8, make)
        if hasattr(model, "midbands") or hasattr(model, "bin_hz"):
            own = f"spectrogram_{entry.name}"
            make = partial(SpectrogramPane, own, entry.title.lower(), name, model)
            yield PaneKind(own, f"Spectrogram, {entry.title.lower()}", CURVES, 1, make, always=True)
        for quality in SPECIFIC.get(entry.name, ()):
            own, title = specific_name(entry.name, quality), specific_title(quality)
            make = partial(SpecificQualityPane, entry, name, quality)
            yield PaneKind(own, title, CURVES, 1, make, always=True)


def _reading_pane(model: str, in_engine: str, names: Sequence[str]) -> Pane:
    pane = pane_of(model, names)
    pane.model = in_engine
    return pane


def _chosen_pane(settings: Settings) -> Pane:
    chosen = [name for name in settings.get("numbers", []) if isinstance(name, str)]
    return ChosenReadingsPane(chosen, lambda names: settings.put(numbers=names))


def limits_kind(view: ViewState, choose_limits: Callable[[], object]) -> PaneKind:
    """The pane of the present limits."""
    assert view.readings is not None
    limits = view.readings.limits
    # Beside many models an empty pane has no room.
    row = NUMBERS if limits or len(view.engine.models) < MANY else None
    make = partial(LimitsPane, limits, choose_limits)
    return PaneKind("limits", "Limits", row, 4 if limits else 2, make)


def _of_all(
    view: ViewState, settings: Settings, choose_limits: Callable[[], object]
) -> Iterator[PaneKind]:
    if view.readings is not None and (venue := venue_limit(view.readings)) is not None:
        yield PaneKind(VENUE, "Venue", NUMBERS, 12, partial(VenuePane, view.readings, venue))
    if view.readings is not None and not view.readings.rows.gives_cells:
        yield limits_kind(view, choose_limits)
    if view.heard is not None:
        yield PaneKind("levels", "Input level", NUMBERS, 2, LevelPane)
    if view.readings is not None and not view.readings.rows.gives_cells:
        rows = view.readings.rows
        history = ReadingHistory(rows.columns, rows.step_ms / 1000)
        limited = tuple(one.column for one in view.readings.limits)
        make = partial(HistoryPane, history, limited)
        yield PaneKind("history", "History", HISTORY, 1, make, always=True)
        yield PaneKind("distribution", "Distribution", None, 1, partial(DistributionPane, history))
    if shared_in(view):
        title = "Shares by band and ear"
        yield PaneKind("shares", title, CURVES, 1, partial(SharesPane, view))
    if view.specific_loudness is not None:
        title = "Specific loudness, last minute"
        yield PaneKind("waterfall", title, CURVES, 1, WaterfallPane, always=True)
        yield PaneKind("specific_loudness", "Specific loudness now", CURVES, 1, SpectrumPane)
    if ears_in(view) is not None:
        yield PaneKind("ears", "Ears and inhibition", None, 1, EarsPane)
    if hasattr(view.newest.values, "rms"):
        yield PaneKind("strongest", "Strongest modulation", NUMBERS, 4, StrongestModulationPane)
        yield PaneKind("modulation", "Modulation spectrum", CURVES, 1, ModulationMapsPane)
    if view.readings is not None:
        yield PaneKind("numbers", "Numbers", None, 3, partial(_chosen_pane, settings))
    yield PaneKind("events", "Events", None, 1, EventsPane)
    yield PaneKind("health", "Health", None, 1, HealthPane)
