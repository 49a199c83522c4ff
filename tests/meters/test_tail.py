"""The end of a sound: what the models still say of it counts, and no time that was not there."""

import json
import math

import numpy as np
import pytest
import soundfile

from amt_stream import Calibration, measure
from tests.data.synth_ebu import SIGNALS

FS = 48000
PLENTY_S = {"bs1770": 3.5}  # which has a window of 3 s
ALL = ("moore2016", "gm2002", "zwicker", "bs1770", "spl", "third_octave", "spectrum")
LENGTHS_S = (0.01, 0.1037, 1.003)
MORE = {"zwicker": ["zwicker_n_sone", "sharpness_acum", "sharpness_max_acum"]}


def burst(seconds, at_s, hz=1000.0, lasts_s=0.01):
    """A tone of 10 ms in silence, as an array."""
    x = np.zeros(round(seconds * FS), np.float32)
    start, count = round(at_s * FS), round(lasts_s * FS)
    x[start : start + count] = (
        0.3 * np.sin(2 * np.pi * hz * np.arange(count) / FS)[: len(x) - start]
    )
    return x


def maxima(summary):
    """What a summary tells of the highest and of the energy, by name."""
    parts = "max", "peak_db", "peak_dbtp", "peak_dbfs", "lae_db", "event_"
    return {
        name: value
        for name, value in summary.items()
        if any(part in name for part in parts) and not name.startswith("t_")
    }


def read(x, model, **more):
    """The summary of a sound that counts from its first moment on, with its slow mean."""
    given = {"from_s": 0.0, "columns": MORE.get(model), **more}
    if model == "bs1770":
        return measure(x, FS, model, calibration=110.0, **given)
    pascal = x * Calibration(110.0).pascal_per_unit
    return measure(pascal, FS, model, calibration="pascal", **given)


@pytest.mark.cases(3)
@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("seconds", LENGTHS_S)
def test_a_short_sound_anywhere_has_the_maxima_that_it_has_with_silence_after_it(model, seconds):
    for at_s in {0.0, (seconds - 0.01) / 2, seconds - 0.01}:
        x = burst(seconds, at_s)
        alone = maxima(read(x, model).summary)
        silence = np.zeros(round(PLENTY_S.get(model, 1.5) * FS))
        followed = maxima(read(np.append(x, silence), model).summary)
        assert alone
        assert alone.keys() == followed.keys()
        for name, value in alone.items():
            lasted_s = {"max_momentary_lufs": 0.4, "max_short_term_lufs": 3.0}.get(name, 0.0)
            if seconds < lasted_s:
                assert value is None, name
            else:
                assert value == pytest.approx(followed[name], rel=1e-6, abs=1e-4), (name, at_s)


CLICK = {"zwicker": ("zwicker_nmax_sone", 5.0), "moore2016": ("max_ltl_sone", 0.9)}


@pytest.mark.parametrize("model", CLICK)
def test_a_click_just_before_the_end_reads_the_same_in_every_command(tmp_path, forks, model):
    """100 samples before the end of a second: in a call, in both commands, in the last row."""
    x = np.zeros(FS, np.float32)
    x[-100] = 0.9
    soundfile.write(tmp_path / "click.wav", x, FS, "FLOAT")
    name, least = CLICK[model]
    summary = measure(x, FS, model, calibration=110.0).summary
    assert summary[name] > least
    chosen = ["--model", model, "--full-scale-db", "110", "--step-ms", "10"]
    chosen += ["--format", "jsonl", "--columns", name]
    commands = (
        ("analyze", str(tmp_path / "click.wav")),
        (
            *("meter", "--source", str(tmp_path / "click.wav")),
            "--fast",
        ),
    )
    for command in commands:
        done = forks.run(*command, *chosen)
        assert done.returncode == 0, done.stderr
        *_, row, last = [json.loads(line) for line in done.stdout.splitlines()]
        assert last["summary"][name] == summary[name], command
        assert row["time_s"] == 1.0
        assert row[name] == pytest.approx(summary[name], rel=1e-6)


@pytest.mark.parametrize("count", [1, 3, 100, 479, 481])
def test_a_sound_of_a_few_samples_has_values(count):
    # From its crest on, that of a single sample.
    x = 0.25 * np.cos(2 * np.pi * 6000 * np.arange(count) / FS)
    nothing = {"integrated_lufs", "lra_lu", "max_momentary_lufs", "max_short_term_lufs"}
    for model in ALL:
        m = measure(x, FS, model, calibration=110.0)
        told = {k: v for k, v in m.summary.items() if not isinstance(v, (dict, list, str))}
        windows = {name for name in told if name.startswith(("laeq_1s", "laft"))}
        absent = {name for name, value in told.items() if value is None} - windows
        # A spectrum that only falls, as that of three samples, has no line that stands out.
        may_be = {"bs1770": nothing, "spectrum": {"spectrum_max_hz", "spectrum_max_db"}}
        assert absent <= may_be.get(model, set()), (model, absent)
    told = measure(x, FS, "spl,bs1770", calibration=110.0).summary
    by_time_db = told["lae_db"] - 10 * math.log10(count / FS)
    assert told["laeq_db"] == pytest.approx(by_time_db, abs=1e-4)
    assert told["sample_peak_dbfs"] == pytest.approx(20 * math.log10(0.25), abs=1e-4)


@pytest.mark.parametrize("hz", [50, 997])
def test_the_cut_through_a_steady_tone_is_no_click(hz):
    """As loud as the tone: at the crest, where the step is highest; unless silence follows it."""
    t = np.arange(round(1.5 * FS) + FS // hz // 4) / FS
    x = 0.1 * np.sin(2 * np.pi * hz * t)
    models = "moore2016,zwicker,spl"
    told = read(x, models).summary
    longer = read(np.append(x, np.zeros(FS)), models).summary
    rows = measure(x, FS, models, calibration=110.0, step_ms=1)
    for name, column in (
        ("max_stl_sone", "stl_sone"),
        ("zwicker_nmax_sone", "zwicker_n_sone"),
        ("lafmax_db", "laf_db"),
    ):
        assert told[name] == pytest.approx(np.nanmax(rows[column]), rel=0.01), name
    assert longer["zwicker_nmax_sone"] > 1.05 * told["zwicker_nmax_sone"]


@pytest.mark.parametrize("hz", [31.5, 50, 997, 8000])
@pytest.mark.parametrize("part", [0.1, 0.4, 0.6])
def test_the_cut_through_a_steady_tone_is_no_peak(hz, part):
    """Anywhere in its period: the bend of a mirrored tone reads up to 14 dB too high."""
    t = np.arange(round(1.5 * FS + part * FS / hz)) / FS
    x = 0.1 * np.minimum(1, t / 0.5) * np.sin(2 * np.pi * hz * t)
    peaks = ["lapeak_db", "lcpeak_db", "lzpeak_db"]
    told = measure(x, FS, "spl", calibration=110.0, step_ms=100, columns=peaks)
    for name in peaks:
        assert told.summary[name] == pytest.approx(told[name][14], abs=0.2), name


TRUE_PEAKS = [(4, 0.5, 0.0), (4, 0.5, 45.0), (6, 0.5, 60.0), (8, 0.5, 67.5), (4, 1.41, 45.0)]


@pytest.mark.cases(3)
@pytest.mark.parametrize("fs", [44100, 48000, 96000, 192000])
@pytest.mark.parametrize(("period", "peak", "phase_deg"), TRUE_PEAKS)
def test_a_true_peak_is_of_the_sound_wherever_it_begins_and_ends(fs, period, peak, phase_deg):
    """EBU Tech 3341, cases 15 to 19, without their fades: as near as with them."""
    for count in (round(0.1 * fs) + 1, round(0.1 * fs) + 3, round(0.6 * fs) + 2):
        for first in (0, 1, 3):
            turns = (first + np.arange(count)) / period
            x = peak * np.sin(2 * np.pi * turns + np.radians(phase_deg))
            told = measure(x, fs, "bs1770").summary["true_peak_dbtp"]
            assert -0.4 <= told - 20 * math.log10(peak) <= 0.2, (count, first)


@pytest.mark.cases(2)
@pytest.mark.parametrize("fs", [44100, 48000, 96000])
@pytest.mark.parametrize("case", [20, 21, 22, 23])
def test_a_true_peak_in_the_middle_is_that_of_a_sound_cut_around_it(fs, case):
    """EBU Tech 3341: 0 dBTP, +0.2 and -0.4 dB."""
    x = SIGNALS[f"3341-{case}"].render(fs).T
    loud = np.flatnonzero(np.abs(x).max(1) > 0.4)
    for begin, end in ((2, -3), (5, -6)):
        told = measure(x[loud[0] + begin : loud[-1] + end], fs, "bs1770").summary
        assert -0.4 <= told["true_peak_dbtp"] <= 0.2, (begin, end)


@pytest.mark.parametrize("hz", [50, 997, 8000])
@pytest.mark.parametrize("end", [-1, -2, -100])
def test_the_edge_where_a_short_sound_ends_is_no_peak(hz, end):
    """Neither of a tone of a tenth of a second at its crest, which is not steady long enough, nor
    of one that has decayed by 12 dB since the last half second began."""
    for seconds, decay_db in ((0.1, 0), (1.1, 24)):
        crest = round(seconds * hz) / hz + 0.25 / hz
        t = np.arange(round(crest * FS) + end + 1) / FS
        x = 0.1 * 10 ** (-decay_db * t / 20) * np.sin(2 * np.pi * hz * t)
        told = measure(x, FS, "spl,bs1770", calibration=110.0).summary
        fade = np.minimum(1, (t[-1] - t) / 0.01)
        faded = measure(x * fade, FS, "spl,bs1770", calibration=110.0).summary
        for name in ("lapeak_db", "lcpeak_db", "lzpeak_db", "true_peak_dbtp"):
            assert told[name] == pytest.approx(faded[name], abs=0.2), (name, seconds)


def test_no_time_is_counted_that_was_not_there():
    """Equivalent levels, what is exceeded, the least: of the sound and not of the silence fed."""
    t = np.arange(round(2.0037 * FS)) / FS
    x = 0.1 * np.sin(2 * np.pi * 1000 * t)
    steady_db = 110 + 20 * math.log10(0.1)
    told = measure(x, FS, "spl,third_octave,bs1770", calibration=110.0).summary
    for name in ("laeq_db", "lzeq_db", "lzeq_1000hz_db"):
        assert told[name] == pytest.approx(steady_db, abs=0.01), name
    for name in ("l99_db", "l50_db", "lafmin_db"):
        assert told[name] == pytest.approx(steady_db, abs=0.06), name
    for name in ("spl", "third_octave", "bs1770"):
        one = told["statistics"][name]
        assert one["measured_s"] + one["excluded_s"] == pytest.approx(len(x) / FS, rel=1e-6), name
    whole = measure(x[: 2 * FS], FS, "bs1770").summary["integrated_lufs"]
    assert told["integrated_lufs"] == pytest.approx(whole, abs=1e-9)


def test_a_peak_in_the_last_samples_passes_no_limit(tmp_path, forks):
    """-3 dBFS in 7 ms before the end: of a file, by rows that are far apart, and through a pipe."""
    x = np.full(round(1.2345 * FS), 1e-3, np.float32)
    x[-340:-330:2], x[-339:-330:2] = 10**-0.15, -(10**-0.15)
    soundfile.write(tmp_path / "peak.wav", x, FS, "FLOAT")
    asked = ["--model", "bs1770", "--limit", "true_peak_dbtp>-6", "--fail-above"]
    asked += ["--format", "jsonl"]
    for step_ms in ("10", "100"):
        done = forks.run("analyze", tmp_path / "peak.wav", *asked, "--step-ms", step_ms)
        assert done.returncode == 4, done.stderr
        *_, row, _ = [json.loads(line) for line in done.stdout.splitlines()]
        assert row["true_peak_dbtp"] > -3.1
    done = forks.run(
        *("meter", "--source", "-", "--pcm", "f32le", "-r", FS, "-c", 1),
        *asked,
        stdin=x.astype("<f4").tobytes(),
    )
    assert done.returncode == 4, done.stderr


@pytest.mark.parametrize("level", ["laf", "lcs", "lai"])
def test_a_minimum_does_not_jump_where_the_sound_fills_its_first_frame(level):
    noise = np.random.default_rng(4).standard_normal(480) * 0.05
    minima = [
        measure(noise[:count], FS, "spl", calibration=100.0).summary[f"{level}min_db"]
        for count in (479, 480)
    ]
    assert minima[0] == pytest.approx(minima[1], abs=0.1)


@pytest.mark.parametrize("seconds", [0.197, 0.904, 1.0063])
def test_an_impulse_in_the_last_partial_frame_counts_in_its_mean(seconds):
    x = burst(seconds, seconds - 0.003, lasts_s=0.003)
    told = [
        measure(y, FS, "spl", calibration=100.0, columns=["laieq_db"]).summary["laieq_db"]
        for y in (x, np.append(x, np.zeros(96)))
    ]
    assert told[0] == pytest.approx(told[1], abs=3.0)
