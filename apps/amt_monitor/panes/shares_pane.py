"""Which bands of which ear make the sound loud, tonal and rough, each second."""

import math
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.widgets import combo_box, tool_button
from amt_monitor.base.worker_run import WorkerRun
from amt_monitor.panes.pane import ElidedLabel, Pane
from amt_monitor.panes.share_table import EARS, ShareColumn, ShareTable
from amt_monitor.panes.specific_pane import SPECIFIC, SpecificQuality
from amt_stream.core.safe_text import sentence
from amt_stream.core.words import frequency_text
from amt_stream.dsp.design import nominal_midband
from amt_stream.meters.catalog import entry_of
from amt_stream.meters.rows.models import band_shares
from amt_stream.meters.rows.readings import fully_heard
from amt_stream.sessions import SessionError
from amt_stream.sessions.events import keeper_in
from amt_stream.views.frame_follower import FrameFollower

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames
    from amt_stream.views.view_state import ViewState

SHARED = ("loudness", "tonality", "roughness")
SECONDS = 5.0
"""Of sound that are measured again. The standard leaves out the first 0.3 s; each costs 11 times
its measurement."""

KEPT = 6
"""Seconds that wait until all models have reached them; models differ by less than 2 s."""

TRY = "Try 3 dB less"
ABOUT = "Measure the last seconds again with 3 dB less in each band of each ear"
LESS, IN_EAR, IN_BOTH = "3 dB less", "3 dB less in that ear", "3 dB less in both ears"
SHARE = "share in %"
MEASURING = "Measuring the last seconds again, with 3 dB less in each band"
NO_SOUND = "No sound is in memory: turn that on in File > Settings and start a new measurement"

EQUAL = 0.05
"""Ears whose shares differ by less, relative to them, are named together."""


Effects = Mapping[str, NDArray[np.float64]]
"""`Explanation.effects`: the change of each quality (place, band) with 3 dB less in a band."""


class _Second(NamedTuple):
    """Sums of the frames of a second: parts (ear, band), and the value of both ears."""

    parts: NDArray[np.float64]
    value: float
    frames: int


class _SharesOf:
    """Sums of one quality by second.

    model: its name in the engine
    """

    def __init__(self, model: str, quality: SpecificQuality) -> None:
        self.model, self.quality = model, quality
        self._follower = FrameFollower()
        self._weights = band_shares.band_weights(band_shares.band_limits())
        self.restart()

    def restart(self) -> None:
        self._follower.clear()
        self._seconds: dict[int, _Second] = {}
        self.reached = -1
        """The newest second of which all frames have come."""

    def take(self, engine: "Engine") -> None:
        frames = engine.histories[self.model].latest if self.model in engine.histories else None
        for one in self._follower.new(engine, self.model, frames.microphone) if frames else ():
            self._add(one)

    def _add(self, frames: "Frames") -> None:
        value = getattr(frames.values, self.quality.value)
        specific = getattr(frames.values, self.quality.specific)
        if self.quality.name == "tonality":
            parts, both = band_shares.higher_parts(specific, value), np.fmax.reduce(value)
        else:
            parts = band_shares.binaural_parts(specific)
            both = band_shares.BARK * parts.sum((0, 2))
        number = np.ceil(frames.time_s - 1e-6).astype(np.int64) - 1
        # A model that is switched off, or lost samples, have no values.
        known = np.isfinite(value).any(0) & fully_heard(frames)
        for second in np.unique(number[known]).tolist():
            there = known & (number == second)
            sums = _Second(
                parts[:, there].sum(1) @ self._weights, float(both[there].sum()), int(there.sum())
            )
            before = self._seconds.get(second)
            if before is not None and before.parts.shape == sums.parts.shape:
                sums = _Second(
                    before.parts + sums.parts,
                    before.value + sums.value,
                    before.frames + sums.frames,
                )
            self._seconds[second] = sums
        self.reached = math.floor(frames.end_s + 1e-6) - 1
        for old in [one for one in self._seconds if one < self.reached - KEPT]:
            del self._seconds[old]

    def shares(self, second: int) -> NDArray[np.float64] | None:
        """Shares (ear, band) in a second, NaN if it has too little; None for a gap."""
        sums = self._seconds.get(second)
        if sums is None:
            return None
        if sums.value <= band_shares.LEAST_VALUE * sums.frames:
            return np.full(sums.parts.shape, np.nan)
        return band_shares.as_shares(sums.parts)


class SharesPane(Pane):
    """Shares of octaves and ears in loudness, tonality and roughness of ECMA-418-2, each second."""

    def __init__(self, view: "ViewState") -> None:
        super().__init__("shares", "Shares by band and ear", "of the last second, in %")
        self._of = {quality.name: _SharesOf(name, quality) for name, quality in shared_in(view)}
        middles = band_shares.band_limits()[:, 1].tolist()
        self.bands = [frequency_text(nominal_midband(f)) for f in middles]
        self.table = ShareTable(self.bands)
        self.table.setAccessibleName("shares of octaves and ears")
        self.button = tool_button("effects", TRY, ABOUT, self.run)
        self.beside = combo_box("numbers beside the bars", (), self._draw)
        self.beside.hide()
        self.head.addWidget(self.beside)
        self.head.addWidget(self.button)
        self.note = ElidedLabel("")
        self.note.hide()
        self.body.addWidget(self.table, 1)
        self.body.addWidget(self.note)
        self._engine = view.engine
        self._run: WorkerRun | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.effects: Effects | None = None
        (first, *_) = self._of.values()
        value = getattr(view.frames[first.model].values, first.quality.value)
        self._none = np.full((len(value), len(self.bands)), np.nan)
        self._second = -1
        self.shares: dict[str, NDArray[np.float64]] = {}
        self._draw()

    def read(self, view: "ViewState") -> None:
        self._engine = view.engine
        for one in self._of.values():
            one.take(view.engine)
        second = min(one.reached for one in self._of.values())
        if second != self._second:
            self._second = second
            found = {name: one.shares(second) for name, one in self._of.items()}
            self.shares = {name: v for name, v in found.items() if v is not None}
            self._draw()

    def lose(self) -> None:
        if self.shares:
            self.shares = {}
            self._draw()

    def restart(self) -> None:
        for one in self._of.values():
            one.restart()
        self._second, self.shares = -1, {}
        self._end("")
        self._show_effects(None)

    def leave(self) -> None:
        self._end("")

    def run(self) -> None:
        """Measure the last seconds again with 3 dB less, or cancel that."""
        if self._run is not None:
            self._end("")
            return
        keeper = keeper_in(self._engine.sinks)
        if keeper is None:
            self._say(NO_SOUND)
            return
        # Imported here, the window starts sooner.
        from amt_stream.offline.explain import explain

        self._folder = tempfile.TemporaryDirectory(prefix="amt-stream-")
        try:
            sound = keeper.write_last(Path(self._folder.name), SECONDS)
        except (SessionError, OSError) as error:
            self._end(sentence(error))
            return
        (model, *_) = (self._engine.models[one.model] for one in self._of.values())
        self._run = WorkerRun(self)
        self._run.came.connect(lambda percent, left: self._say(f"{MEASURING}: {percent} %"))
        self._run.refused.connect(self._end)
        self._run.done.connect(lambda explanation: self._show_effects(explanation.effects))
        self.button.setText("Cancel")
        self._say(MEASURING)
        self._run.start(partial(explain, sound, field=str(model.arguments()["field"])))

    def _end(self, words: str) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.cancel()
            run.deleteLater()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self.button.setText(TRY)
        self._say(words)

    def _say(self, words: str) -> None:
        self.note.setText(words)
        self.note.setToolTip(words)
        self.note.setVisible(bool(words))

    def _show_effects(self, effects: Effects | None) -> None:
        self._end("" if effects is None else effect_words(effects, self.bands))
        self.effects = effects
        two = effects is not None and len(effects["laeq"]) > 1
        self.beside.blockSignals(True)
        self.beside.clear()
        self.beside.addItems([SHARE, *([IN_EAR, IN_BOTH] if two else [LESS])])
        self.beside.setCurrentIndex(1 if effects is not None else 0)
        self.beside.blockSignals(False)
        self.beside.setVisible(effects is not None)
        self._draw()

    def words(self, name: str) -> str:
        """The greatest contributor of a quality in words; "none" without one, "" if unknown."""
        greatest = self._greatest(name)
        if not greatest:
            return "none" if name in self.shares else ""
        ears, band, shares = [ear for ear, _ in greatest], greatest[0][1], self.shares[name]
        side = "both ears" if len(ears) == 2 else f"{EARS[ears[0]]} ear"
        where = self.bands[band] + (f", {side}" if len(shares) == 2 else "")
        return f"most at {where}: {100 * shares[ears, band].sum():.0f} %"

    def _greatest(self, name: str) -> list[tuple[int, int]]:
        """Ear and band of the greatest share; of both ears if they are about equal."""
        shares = self.shares.get(name)
        if shares is None or not np.isfinite(shares).any():
            return []
        band = int(np.nanargmax(shares.max(0)))
        most = shares[:, band].max()
        return [(int(ear), band) for ear in np.flatnonzero(shares[:, band] > (1 - EQUAL) * most)]

    def texts(self) -> tuple[str, ...]:
        return tuple(self.words(name) for name in self._of)

    def _draw(self) -> None:
        columns = []
        for name in self._of:
            shares = self.shares.get(name, self._none)
            numbers = self._numbers(name, shares)
            heading = name.capitalize(), self.words(name)
            columns.append(ShareColumn(*heading, shares, numbers, self._greatest(name)))
        if self.beside.currentIndex() > 0:
            columns.append(ShareColumn("LAeq, dB", "", None, self._numbers("laeq", self._none)))
        self.table.show_columns(columns)
        spoken = (f"{name}: {self.words(name)}" for name in self._of)
        self.table.setAccessibleDescription("; ".join(spoken))

    def _numbers(self, name: str, shares: NDArray[np.float64]) -> list[list[str]]:
        """Texts beside the bars (ear, band): shares, or what less does there."""
        chosen, effects = self.beside.currentIndex(), self.effects
        if effects is None or chosen <= 0:
            return [[share_text(v) for v in ear] for ear in shares]
        # At a low sampling rate there are fewer bands.
        rest = [""] * (len(self.bands) - effects[name].shape[1])
        places = [[*map(change_text, place), *rest] for place in effects[name]]
        if len(places) == 1:
            return places  # of one channel
        both, *of_ears = places
        if self.beside.currentText() == IN_EAR:
            return of_ears
        return [both] if name == "laeq" else [[""] * len(both), both]


def share_text(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.005 else ""


def change_text(change: float) -> str:
    """A change in percent or dB; nothing where there is none."""
    return "" if math.isnan(change) or abs(change) < 0.05 else f"{change:+.1f}"


def effect_words(effects: Effects, bands: Sequence[str]) -> str:
    """What 3 dB less does in the band of the ear where loudness falls most."""
    loudness = np.nan_to_num(effects["loudness"])
    of_ears = loudness[1:] if len(loudness) > 1 else loudness
    ear, band = np.unravel_index(int(of_ears.argmin()), of_ears.shape)
    place = int(ear) + (len(loudness) > 1)
    where = f" in the {EARS[int(ear)]} ear" if len(loudness) > 1 else ""
    units = dict.fromkeys(SHARED, "%") | {"laeq": "dB"}
    changes = {name: float(effects[name][place, band]) for name in units}
    differences = [
        f"{'LAeq' if name == 'laeq' else name} {change:+.1f} {units[name]}"
        for name, change in changes.items()
        if math.isfinite(change)
    ]
    return f"3 dB less at {bands[int(band)]}{where}: {', '.join(differences)}"


def shared_in(view: "ViewState") -> list[tuple[str, SpecificQuality]]:
    """The models that have shares, by their names in the engine, each with its quality."""
    qualities: dict[str, tuple[str, SpecificQuality]] = {}
    for name, model in view.engine.models.items():
        entry = entry_of(model)
        for quality in SPECIFIC.get(entry.name, ()) if entry is not None else ():
            qualities[quality.name] = name, quality
    return [qualities[name] for name in SHARED if name in qualities]
