"""Stages and functions on random shapes, in a process of its own: a crash ends no test run.

`python -m tests.dsp.contract.random_shapes COUNT SEED TRACE [NAME ...]` tries COUNT shapes for each
name; it writes each trial to the file TRACE before it begins, prints what is wrong, and ends with
the number of trials and how many were taken. The compiled form, the plain one and the one that
learns, which may be compiled too, have to refuse the same, and give the same finite numbers where
they do not.
"""

import faulthandler
import random
import sys
import warnings
from functools import cache, partial
from math import prod
from pathlib import Path

import torch

from amt_stream import Stream
from amt_stream.dsp.functional import (
    adaptation,
    banded,
    cell_sums,
    daniel_weber,
    excitation,
    gammatone,
    group_skirts,
    loudness,
    modulation,
    peak,
    programme,
    relaxation,
    sound_level,
    spectrum,
    third_octave,
    zwicker,
    zwicker_decay,
)
from amt_stream.dsp.functional.ecma418 import envelopes as ecma418_envelopes
from amt_stream.dsp.functional.ecma418 import fluctuation, parts, roughness, tones
from amt_stream.dsp.functional.filters import direct_form as direct
from amt_stream.dsp.functional.filters import fir, first_order
from amt_stream.dsp.functional.filters import svf as state_variable
from amt_stream.dsp.functional.rating import levels as rating_levels
from amt_stream.dsp.functional.rating import onsets
from amt_stream.dsp.functional.rating import tones as audible_tones
from amt_stream.dsp.stages import (
    BS1770,
    AdaptLoop,
    BinauralLoudness,
    CoreLoudness,
    DanielWeberRoughness,
    ECMAEnvelopes,
    ECMAFilterbank,
    ECMASpecificFluctuation,
    ECMASpecificRoughness,
    ECMATonalNoise,
    Excitation,
    GammatoneFilterbank,
    ImpulseOnsets,
    King2019ModulationFilterbank,
    ModulationFilterbank,
    Resample,
    RunningSpectrum,
    SoundLevel,
    StipaCells,
    ThirdOctaveLevels,
    ThirdOctaves,
    ToneSpectrum,
    ZwickerLoudness,
)
from amt_stream.dsp.stages.moore.loudness import MonauralLoudness
from amt_stream.dsp.stages.spectrum import HALVES
from amt_stream.dsp.streaming import without
from tests.dsp.contract.test_module_contract import CASES
from tests.dsp.kernels.forms import plainly

HUGE = 3_000_000
MOST = 20_000
"""Values of an input at most, the huge ones apart: plain forms take their time."""

HELD = 2**27
"""Values of a tensor at most that a function may bring into memory before it refuses it."""

CLOSE = 1e-7
"""Largest difference of the forms, of the peak: poles next to 1 make much of rounding."""

STEPPED = ("Moore2016ExcitationPattern",)
"""Stages that are called with something else than what they step through."""

TWO_EARS = ("BinauralInhibition", "Moore2016BinauralLoudness")


def noise(*shape):
    return torch.rand(shape, dtype=torch.float64)


def lead(rng):
    return rng.choice([(), (1,), (2,), (3, 2)])


@cache
def made(kind, *args, **options):
    """A stage in float64; design takes longer than a trial."""
    return kind(*args, **options).double()


def state_of(stage, x, key):
    return stage.initial_state(without(x.shape, stage.time_dim))[key]


def fir_case(rng):
    rows, n = lead(rng), rng.choice([1, 2, 5])
    return fir.fir, (noise(*rows, rng.choice([1, 7])), noise(n), noise(*rows, n - 1))


def partitioned_fir_case(rng):
    rows, count, hop = lead(rng), rng.choice([1, 3]), rng.choice([16, 32])
    x, zi = noise(*rows, 2 * hop), noise(*rows, (count - 1) * 2 * hop)
    tables = noise(count, 2 * hop), noise(hop, 2 * hop), noise(2 * hop, hop)
    return fir.partitioned_fir, (x, *tables, zi)


def polyphase_case(rng):
    stage, rows = made(Resample, 48000, 32000), lead(rng)
    length = stage.length
    return fir.polyphase, (noise(*rows, 6), stage.bank, 3, length, noise(*rows, length - 1))


def first_order_case(rng):
    rows = lead(rng)
    g = noise(*rng.choice([(), rows[-1:]])) / 2
    return first_order.first_order, (noise(*rows, 9), g, noise(*rows, rng.choice([1, 3])))


def direct_form_case(rng):
    rows, sections, order = lead(rng), rng.choice([1, 2]), rng.choice([0, 1, 2, 4])
    a = 0.1 * noise(sections, order + 1)
    a[:, 0] = 1
    b, zi = noise(sections, order + 1), noise(*rows, sections, order)
    return direct.direct_form, (noise(*rows, 9), b, a, zi)


def svf_case(rng):
    rows, channels, sections = lead(rng), rng.choice([1, 2, 17]), rng.choice([1, 2])
    g, k = noise(channels, sections), 1 + noise(channels, sections)
    zi = noise(*rows, channels, sections, 2)
    return state_variable.svf, (
        noise(*rows, channels, 9),
        g,
        k,
        noise(channels, sections, 3),
        zi,
    )


def running_spectrum_case(rng):
    stage, rows = made(RunningSpectrum), lead(rng)
    x, zi = 1e-3 * noise(*rows, 64), 1e-3 * noise(*rows, 2016)
    return spectrum.running_spectrum, (x, stage.cosine, stage.sine, HALVES, stage.bins, 32, zi)


def peaks_case(rng):
    rows, taps = lead(rng), rng.choice([1, 12])
    lengths = rng.choice([(4,), (2, 3)])
    x, zi = noise(*rows, 4 * sum(lengths)), noise(*rows, taps + 1)
    zi[..., :2] = edges(rng)
    return peak.peaks, (x, noise(3, taps), lengths, zi)


def edges(rng):
    """Bounds of a sound (2,) that has begun, or ends."""
    return torch.tensor(
        [rng.choice([0.0, 5.0, 11.0]), rng.choice([0.0, 7.0, peak.ENDLESS])]
    ).double()


def programme_case(rng):
    rows, stage = lead(rng), made(BS1770)
    given = noise(*rows, 20), stage.sections, (4, 1), noise(*rows, 2, 2)
    return programme.filtered_mean_square, given


def relax_case(rng):
    rows = lead(rng)
    return relaxation.relax, (noise(*rows, 9), noise(*rows, 9), noise(*rows))


def gammatone_case(rng):
    rows = lead(rng)
    stage = GammatoneFilterbank([200.0, 500.0, 900.0], 8000).double()
    system = gammatone.cascade_blocks(stage.coefficients, 2.0, 4)
    x = noise(*rows, rng.choice([1, 3]), rng.choice([9, 50]))
    zi = noise(*rows, 2, 4, 3)
    return gammatone.gammatone, (x, stage.coefficients, 2.0, zi, rng.choice([None, system]))


def gammatone_sum_case(rng):
    rows, stage = lead(rng), made(ECMAFilterbank)
    x = noise(*rows, rng.choice([1, 53]), 9)
    zi = noise(*rows, 2, 5, 53)
    return gammatone.gammatone_sum, (x, stage.poles, stage.weights, zi)


def tonal_and_noise_case(rng):
    stage, x = made(ECMATonalNoise), noise(53, 2048)
    tables = tones.TonalTables(*stage.registered(*tones.TonalTables._fields))
    state = tones.State(**stage.initial_state((53,)))
    return tones.tonal_and_noise, (x, tables, state)


def rough_windows_case(rng):
    rows, stage = lead(rng), made(DanielWeberRoughness)
    tables = stage.registered(*daniel_weber.TABLE_SHAPES)
    return daniel_weber.rough_windows, (noise(*rows, 4800 * rng.choice([2, 3])), *tables)


def envelopes_case(rng):
    rows, stage = lead(rng), made(ECMAEnvelopes)
    x, zi = noise(*rows, 32 * rng.choice([1, 3])), noise(*rows, 2, 5, 53)
    return ecma418_envelopes.envelopes, (x, stage.poles, stage.weights, zi)


def fluctuation_case(rng):
    stage, x = made(ECMASpecificFluctuation), noise(53, 30).square()
    names = fluctuation.FluctuationTables._fields
    tables = fluctuation.FluctuationTables(*stage.registered(*names))
    state = fluctuation.FluctuationState(**stage.initial_state((2, 53)))
    return fluctuation.fluctuation, (x, tables, state)


def roughness_case(rng):
    stage, x = made(ECMASpecificRoughness), noise(2, 53, 30).square()
    names = roughness.RoughnessTables._fields
    tables = roughness.RoughnessTables(*stage.registered(*names))
    state = roughness.RoughnessState(**stage.initial_state((2, 53)))
    return roughness.roughness, (x, tables, state)


def adaptation_case(rng):
    rows = lead(rng)
    own = (
        {"minlvl_per_channel": 1e-3 * noise(rows[-1]) + 1e-5} if rows and rng.random() < 0.5 else {}
    )
    stage = AdaptLoop(8000, limit=rng.choice([0.0, 10.0]), per_channel_init=True, **own).double()
    x = noise(*rows, 5)
    return adaptation.adaptation_loops, (x, stage._loops(), state_of(stage, x, "loops"))


def select_case(rng):
    return excitation.select_components, (noise(*lead(rng), 2, 3, 50) * 1e4,)


def banded_case(rng):
    stage = made(Excitation)
    return banded.banded, (noise(*lead(rng), 960), stage.levels, stage.levels_blocks, 251)


def lower_skirts_case(rng):
    stage = made(Excitation, "reference")
    x = noise(*lead(rng), 960) * 1e4
    return excitation.lower_skirts, (x, 10 * x.log10(), stage.filters())


def group_skirts_case(rng):
    groups, rows = made(Excitation, rng.choice(["exact", "coarse"])).groups(), lead(rng)
    density = noise(*rows, groups.middle.shape[0]) * 1e5
    return group_skirts.group_skirts, (noise(*rows, 960) * 1e4, density, groups)


def specific_loudness_case(rng):
    channels = made(BinauralLoudness).tables()
    return loudness.specific_loudness, (noise(*lead(rng), 150) * 1e4, channels)


def agc_case(rng):
    rows = lead(rng)
    return loudness.agc, (noise(*rows, 4, 3), noise(2), noise(*rows, 3))


def inhibition_case(rng):
    return loudness.inhibition_gains, (noise(*lead(rng), 2, 3, 5) + 0.1, noise())


def binaural_case(rng):
    stage, rows = made(BinauralLoudness), lead(rng)
    before = torch.zeros(rows, dtype=torch.int64) + 1
    return loudness.binaural_loudness, (
        noise(*rows, 2, 3, 150) * 1e4,
        stage.tables(),
        stage.smoothing,
        stage.theta,
        0.25,
        stage.short_term,
        stage.long_term,
        before,
        (noise(*rows, 2, 150), noise(*rows, 2)),
    )


def monaural_case(rng):
    stage, rows = made(MonauralLoudness), lead(rng)
    return loudness.monaural_loudness, (
        noise(*rows, rng.choice([1, 2]), 3, 150) * 1e4,
        loudness.Channels(*stage.registered(*loudness.Channels._fields)),
        0.25,
        stage.short_term,
        stage.long_term,
        torch.zeros(rows, dtype=torch.int64) + 1,
        (noise(*rows, 2), noise(*rows, 2)),
    )


def bank_case(rng, stage, function):
    rows = lead(rng)
    x = noise(*rows, 2, 9)
    state = stage.initial_state(tuple(x.shape[:-1]))
    readout = (
        stage.readout()
        if hasattr(stage, "readout")
        else modulation.Readout(stage.scale, stage.envelope, stage.counts)
    )
    low = state.get("low", x.new_zeros(*x.shape[:-1], 0, 2))
    return function, (x, stage.low, stage.bands(), readout, (low, state["bands"]))


def one_pole_bank_case(rng):
    stage = ModulationFilterbank(
        8000, [100.0, 1000.0], use_upper_limit=rng.random() < 0.5, max_mfc=rng.choice([4.0, 150.0])
    )
    return bank_case(rng, stage.double(), modulation.one_pole_bank)


def band_pass_bank_case(rng):
    centers = [100.0, 1000.0]
    stage = rng.choice(
        [
            ModulationFilterbank(8000, centers, filter_type="butterworth"),
            King2019ModulationFilterbank(8000, nmod=3),
        ]
    )
    return bank_case(rng, stage.double(), modulation.band_pass_bank)


def sound_levels_case(rng):
    stage = made(SoundLevel, 8000)
    x = noise(*lead(rng), 20)
    zi = noise(*x.shape[:-1], sound_level.states(stage.phases))
    at = sound_level.LEFT_AT
    zi[..., at - 1 : at + 1] = edges(rng)
    given = x, (4, 1), stage.coefficients, stage.phases, zi
    return sound_level.sound_levels, given


def third_octave_case(rng):
    stage = ThirdOctaveLevels(rng.random() < 0.5).double()
    x = noise(*lead(rng), 48)
    smoothing = stage.smoothing if stage.smooth else None
    zi = state_of(stage, x, "filters")
    return zwicker.third_octave_powers, (x, stage.poles, stage.gain, smoothing, zi)


def third_octaves_case(rng):
    stage = made(ThirdOctaves, 8000, 1000.0)
    x = noise(*lead(rng), 20)
    zi = state_of(stage, x, "past")
    given = x, (4, 1), stage.poles, stage.gain, stage.smoothing, zi
    return third_octave.third_octaves, given


def core_loudness_case(rng):
    return zwicker.core_loudness, (60 * noise(*lead(rng), 28), made(CoreLoudness).tables())


def levels_case(rng):
    return zwicker.levels, (noise(*lead(rng), 28).square(), torch.float64)


def decayed_case(rng):
    stage, rows = made(ZwickerLoudness), lead(rng)
    begun = torch.zeros(rows, dtype=torch.bool)
    return zwicker_decay.decayed, (noise(*rows, 3, 20), stage.decay, noise(*rows, 3, 20), begun)


def pattern_case(rng):
    given = 5 * noise(*lead(rng), 20), made(ZwickerLoudness).tables(), rng.random() < 0.5
    return zwicker.loudness_pattern, given


def weighted_case(rng):
    stage, rows = made(ZwickerLoudness), lead(rng)
    begun = torch.zeros(rows, dtype=torch.bool)
    return zwicker.weighted, (noise(*rows, 3), stage.weighting, noise(*rows, 2), begun)


def a_weighted_powers_case(rng):
    x = noise(*lead(rng), 3, 20)
    zi = noise(*x.shape[:-2], 7)
    return rating_levels.a_weighted_powers, (x, made(ImpulseOnsets, 8000).coefficients, zi)


def impulse_onsets_case(rng):
    level = 50 * noise(*lead(rng), 9)
    zi = torch.zeros(*level.shape[:-1], 16, dtype=torch.float64)
    return onsets.impulse_onsets, (level, torch.tensor([0.02, 0.04]).double(), zi)


def tone_spectra_case(rng):
    stage, x = made(ToneSpectrum, 8000), noise(*lead(rng), 2, 800)
    state = audible_tones.SpectrumState(**stage.initial_state(tuple(x.shape[:-2])))
    tables = stage.registered("window", "weights", "windows")
    return audible_tones.tone_spectra, (x, *tables, state)


def tone_audibility_case(rng):
    lines = rng.choice([2, 40, 200])
    return audible_tones.tone_audibility, (
        noise(*lead(rng), 2, lines) ** 9,
        3 * torch.arange(lines).double(),
    )


def parts_case(rng, function, axes=(3, 2)):
    return function, (noise(*lead(rng), *axes, 53).square(),)


def cell_sums_case(rng):
    return cell_sums.cell_sums, (noise(*lead(rng), 3 * 75), made(StipaCells).waves6)


FUNCTIONS = {
    "a_weighted_powers": a_weighted_powers_case,
    "adaptation_loops": adaptation_case,
    "agc": agc_case,
    "band_pass_bank": band_pass_bank_case,
    "banded": banded_case,
    "binaural_loudness": binaural_case,
    "cell_sums": cell_sums_case,
    "core_loudness": core_loudness_case,
    "decayed": decayed_case,
    "direct_form": direct_form_case,
    "filtered_mean_square": programme_case,
    "fir": fir_case,
    "first_order": first_order_case,
    "gammatone": gammatone_case,
    "gammatone_sum": gammatone_sum_case,
    "impulse_onsets": impulse_onsets_case,
    "inhibition_gains": inhibition_case,
    "levels": levels_case,
    "loudness_pattern": pattern_case,
    "lower_skirts": lower_skirts_case,
    "group_skirts": group_skirts_case,
    "monaural_loudness": monaural_case,
    "one_pole_bank": one_pole_bank_case,
    "partitioned_fir": partitioned_fir_case,
    "peaks": peaks_case,
    "polyphase": polyphase_case,
    "relax": relax_case,
    "running_spectrum": running_spectrum_case,
    "select_components": select_case,
    "sound_levels": sound_levels_case,
    "specific_loudness": specific_loudness_case,
    "svf": svf_case,
    "third_octave_powers": third_octave_case,
    "third_octaves": third_octaves_case,
    "tonal_and_noise": tonal_and_noise_case,
    "tone_audibility": tone_audibility_case,
    "tone_spectra": tone_spectra_case,
    "envelopes": envelopes_case,
    "rough_windows": rough_windows_case,
    "loudness_of_parts": partial(parts_case, function=parts.loudness_of_parts),
    "tonality_of_parts": partial(parts_case, function=parts.tonality_of_parts),
    "roughness_of_parts": partial(parts_case, function=parts.roughness_of_parts, axes=(2, 2)),
    "total_of_bands": partial(parts_case, function=parts.total_of_bands, axes=(2,)),
    "roughness": roughness_case,
    "fluctuation": fluctuation_case,
    "weighted": weighted_case,
}
"""Every function with a compiled form, and what gives arguments that it takes."""


OF_ANY_LENGTH = {"first_order": 2, "gammatone": 2, "peaks": 1, "polyphase": 1, "sound_levels": 2}
OF_ANY_LENGTH |= {"group_skirts": 8}
"""Place of a tensor beside the signal that no other one limits: a huge one would be worked off."""

BY_PLACES = ("banded", "group_skirts", "lower_skirts")
"""Their tables say where what lies: where numbers may be on a device, nobody looks at that."""


def leaves(value):
    """The tensors in nested tuples and lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in leaves(part)] if isinstance(value, tuple | list) else []


def replaced(value, old, new):
    """`value` with `new` in the place of `old`."""
    if value is old:
        return new
    if isinstance(value, tuple):
        parts = [replaced(part, old, new) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def another_shape(rng, shape, kept=None):
    """`shape` with a change or two, or wholly another; kept: an axis (negative) that stays."""
    dims = list(shape)
    if rng.random() < 0.1:
        return tuple(rng.choice([0, 1, 2, 3, 5, 28, 150, 151]) for _ in range(rng.randrange(5)))
    for _ in range(rng.choice([1, 1, 1, 2])):
        axes = [i for i in range(len(dims)) if i - len(dims) != kept]
        kind = rng.choice(["more", "less", "thrice", "one", "none", "huge", "dropped", "added"])
        if kind == "added":
            dims.insert(rng.randrange(len(dims) + 1), rng.choice([1, 2, 3]))
        elif axes:
            i = rng.choice(axes)
            n = dims[i]
            if kind == "dropped":
                del dims[i]
            else:
                dims[i] = {"more": n + 1, "less": n - 1, "thrice": 3 * n, "one": 1, "none": 0}.get(
                    kind, HUGE
                )
    return tuple(max(0, n) for n in dims)


def small(shape):
    """Whether both forms can take `shape` in little time."""
    return prod(max(1, n) for n in shape) <= MOST


def resized(x, shape):
    """Values of `x` over and over in another shape; one for all where there is no memory."""
    flat, count = x.detach().reshape(-1), prod(shape)
    if not flat.numel():
        return x.new_zeros(()).expand(shape)
    if count > 10 * MOST:
        return flat[0].expand(shape)
    return flat.repeat(-(-count // flat.numel()))[:count].reshape(shape)


def outcome(call):
    """Outputs of `call`, or the exception."""
    try:
        return [t.detach() for t in leaves(call())]
    except Exception as refusal:
        return refusal


def wrong(compiled, plain, spoken, comparable):
    """What is wrong with the outcomes of two forms, or None.

    spoken: refusals have to be sentences; comparable: the numbers have to be the same
    """
    refused = [isinstance(given, Exception) for given in (compiled, plain)]
    for given in (compiled, plain):
        if (
            spoken
            and isinstance(given, Exception)
            and not (isinstance(given, ValueError | TypeError) and len(str(given)) > 20)
        ):
            return f"refused without a sentence: {given!r}"
    if refused[0] != refused[1]:
        return f"compiled: {told(compiled)}, other: {told(plain)}"
    if refused[0]:
        return None
    for a, b in zip(compiled, plain, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        if not a.isfinite().all() or not b.isfinite().all():
            return "not finite"
        if (
            comparable
            and a.numel()
            and (a.double() - b.double()).abs().max() > CLOSE * (b.double().abs().max() + 1e-300)
        ):
            return f"forms differ by {(a.double() - b.double()).abs().max():.2g}"
    return None


def told(given):
    return repr(given)[:200] if isinstance(given, Exception) else "taken"


def function_trials(name, count, rng):
    """Trials of a function: what is tried in words, both forms as calls, whether spoken."""
    for _ in range(count):
        function, args = FUNCTIONS[name](rng)
        tensors, comparable = leaves(args), True
        if rng.random() < 0.8:
            old = rng.choice(tensors)
            shape = another_shape(rng, old.shape)
            free = old is args[0] or old is tensors[OF_ANY_LENGTH.get(name, 0)]
            if prod(shape) > HELD or (free and not small(shape)):
                continue
            args = replaced(args, old, resized(old, shape))
            # Zeros that a kernel passes over are elsewhere in a table of another shape.
            comparable = not (name in ("banded", "polyphase") and old is tensors[1])
        shapes = [(tuple(t.shape), str(t.dtype)) for t in leaves(args)]
        learnt = partial(with_gradients, function, args)
        compiled = quiet(function, args)
        others = learnt, partial(plainly, compiled)
        if name in BY_PLACES:
            others = others[:1]
        yield f"{name} {shapes}", compiled, others, True, comparable


def quiet(function, args):
    def call():
        with torch.no_grad():
            return function(*args)

    return call


def with_gradients(function, args):
    """What `function` gives where gradients of all it takes are wanted, which are then found."""
    given = args
    for old in leaves(args):
        if old.is_floating_point():
            given = replaced(given, old, old.detach().requires_grad_())
    y = function(*given)
    ends = [v for v in leaves(y) if v.requires_grad]
    asked = [v for v in leaves(given) if v.requires_grad]
    found = torch.autograd.grad(ends, asked, [torch.ones_like(v) for v in ends], allow_unused=True)
    for v, slope in zip(asked, found, strict=True):
        assert slope is None or slope.shape == v.shape
    return y


def stage_trials(name, count, rng):
    """Trials of a stage, called in one of the ways in which it may be."""
    case = CASES[name]
    stage = case.make().double()
    valid = case.input(stage)
    for _ in range(count):
        kept = stage.time_dim if rng.random() < 0.7 else None
        shape = another_shape(rng, case.shape, kept)
        if not small(shape) and not refused_when_huge(stage, shape):
            continue
        if small(shape) and not held(stage, case, shape):
            continue
        x = resized(valid, shape)
        way = rng.choice(["called", "whole", "step", "stream"] if small(shape) else ["whole"])
        way = "whole" if way == "called" and name in STEPPED else way
        if way == "called":
            parts = (x,)
            if name in TWO_EARS:
                other = shape if rng.random() < 0.8 else another_shape(rng, shape)
                if not small(other):
                    continue
                parts = x, resized(valid, other)
            wanting = tuple(p.detach().requires_grad_() for p in parts)
            calls = [called(stage, parts), called(stage, wanting)]
        elif way == "whole":
            calls = [called(stage.whole, (x,)), called(stage.whole, (x.detach().requires_grad_(),))]
        elif way == "step":
            state = stage.initial_state(without(case.shape, stage.time_dim))
            calls = [called(stage.step, (v, state)) for v in (x, x.detach().requires_grad_())]
        else:
            calls = [streamed(stage, x, False), streamed(stage, x, True)]
        compiled = without_gradients(calls[0])
        others = partial(plainly, compiled), calls[1]
        yield f"{name} {way} {shape}", compiled, others, way != "step", True


def refused_when_huge(stage, shape):
    """Whether the stage looks at an axis that is too long, and does not begin to work."""
    return any(
        isinstance(sizes, int | tuple) and -axis <= len(shape) and shape[axis] >= HUGE
        for axis, sizes in stage.fixed_axes.items()
    )


def held(stage, case, shape):
    """Whether the state of so many values at a time fits in memory, in each of the forms."""
    lead = without(case.shape, stage.time_dim)
    values = sum(v.numel() for v in stage.initial_state(lead).values())
    rows = without(shape, stage.time_dim) if len(shape) >= -stage.time_dim else shape
    return values / prod(lead) * prod(rows) <= HELD / 8


def called(function, args):
    def call():
        if hasattr(function, "reset_state"):
            function.reset_state()
        y = function(*args)
        # Of a step, the state too.
        return [t for part in (y if isinstance(y, tuple) else (y,)) for t in parts_of(part)]

    return call


def parts_of(value):
    return leaves(tuple(value.values()) if isinstance(value, dict) else value)


def streamed(stage, x, gradient):
    def call():
        shape = without(x.shape, stage.time_dim) if x.dim() >= -stage.time_dim else ()
        live = Stream(stage, shape)
        return live(x.detach().requires_grad_(gradient))

    return call


def without_gradients(call):
    def quietly():
        with torch.no_grad():
            return call()

    return quietly


def main(count, seed, trace, *names):
    faulthandler.enable()
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    torch.manual_seed(int(seed))
    tried = taken = 0
    with Path(trace).open("w", encoding="utf-8") as log:
        for name in names or [*CASES, *FUNCTIONS]:
            rng = random.Random(f"{name}{seed}")
            trials = stage_trials if name in CASES else function_trials
            for words, compiled, others, spoken, comparable in trials(name, int(count), rng):
                log.write(words + "\n")
                log.flush()
                first = outcome(compiled)
                faults = [wrong(first, outcome(other), spoken, comparable) for other in others]
                tried += 1
                taken += not isinstance(first, Exception)
                for fault in filter(None, faults):
                    print(f"{words}: {fault}")
    print(f"{tried} trials, {taken} taken")


if __name__ == "__main__":
    main(*sys.argv[1:])
