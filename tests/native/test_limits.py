"""Limits in C and in WebAssembly: the states and results that rows have."""

import json
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from amt_stream.meters.limits import Limit, LimitError
from amt_stream.meters.rows import LimitMonitor
from amt_stream.native import NativeModel
from tests.native.library import HOST, ZWICKER, compiled
from tests.native.test_web import node, work  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("own_cache")

COLUMNS = {"zwicker_n_sone": False, "n_phon": False, "zwicker_nmax_sone": True}
"""Whether each is of all sound so far."""

ROOT = Path(__file__).parents[2]
MAIN = """
int main(void) {
    static float sound[48000];
    int32_t n = (int32_t)fread(sound, sizeof *sound, 48000, stdin);
    amt *meter = amt_create(0);
    judge(meter, sound, n);
    amt_destroy(meter);
    return 0;
}
"""

IN_NODE = """
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Model } from "amt-stream";
const wasm = readFileSync(fileURLToPath(import.meta.resolve("amt-stream/zwicker.wasm")));
const model = new Model(await WebAssembly.compile(wasm));
const told = JSON.parse(readFileSync("cases.json")).map(({ column, rules, parts }) => {
  const limit = model.limit(column, rules);
  const states = parts.map(({ frames, sound }) => limit.take(Float32Array.from(frames), sound));
  return { states: states.flat(), ...limit.result() };
});
const wrong = [["loudness", { above: 3 }], ["n", {}], ["n", { above: 3, below: 1 }],
  ["n", { above: 3, hold_s: -1 }], ["n", { above: NaN }]];
const said = wrong.map((given) => {
  try { model.limit(...given); return "accepted"; } catch (error) { return error.message; }
});
console.log(JSON.stringify({ told, said }));
"""

RESET_IN_NODE = """
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Model } from "amt-stream";
const wasm = readFileSync(fileURLToPath(import.meta.resolve("amt-stream/zwicker.wasm")));
const model = new Model(await WebAssembly.compile(wasm));
const quiet = new Float32Array(4800).fill(1e-5), bad = quiet.map((x, k) => k < 480 ? NaN : x);
const state = model.save();
model.process([quiet.map(() => NaN)]);
const limit = model.limit("n", { above: 9 });
const states = [() => model.reset(), () => model.load(state)].map((forget) => {
  const judged = (sound) => limit.take(model.process([sound]))[0], before = judged(quiet);
  forget();
  return [before, judged(bad), judged(quiet)];
});
console.log(JSON.stringify(states.flat()));
"""


@pytest.fixture
def meter(own_cache):
    return NativeModel("zwicker", channels=1)


def cases(seed):
    """A limit, and parts of what comes: frames, and whether they were clipped, known and heard."""
    random = np.random.default_rng(seed)
    column, below = random.choice([*COLUMNS]), bool(random.random() < 0.3)
    warns, at = random.random() < 0.6, 10.0
    amber = (at + 2 if below else at - 2) if warns else None
    hysteresis, hold_s = (float(random.choice([0.0, most])) for most in (1.5, 0.01))
    at_end = bool(random.random() < 0.2)
    limit = Limit(str(column), at, below, amber, hysteresis, hold_s, at_end)
    values = at + np.cumsum(random.normal(0, 0.8, 60))
    values[random.random(60) < 0.05] = random.choice([math.nan, -math.inf])
    parts = []
    for part in np.split(values.astype(np.float32), 12):
        marks = random.random(3) < (0.1, 0.95, 0.95)
        parts.append(
            (part, dict(zip(("clipped", "calibrated", "heard"), marks.tolist(), strict=True)))
        )
    return limit, parts


def whole_frames(limit, values):
    """Frames of the model with these values of the column of a limit."""
    frames = np.full((len(values), len(ZWICKER)), 77, np.float32)
    name = limit.column.removeprefix("zwicker_").removesuffix("_sone")
    frames[:, ZWICKER.index(name)] = values
    return frames


def of_rows(limit, parts, step_s):
    """The states, and the result, by the monitor of rows."""
    monitor = LimitMonitor(limit, step_s, counted=COLUMNS[limit.column])
    states, count = [], 0
    for values, known in parts:
        for value in values.tolist():
            count += 1
            row = count * step_s, value, known["calibrated"], known["clipped"], known["heard"]
            states += monitor.update([row])
    return states, monitor.stood


def test_their_states_and_results_are_those_of_rows(meter):
    verdicts = set()
    for seed in range(200):
        limit, parts = cases(seed)
        one = meter.limit(limit)
        assert one.state == "unknown"
        assert one.worst is None
        states = [s for values, known in parts for s in one(whole_frames(limit, values), **known)]
        right, stood = of_rows(limit, parts, meter.info.frame_s)
        assert states == right
        assert (one.state, one.verdict, one.times) == (stood.state, stood.verdict, stood.times)
        assert one.worst == stood.worst
        verdicts.add(one.verdict)
    assert verdicts == {"kept", "exceeded", "not known"}


def test_it_watches_a_sound(meter, sound):
    limit = meter.limit("zwicker_n_sone>9,amber=5,hysteresis=0.5")
    meter.gain = 20.0
    states = limit(meter(sound.T))
    assert states[0] == "green"
    assert {"amber", "red"} <= set(states)
    assert (limit.verdict, limit.state) == ("exceeded", states[-1])


def test_a_limit_is_not_green_on_samples_that_are_no_numbers(meter):
    limit = meter.limit("zwicker_n_sone>9")
    quiet = np.full((4800, 1), 1e-5, np.float32)
    assert {*limit(meter(quiet))} == {"green"}
    assert limit.verdict == "kept"
    assert limit(meter(quiet[:1] * np.nan)) == []
    assert {*limit(meter(quiet))} == {"unknown"}, "it is known by the next frames"
    assert {*limit(meter(quiet))} == {"green"}
    assert limit.verdict == "not known"


def test_nor_after_a_reset_or_another_state(meter):
    """Then the count of such samples begins anew, or goes back."""
    quiet = np.full((4800, 1), 1e-5, np.float32)
    state = meter.save()
    meter(quiet * np.nan)
    limit = meter.limit("zwicker_n_sone>9")
    for forget in meter.reset, lambda: meter.load(state):
        assert {*limit(meter(quiet))} == {"green"}
        forget()
        assert {*limit(meter(np.append(quiet, [[np.nan]] * 480, 0)))} == {"unknown"}


def test_nor_in_javascript(work):  # noqa: F811
    assert json.loads(node(work, RESET_IN_NODE)) == ["green", "unknown", "green"] * 2


def test_the_program_of_the_page_judges(folder, sound, tmp_path):
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```c\n(.+?)```", page, re.DOTALL)
    (folder / "judge.c").write_text(f"{program}{MAIN}")
    checks = "-fsanitize=address,undefined", "-fno-sanitize-recover"
    judge = compiled(folder, "zwicker", HOST, tmp_path / "judge", *checks, main="judge.c")
    for gain, said in (2, "exceeded"), (0.05, "kept"):
        given = (np.float32(gain) * sound).tobytes()
        done = subprocess.run([judge], input=given, capture_output=True, check=True)
        assert done.stdout.decode().startswith(f"{said}, worst ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ltl_phon>3", "zwicker has no column ltl_phon"),
        ("n_sone>3,ahead=5", "ahead_s needs a forecast, which no frame has"),
        ("n_sone", "is not a limit"),
    ],
)
def test_what_it_cannot_watch_is_refused(meter, text, said):
    with pytest.raises(LimitError, match=said):
        meter.limit(text)


def test_in_javascript_they_are_the_same(meter, work):  # noqa: F811
    given, right = [], []
    for seed in range(60):
        limit, parts = cases(seed)
        rules = {limit.side: limit.threshold, "hysteresis": limit.hysteresis}
        rules |= {"hold_s": limit.hold_s, "at_end": limit.at_end}
        rules |= {} if limit.amber is None else {"amber": limit.amber}
        name = limit.column.removeprefix("zwicker_").removesuffix("_sone")
        told = [
            {"frames": whole_frames(limit, values).ravel().tolist(), "sound": known}
            for values, known in parts
        ]
        given.append({"column": name, "rules": rules, "parts": told})
        right.append(of_rows(limit, parts, meter.info.frame_s))
    # JSON has no NaN and no infinity: null becomes 0 in a Float32Array.
    text = json.dumps(given).replace("-Infinity", "-1e999").replace("NaN", '"x"')
    (work / "cases.json").write_text(text)
    found = json.loads(node(work, IN_NODE))
    for told, (states, stood) in zip(found["told"], right, strict=True):
        assert told["states"] == states
        result = told["state"], told["verdict"], told["times"], told["worst"]
        assert result == (stood.state, stood.verdict, stood.times, stood.worst)
    assert found["said"] == [
        "zwicker has no column loudness",
        *["give above or below"] * 2,
        *["a rule is below 0, or no number"] * 2,
    ]
