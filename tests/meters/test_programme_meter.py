"""Gates, ranges and maxima against the same worked out from all blocks at once."""

import json
import pickle

import numpy as np
import pytest

from amt_stream.meters.accumulators import EBU_9, EBU_18, ProgrammeLoudness
from amt_stream.meters.accumulators.programme import COLUMNS


def lufs(energy):
    with np.errstate(divide="ignore"):
        return -0.691 + 10 * np.log10(energy)


def energy_of(level_lufs):
    return 10 ** ((np.asarray(level_lufs) + 0.691) / 10)


def wandering(seconds, seed, low=-75.0, high=-5.0):
    """Energies of a programme that holds levels from `low` to `high` LUFS for 0.2 to 6 s."""
    random = np.random.default_rng(seed)
    held = random.integers(20, 600, 2 + int(seconds))
    level = np.repeat(random.uniform(low, high, held.size), held)[: int(100 * seconds)]
    return energy_of(level) * random.uniform(0.8, 1.2, level.size)


def fed(meter, energies, size=100, **more):
    """Momentary and short-term loudness of all frames; peaks are the roots of energies."""
    levels = []
    for at in range(0, len(energies), size):
        part = slice(at, at + size)
        peaks = np.sqrt(np.stack([energies[part], energies[part] / 2]))
        valid = {key: value[part] for key, value in more.items()}
        levels.append(meter.update(energies[part], 1.1 * peaks, peaks, **valid))
    return [np.concatenate(v) for v in zip(*levels, strict=True)]


def windows(energies, measured, length):
    """Mean energies of all windows on the 100 ms grid that lie wholly in what is measured."""
    ends = [n for n in range(length, len(energies) + 1, 10) if measured[n - length : n].all()]
    return np.array([energies[n - length : n].mean() for n in ends])


def gated(blocks, below):
    kept = blocks[lufs(blocks) > -70]
    return kept[lufs(kept) > lufs(kept.mean()) - below] if kept.size else kept


def exact(energies, measured):
    """Integrated loudness and loudness range, gated and ranked one by one."""
    loud = gated(windows(energies, measured, 40), 10)
    levels = np.sort(lufs(gated(windows(energies, measured, 300), 20)))
    low, high = (int((levels.size - 1) * p + 0.5) for p in (0.10, 0.95))
    return lufs(loud.mean()), levels[high] - levels[low]


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(8, 20))]
)
def test_classes_against_exact_ranks(seed):
    energies = wandering(30 + 10 * seed, seed)
    meter = ProgrammeLoudness()
    fed(meter, energies)
    integrated, loudness_range = exact(energies, np.ones(len(energies), bool))
    assert meter.reading()["integrated_lufs"] == pytest.approx(integrated, abs=0.03)
    assert meter.reading()["lra_lu"] == pytest.approx(loudness_range, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_only_what_lies_wholly_within_the_measurement_counts(seed):
    """Pauses and a reset at any frame; maxima are those of the windows of every frame."""
    energies = wandering(90, seed)
    cuts = np.sort(np.random.default_rng(100 + seed).choice(np.arange(1, 8000), 7, replace=False))
    meter, measured = ProgrammeLoudness(), np.ones(len(energies), bool)
    for turn, part in enumerate(np.split(np.arange(len(energies)), cuts)):
        if turn == 2:
            meter.reset()
            measured[: part[0]] = False
        measured[part] = turn % 2 == 0
        (meter.unpause if turn % 2 == 0 else meter.pause)()
        fed(meter, energies[part], size=37)
    reading = meter.reading()
    integrated, loudness_range = exact(energies, measured)
    assert reading["integrated_lufs"] == pytest.approx(integrated, abs=0.03)
    assert reading["lra_lu"] == pytest.approx(loudness_range, abs=0.05)
    assert reading["measured_s"] == measured.sum() / 100
    for name, length in (("momentary", 40), ("short_term", 300)):
        means = [
            energies[n - length : n].mean()
            for n in range(length, len(energies) + 1)
            if measured[n - length : n].all()
        ]
        assert reading[f"max_{name}_lufs"] == pytest.approx(lufs(max(means)), abs=1e-9)
    peak_db = 10 * np.log10(energies[measured].max())
    assert reading["sample_peak_dbfs"] == pytest.approx(peak_db)


def test_momentary_and_short_term_run_on_through_a_pause_and_a_reset():
    energies = wandering(20, 0)
    plain, other = ProgrammeLoudness(), ProgrammeLoudness()
    expected, got = fed(plain, energies), []
    for n, part in enumerate(np.array_split(np.arange(len(energies)), 9)):
        {2: other.pause, 4: other.unpause, 5: other.reset, 7: other.pause}.get(n, lambda: None)()
        got.append(fed(other, energies[part]))
    for a, b in zip(zip(*got, strict=True), expected, strict=True):
        assert np.concatenate(a) == pytest.approx(b, abs=1e-12, nan_ok=True)


def test_the_first_block_after_a_reset():
    """It is the first on the grid of 100 ms that lies wholly after it; for the range, of 3 s."""
    meter = ProgrammeLoudness()
    fed(meter, energy_of(np.full(503, -20.0)))
    meter.reset()
    reading = meter.reading()
    assert reading["momentary_lufs"] == pytest.approx(-20, abs=1e-9)
    held = ("integrated_lufs", "lra_lu", "max_momentary_lufs", "true_peak_dbtp", "measured_s")
    assert [reading[name] for name in held] == [None, None, None, None, 0]
    for frames, expected in ((46, None), (1, -30)):  # 549 and 550: [510, 550) is the first
        fed(meter, energy_of(np.full(frames, -30.0)))
        got = meter.reading()["integrated_lufs"]
        assert got == (expected if expected is None else pytest.approx(expected, abs=1e-9))
    fed(meter, energy_of(np.full(260 + 9, -30.0)))
    assert meter.reading()["lra_lu"] is None
    fed(meter, energy_of(np.full(1, -30.0)))  # 820: the second of [510, 810) and [520, 820)
    assert meter.reading()["lra_lu"] == 0


def test_frames_that_are_not_valid_are_in_no_reading():
    energies, valid = energy_of(np.full(1000, -23.0)), np.ones(1000, bool)
    energies[400:410], valid[400:410] = 1e6, False
    meter = ProgrammeLoudness()
    momentary, short_term = fed(meter, energies, size=7, valid=valid)
    assert np.flatnonzero(np.isnan(momentary)).tolist() == [*range(39), *range(400, 449)]
    assert np.flatnonzero(np.isnan(short_term)).tolist() == [*range(299), *range(400, 709)]
    reading = meter.reading()
    assert reading["excluded_s"] == 0.1
    for name in ("integrated_lufs", "max_momentary_lufs", "max_short_term_lufs"):
        assert reading[name] == pytest.approx(-23, abs=1e-9)
    assert reading["sample_peak_dbfs"] == pytest.approx(-23 + 0.691, abs=1e-6)


@pytest.mark.parametrize("size", [1, 7, 300, 441, 8193])
def test_readings_do_not_depend_on_blocks(size):
    energies = wandering(12 if size == 1 else 60, 3)
    whole, cut = ProgrammeLoudness(), ProgrammeLoudness()
    for a, b in zip(fed(cut, energies, size), fed(whole, energies, 6000), strict=True):
        assert a == pytest.approx(b, abs=1e-9, nan_ok=True)
    assert cut.reading() == pytest.approx(whole.reading(), abs=1e-9)


@pytest.mark.parametrize("size", [1, 7, 441, 4000])
def test_columns(size):
    """After each frame what `reading` says there; integrated loudness and its range each 0.1 s."""
    count = 1300 if size == 1 else 4000
    energies, valid = wandering(count // 100, 5), np.ones(count, bool)
    valid[1000:1020] = False
    plain = ProgrammeLoudness()
    meter, found = ProgrammeLoudness(columns=COLUMNS), []
    for at in range(0, count, size):
        part = slice(at, at + size)
        peaks = np.sqrt(np.stack([energies[part], energies[part] / 2]))
        found.append(meter.update(energies[part], 1.1 * peaks, peaks, valid[part]))
    told = dict(zip(COLUMNS, np.concatenate(found, 1), strict=True))
    begun = 0
    for end in range(10, count + 1, 190):
        fed(plain, energies[begun:end], valid=valid[begun:end])
        begun = end
        for name, value in plain.reading().items():
            if name in COLUMNS:
                shown = [float(told[name][k]) for k in (end - 1, end + 8) if k < count]
                shown = shown if name in ("integrated_lufs", "lra_lu") else shown[:1]
                for got in shown:
                    expected = pytest.approx(value, abs=1e-9)
                    assert expected == got if value is not None else not np.isfinite(got), name


def test_silence_and_nothing_yet():
    meter = ProgrammeLoudness()
    nothing = meter.reading()
    assert {v for v in nothing.values() if v is not None} == {0}
    assert meter.update(np.zeros(0), np.zeros((2, 0)), np.zeros((2, 0)))[0].shape == (0,)
    momentary, short_term = fed(meter, np.zeros(1000))
    assert np.isneginf(momentary[39:]).all()
    assert np.isneginf(short_term[299:]).all()
    assert meter.reading() == {**nothing, "measured_s": 10}
    fed(meter, energy_of(np.full(1000, -70.1)))
    assert meter.reading()["integrated_lufs"] is None
    json.dumps(meter.reading(), allow_nan=False)


def test_sound_beyond_full_scale():
    """Of a file in pascal, or with a hydrophone: gates and ranges as below full scale."""
    random = np.random.default_rng(0)
    level = np.repeat(random.uniform(-60, -20, 60), 100)
    readings = []
    for more in (0.0, 55.5, 200.0):
        meter, other = ProgrammeLoudness(), ProgrammeLoudness()
        fed(meter, energy_of(level + more))
        other.load_state_dict(meter.state_dict())
        assert other.reading() == meter.reading()
        readings.append(meter.reading())
    for name in ("integrated_lufs", "max_momentary_lufs"):
        levels = [reading[name] for reading in readings]
        assert np.diff(levels) == pytest.approx([55.5, 144.5], abs=0.03), name
    assert readings[1]["lra_lu"] == pytest.approx(readings[2]["lra_lu"], abs=0.03)


def test_memory_does_not_grow():
    meter = ProgrammeLoudness()
    sizes = []
    for seed in range(3):
        fed(meter, wandering(600, seed), size=1000)
        meter.reading()
        sizes.append(len(pickle.dumps(meter)))
    assert max(sizes) - min(sizes) < 100
    assert sizes[0] < 300_000


def test_scales():
    """EBU Tech 3341: 0 LU is -23 LUFS, the scales end at +9 and +18 LU."""
    meter = ProgrammeLoudness()
    assert meter.relative(-20.0) == 3
    assert ProgrammeLoudness(target_lufs=-14).relative(-20.0) == -6
    assert [(s.low, s.high) for s in (EBU_9, EBU_18)] == [(-18, 9), (-36, 18)]
