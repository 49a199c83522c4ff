"""What other programs read of the sounds of the self-test and of recordings, beside ours.

    python tools/others.py [MODEL ...]

Writes docs/others.json, for what is installed of the extra `peers`; and docs/recordings.json, where
AMT_XL2 and AMT_ISO532_1 name folders (tools/recordings.py). `make conformance` draws them.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "apps")]

from tools import recordings  # noqa: E402 - found by the line above

OTHERS = ROOT / "docs" / "others.json"
RECORDINGS = ROOT / "docs" / "recordings.json"

Sound = NDArray[np.float64]
Program = Callable[[Sound, int, str], dict[str, float]]
"""The readings of a sound (channel, time) that a program gives, by rate and field."""


def mosqito_zwicker(x: Sound, fs: int, field: str) -> dict[str, float]:
    from mosqito.sq_metrics import loudness_zwtv

    return {"Nmax": np.max(loudness_zwtv(x[0], fs, field_type=field)[0])}


def phonometry_zwicker(x: Sound, fs: int, field: str) -> dict[str, float]:
    import phonometry

    return {"Nmax": np.max(phonometry.loudness_zwicker(x[0], fs, field=field).loudness_vs_time)}


def phonometry_moore(x: Sound, fs: int, field: str) -> dict[str, float]:
    import phonometry

    y = phonometry.loudness_moore_glasberg_time(x.T, fs, field=field)
    short, long = np.max(y.short_term_loudness), np.max(y.long_term_loudness)
    return {"max short-term": short, "max long-term": long}


def torch_amt_moore(x: Sound, fs: int, field: str) -> dict[str, float]:
    """At the rate that torch_amt asks for, by scipy's resampling; it knows the free field only."""
    if field != "free":
        return {}
    import torch
    from scipy.signal import resample_poly
    from torch_amt import Moore2016

    sound = torch.from_numpy(resample_poly(x, 32000, fs, axis=-1))[None].float()
    with torch.no_grad():
        short, long, _ = Moore2016(fs=32000)(sound)
    return {"max short-term": float(short.max()), "max long-term": float(long.max())}


def pyloudnorm_programme(x: Sound, fs: int, field: str) -> dict[str, float]:
    import pyloudnorm

    return {"integrated": pyloudnorm.Meter(fs).integrated_loudness(x.T)}


def phonometry_programme(x: Sound, fs: int, field: str) -> dict[str, float]:
    import phonometry

    return {"integrated": phonometry.integrated_loudness(x, fs)}


PROGRAMS: dict[str, dict[str, Program]] = {  # model of ours: programs with the same method
    "moore2016": {"phonometry": phonometry_moore, "torch_amt": torch_amt_moore},
    "zwicker": {"mosqito": mosqito_zwicker, "phonometry": phonometry_zwicker},
    "bs1770": {"pyloudnorm": pyloudnorm_programme, "phonometry": phonometry_programme},
}

LONGEST_S = {"moore2016": 1.0}
"""Seconds of the longest sound, where other programs need ten times that and more."""


LAYOUTS = ("mono", "stereo", "5.0")
"""Layouts that the other programs know, by the number of channels."""


def lines(models: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A line for each reading that another program can give too, in the default form of a model."""
    from amt_stream.offline import selftest

    for trial in selftest.trials(models):
        plain = set(trial.options) <= {"fs", "field", "layout", "ear_filter"}
        plain &= trial.options.get("layout", "mono") in LAYOUTS
        if not (plain and hasattr(trial.sound, "samples")):
            continue
        fs, field = trial.options["fs"], trial.options.get("field", "free")
        x = trial.sound.samples(fs)
        if x.shape[1] > LONGEST_S.get(trial.model, np.inf) * fs:
            continue
        for name, program in PROGRAMS[trial.model].items():
            read = readings(name, program, x, fs, field)
            for one in trial.readings:
                if one.what in read:
                    yield {
                        "model": trial.model,
                        "sound": trial.words,
                        "reading": one.what,
                        "expected": one.expected,
                        "unit": one.unit,
                        "program": name,
                        "version": importlib.metadata.version(name),
                        "got": float(f"{read[one.what]:.6g}"),
                    }


def readings(name: str, program: Program, x: Sound, fs: int, field: str) -> dict[str, float]:
    """What a program reads; nothing where it is not installed or refuses such a sound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of another project
        try:
            return program(x, fs, field)
        except ImportError:
            return {}
        except (ValueError, IndexError, RuntimeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return {}


def our_zwicker(x: Sound, fs: int, field: str) -> dict[str, float]:
    from amt_stream import measure

    summary = measure(x[0], fs, "zwicker", calibration="pascal", field=field).summary
    return {"Nmax": summary["zwicker_nmax_sone"]}


def compared_recordings() -> dict[str, list[dict[str, Any]]]:
    """The comparisons whose recordings are at hand; those kept, of the others."""
    found = json.loads(RECORDINGS.read_text(encoding="utf-8")) if RECORDINGS.exists() else {}
    if folder := os.environ.get("AMT_XL2"):
        found["meter"] = [*recordings.meter_lines(Path(folder))]
    if folder := os.environ.get("AMT_ISO532_1"):
        programs: dict[str, Program] = {"ours": our_zwicker, **PROGRAMS["zwicker"]}
        there = {n: p for n, p in programs.items() if n == "ours" or importlib.util.find_spec(n)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["iso532_1"] = [*recordings.iso_lines(Path(folder), there)]
    return found


def text_of(kept: dict[str, list[dict[str, Any]]]) -> str:
    parts = (
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(one) for one in rows) + "\n]"
        for name, rows in kept.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(models: Sequence[str]) -> int:
    models = models or [*PROGRAMS]
    new = [*lines(models)]
    if not new:
        sys.exit("no other program is installed: pip install '.[peers]' first")
    kept = json.loads(OTHERS.read_text(encoding="utf-8"))["readings"] if OTHERS.exists() else []
    found = [one for one in kept if one["model"] not in models] + new
    OTHERS.write_text(text_of({"readings": found}), encoding="utf-8")
    RECORDINGS.write_text(text_of(compared_recordings()), encoding="utf-8")
    print(OTHERS, RECORDINGS, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
