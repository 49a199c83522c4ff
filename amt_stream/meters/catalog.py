"""The catalog of models: the name, class, readings and settings of each.

The catalog holds only text, so that listing models is cheap: "module:name" stands for an object,
which is imported on demand. Commands, presets, rows, the self-test and the windows all use this
list.

Another package adds a model with an entry point in the group `amt_stream.meters` that names an
`Entry`; a program adds one for itself with `add`. `amt_stream.meters.plugin` has the types of the
objects that an entry names.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points

from amt_stream.dsp.channel_layout import MOST_CHANNELS
from amt_stream.meters.entry import CatalogError as CatalogError  # noqa: PLC0414
from amt_stream.meters.entry import Entry as Entry  # noqa: PLC0414
from amt_stream.meters.entry import Output as Output  # noqa: PLC0414

GROUP = "amt_stream.meters"
DEFAULT = "moore2016"

ECMA_UNITS = {
    "ecma_specific_loudness": "sone_HMS/Bark_HMS",
    "ecma_specific_tonality": "tu_HMS",
    "ecma_specific_roughness": "asper/Bark_HMS",
    "ecma_specific_fluctuation": "vacil_HMS/Bark_HMS",
}
"""Units of the specific values of ECMA-418-2, by the name of the output."""


def _in_barks(name: str, field: str = "specific") -> dict[str, Output]:
    """The output of this name, from a field of a model."""
    return {name: Output(field, ECMA_UNITS[name], ("channel", "bark_hms"))}


FRONT_OF_MOORE: dict[str, tuple[str, ...]] = {
    "field": ("free", "diffuse", "eardrum"),
    "ear_filter": ("mixed", "linear"),
    "accuracy": ("exact", "reference", "coarse"),
}
"""Settings of the models of Moore and Glasberg."""


def _ecma(metric: str, model: str, words: str, clause: str, row_step_ms: int = 10) -> Entry:
    """One metric of ECMA-418-2."""
    name = f"ecma_{metric}"
    return Entry(
        name=name,
        title=f"{words.capitalize()}, ECMA-418-2",
        method=f"{words} over time by the hearing model of ECMA-418-2:2025, clause {clause}",
        model=f"amt_stream.dsp.models:{model}",
        readings=f"amt_stream.meters.rows.models.ecma418:{name}_readings",
        settings={"field": ("free", "diffuse")},
        outputs=_in_barks(f"ecma_specific_{metric}"),
        row_step_ms=row_step_ms,
        checks=f"amt_stream.offline.selftest.{name}",
        pane="amt_monitor.panes.model_panes:metric_pane",
    )


def _bands(name: str, title: str, model: str, readings: str) -> Entry:
    return Entry(
        name=name,
        title=title,
        method=f"levels in {title.lower()}, fast, slow, equivalent, highest: IEC 61260-1",
        model=f"amt_stream.dsp.stages:{model}",
        readings=f"amt_stream.meters.rows.models.third_octave:{readings}",
        readings_take=("model",),
        checks=f"amt_stream.offline.selftest.{name}",
        pane="amt_monitor.panes.bands_pane:BandsPane",
    )


def _modulations(name: str, title: str, source: str) -> Entry:
    """The modulations of an auditory model."""
    return Entry(
        name=name,
        title=title,
        method=f"strength of modulations by auditory band: {source}",
        model="amt_stream.dsp.models:ModulationSpectrum",
        readings="amt_stream.meters.rows.models.modulation:modulation_readings",
        arguments={"model": name},
        readings_take=("model",),
        view="modulation",
        alone=True,
        row_step_ms=20,
    )


SHIPPED = (
    Entry(
        name="moore2016",
        title="Moore 2016",
        method="binaural loudness over time: Moore et al. (2016, 2018), the method of ISO 532-3",
        model="amt_stream.dsp.models:Moore2016",
        readings="amt_stream.meters.rows.models.loudness:moore2016_readings",
        settings={**FRONT_OF_MOORE, "constants": ("iso", "author")},
        cheaper={"accuracy": "coarse"},
        takes=("uncertainty_db", "specific_loudness", "excitation_db"),
        readings_take=("band",),
        outputs={
            "specific_loudness": Output(
                "specific_loudness", "sone/Cam", ("ear", "erb_number"), "specific_loudness"
            ),
            "excitation_db": Output("excitation_db", "dB", ("ear", "erb_number"), "excitation_db"),
            "stl_ears": Output("stl_ears", "sone", ("ear",)),
            "ltl_ears": Output("ltl_ears", "sone", ("ear",)),
        },
        view="loudness",
        row_step_ms=1,
        checks="amt_stream.offline.selftest.moore2016",
        pane="amt_monitor.panes.model_panes:moore2016_pane",
    ),
    Entry(
        name="gm2002",
        title="Glasberg & Moore 2002",
        method="loudness over time: Glasberg & Moore (2002) on the constants of ANSI S3.4-2007",
        model="amt_stream.dsp.models:Glasberg2002",
        readings="amt_stream.meters.rows.models.loudness:gm2002_readings",
        settings=FRONT_OF_MOORE,
        cheaper={"accuracy": "coarse"},
        outputs={
            "gm2002_stl_ears": Output("stl_ears", "sone", ("ear",)),
            "gm2002_ltl_ears": Output("ltl_ears", "sone", ("ear",)),
        },
        checks="amt_stream.offline.selftest.glasberg2002",
        pane="amt_monitor.panes.model_panes:gm2002_pane",
    ),
    Entry(
        name="zwicker",
        title="Zwicker",
        method="loudness over time: Zwicker, the method of ISO 532-1 for time-varying sounds",
        model="amt_stream.dsp.models:ZwickerTimeVarying",
        readings="amt_stream.meters.rows.models.zwicker:ZwickerReadings",
        settings={"field": ("free", "diffuse")},
        takes=("specific_loudness",),
        outputs={
            "zwicker_specific_loudness": Output(
                "specific", "sone/Bark", ("channel", "bark"), "specific_loudness"
            )
        },
        checks="amt_stream.offline.selftest.zwicker",
        pane="amt_monitor.panes.model_panes:zwicker_pane",
    ),
    _ecma("loudness", "ECMALoudness", "loudness", "8"),
    _ecma("tonality", "ECMATonality", "tonality", "6"),
    _ecma("roughness", "ECMARoughness", "roughness", "7", 20),
    _ecma("fluctuation", "ECMAFluctuation", "fluctuation strength", "9; provisional", 20),
    Entry(
        name="ecma",
        title="Sound quality, ECMA-418-2",
        method="loudness, tonality, roughness and fluctuation strength over time by the hearing "
        "model of ECMA-418-2:2025",
        model="amt_stream.dsp.models:ECMA418",
        readings="amt_stream.meters.rows.models.ecma418:ECMA418Readings",
        settings={"field": ("free", "diffuse")},
        outputs=_in_barks("ecma_specific_loudness", "specific_n")
        | _in_barks("ecma_specific_tonality", "specific_t")
        | _in_barks("ecma_specific_roughness", "specific_r")
        | _in_barks("ecma_specific_fluctuation", "specific_f"),
        checks="amt_stream.offline.selftest.ecma",
        pane="amt_monitor.panes.model_panes:ecma_pane",
        includes=("ecma_loudness", "ecma_tonality", "ecma_roughness", "ecma_fluctuation"),
    ),
    Entry(
        name="daniel_weber",
        title="Roughness, Daniel & Weber",
        method="roughness over time: Daniel & Weber (1997), for comparison with ECMA-418-2",
        model="amt_stream.dsp.models:DanielWeber",
        readings="amt_stream.meters.rows.models.daniel_weber:DanielWeberReadings",
        outputs={
            "daniel_weber_specific_roughness": Output(
                "specific", "asper/Bark", ("channel", "half_bark")
            )
        },
        row_step_ms=100,
        checks="amt_stream.offline.selftest.daniel_weber",
        pane="amt_monitor.panes.model_panes:metric_pane",
    ),
    Entry(
        name="bs1770",
        title="Programme loudness",
        method="programme loudness in LUFS, true peak: ITU-R BS.1770, EBU R 128; uncalibrated",
        model="amt_stream.dsp.stages:BS1770",
        readings="amt_stream.meters.rows.models.programme:ProgrammeReadings",
        input_unit="full scale",
        takes=("layout",),
        readings_take=("target_lufs", "dual_mono"),
        most_channels=MOST_CHANNELS,
        checks="amt_stream.offline.selftest.bs1770",
        pane="amt_monitor.panes.model_panes:ProgrammePane",
    ),
    Entry(
        name="spl",
        title="Sound level",
        method="sound levels A, C and Z, fast, slow, impulse, peak: IEC 61672-1",
        model="amt_stream.dsp.stages:SoundLevel",
        readings="amt_stream.meters.rows.models.sound_level:SoundLevelReadings",
        readings_take=("audience",),
        checks="amt_stream.offline.selftest.sound_level",
        pane="amt_monitor.panes.model_panes:sound_level_pane",
    ),
    _bands("third_octave", "Third octaves", "ThirdOctaves", "ThirdOctaveReadings"),
    _bands("octave", "Octaves", "Octaves", "OctaveReadings"),
    Entry(
        name="spectrum",
        title="Spectrum",
        method="levels of lines at most 6 Hz apart, fast: Fourier transform, Hann window",
        model="amt_stream.dsp.stages:NarrowBandSpectrum",
        readings="amt_stream.meters.rows.models.spectrum:SpectrumReadings",
        readings_take=("model",),
        outputs={"spectrum_db": Output("level_db", "dB", ("channel", "hz"))},
        checks="amt_stream.offline.selftest.spectrum",
        pane="amt_monitor.panes.narrow_band_pane:NarrowBandPane",
    ),
    Entry(
        name="tonal_audibility",
        title="Tonal audibility",
        method="audibility of tones in noise and their adjustment: ISO/PAS 20065",
        model="amt_stream.dsp.models:TonalAudibility",
        readings="amt_stream.meters.rows.models.rating:tonal_audibility_readings",
        readings_take=("model",),
        outputs={"tone_spectrum": Output("spectrum", "Pa^2", ("channel", "hz"))},
        row_step_ms=100,
        checks="amt_stream.offline.selftest.rating_level.tones",
        pane="amt_monitor.panes.rating_pane:RatingPane",
    ),
    Entry(
        name="impulses",
        title="Impulses",
        method="prominence of impulses and their adjustment: NT ACOU 112, ISO/PAS 1996-3",
        model="amt_stream.dsp.models:Impulses",
        readings="amt_stream.meters.rows.models.rating:impulses_readings",
        row_step_ms=100,
        checks="amt_stream.offline.selftest.rating_level.impulses",
        pane="amt_monitor.panes.rating_pane:RatingPane",
    ),
    Entry(
        name="rating",
        title="Rating level",
        method="LAeq adjusted for tones and impulses: ISO 1996-1, ISO/PAS 20065, NT ACOU 112",
        model="amt_stream.dsp.models:Rating",
        readings="amt_stream.meters.rows.models.rating:rating_readings",
        settings={"combine": ("sum", "max")},
        readings_take=("model",),
        row_step_ms=100,
        checks="amt_stream.offline.selftest.rating_level.rating",
        pane="amt_monitor.panes.rating_pane:RatingPane",
        includes=("tonal_audibility", "impulses"),
    ),
    Entry(
        name="partial",
        title="Partial loudness, experimental",
        method="loudness of a target in a background, experimental: Moore, Glasberg & Baer (1997)",
        model="amt_stream.dsp.models:PartialLoudness",
        readings="amt_stream.meters.rows.models.partial:PartialReadings",
        readings_take=("model",),
        settings=FRONT_OF_MOORE,
        cheaper={"accuracy": "coarse"},
        takes=("channels", "background", "mixed"),
        outputs={"audibility_db": Output("audibility_db", "dB", ("erb_number",))},
        most_channels=4,
        checks="amt_stream.offline.selftest.partial",
        pane="amt_monitor.panes.model_panes:PartialPane",
    ),
    Entry(
        name="stipa",
        title="Speech transmission",
        method="speech transmission index of the STIPA test signal: IEC 60268-16, direct method",
        model="amt_stream.dsp.models:Stipa",
        readings="amt_stream.meters.rows.models.stipa:StipaReadings",
        row_step_ms=100,
        checks="amt_stream.offline.selftest.stipa",
        pane="amt_monitor.panes.bands_pane:StipaPane",
    ),
    _modulations("king2019", "King 2019", "King, Varnet & Lorenzi (2019)"),
    _modulations("dau1997", "Dau 1997", "Dau, Kollmeier & Kohlrausch (1997)"),
)

_added: dict[str, Entry] = {}


def entries() -> dict[str, Entry]:
    """All models by name: those of this package first, then those of others.

    Raises CatalogError if another package offers something other than an entry, or a name twice.
    """
    return {**_installed(), **_added}


def entry(name: str) -> Entry:
    """The model with this name. Raises CatalogError if there is none."""
    found = entries()
    if name not in found:
        near = difflib.get_close_matches(name, found, 1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(found)}"
        raise CatalogError(f"there is no model {name!r}: {remedy}")
    return found[name]


def entry_of(model: object) -> Entry | None:
    """The entry of a model's class, or None if the catalog has none."""
    if (compiled := getattr(model, "catalog_name", None)) is not None:
        return entry(compiled)
    for found in entries().values():
        # The name first, so that a broken model of another package does no harm.
        name = type(model).__name__
        if found.model.endswith(f":{name}") and type(model) is found.load("model"):
            return found
    return None


def add(new: Entry) -> None:
    """Add a model to the catalog of this process. Raises CatalogError if its name is taken."""
    _refuse_second(new, entries())
    _added[new.name] = new


def names(wanted: Callable[[Entry], bool] = lambda _: True) -> tuple[str, ...]:
    """Names of the models for which `wanted` is true."""
    return tuple(name for name, one in entries().items() if wanted(one))


def models_side_by_side() -> tuple[str, ...]:
    """Names of the models that can run beside others."""
    return names(lambda one: not one.alone)


def any_in_pascal(chosen: Iterable[str]) -> bool:
    """Whether one of these models takes pascal and so needs a calibration."""
    return any(entry(name).input_unit == "pascal" for name in chosen)


def is_in_pascal(name: str) -> bool:
    """Whether a model takes pascal; one outside the catalog does."""
    known = entries().get(name)
    return known is None or known.input_unit == "pascal"


@cache
def _installed() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for shipped in SHIPPED:
        _refuse_second(shipped, found)
        found[shipped.name] = shipped
    for point in entry_points(group=GROUP):
        package = point.dist.name if point.dist is not None else point.module
        try:
            offered = point.load()
        except Exception as error:
            raise CatalogError(
                f"the package {package} offers the model {point.name!r}, which cannot be loaded "
                f"({type(error).__name__}: {error}): repair or uninstall it"
            ) from error
        if not isinstance(offered, Entry):
            raise CatalogError(
                f"the package {package} offers the model {point.name!r} as {offered!r}: it must be "
                "an amt_stream.meters.catalog.Entry"
            )
        _refuse_second(offered, found)
        found[offered.name] = offered
    return found


def _refuse_second(new: Entry, known: Mapping[str, Entry]) -> None:
    if new.name in known:
        raise CatalogError(
            f"there is a model {new.name!r} already, {known[new.name].title}: choose another name"
        )
