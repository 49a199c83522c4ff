"""Every model that can be exported to C: its frames, its speed, its files, and its threads."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from amt_stream import Stream
from amt_stream.native.build import Request, build_library
from amt_stream.native.library import Library
from amt_stream.native.plan import model_for
from amt_stream.native.web_files import WASM, web_files
from tests.native.clap import heard, host_of, plugin_of
from tests.native.library import (
    FS,
    HOST,
    Instance,
    columns_of,
    compiled,
    exported,
    recovers,
    worst,
)
from tests.native.published import assert_published, checks
from tests.native.web import in_browser
from tests.service.browser import Browser

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]

MODELS = {
    "zwicker": 1,
    "moore2016": 2,
    "gm2002": 1,
    "bs1770": 2,
    "spl": 1,
    "third_octave": 1,
    "octave": 1,
    "daniel_weber": 1,
    "ecma_loudness": 1,
    "ecma_tonality": 1,
    "ecma_roughness": 1,
    "ecma_fluctuation": 1,
    "ecma": 1,
}
THREADS = """
#include "amt.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static float sound[48000], frames[2][65536];
static int32_t given[2];
static void *run(void *which) {
    int k = *(int *)which;
    const float *each[8];
    int32_t used;
    amt *m = AMT(create)(NULL);
    for (int c = 0; c < 8; c++) each[c] = sound;
    given[k] = AMT(process)(m, each, 48000, frames[k], 65536 / AMT(about)()->columns, &used);
    AMT(destroy)(m);
    return NULL;
}
int main(void) {
    pthread_t threads[2];
    int which[2] = {0, 1};
    for (int k = 0; k < 48000; k++) sound[k] = 0.04f * (rand() / (float)RAND_MAX - 0.5f);
    for (int k = 0; k < 2; k++) pthread_create(&threads[k], NULL, run, &which[k]);
    for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    return given[0] < 1 || given[0] != given[1] || memcmp(frames[0], frames[1], sizeof frames[0]);
}
"""

IN_NODE = """
import { readFileSync, writeFileSync } from "node:fs";
import { Model } from "./model.js";
const model = new Model(new WebAssembly.Module(readFileSync(process.argv[2])));
const sound = new Float32Array(Uint8Array.from(readFileSync("sound")).buffer);
const length = sound.length / model.info.channels;
const channels = Array.from(
  { length: model.info.channels }, (_, k) => sound.subarray(k * length, (k + 1) * length));
const blocks = length / model.info.block, { columns, frames_per_block } = model.info;
const frames = new Float32Array(blocks * frames_per_block * columns.length);
const before = process.cpuUsage();
for (let at = 0, place = 0; at < length; at += 128) {
  const part = model.process(channels.map((one) => one.subarray(at, at + 128)));
  frames.set(part, place);
  place += part.length;
}
const { user } = process.cpuUsage(before);
writeFileSync("frames", frames);
writeFileSync("state", model.save());
console.log(user / length * 480);
"""
OF_LEVELS = {"bs1770", "spl", "third_octave", "octave"}
FRAMES = {name: MODELS[name] for name in MODELS if name not in OF_LEVELS}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return request.param


@pytest.fixture(scope="module")
def made(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp(model)
    return folder, exported(folder, model, MODELS[model], HOST)


def packaged(folder, model, *targets):
    """Write the files of a model and its package of JavaScript into a folder."""
    files = build_library(Request(model, FS, FRAMES[model], 0.01, targets))
    for name, content in (files | web_files(model, files)).items():
        (folder / name).write_bytes(content)


def sound_of(channels, block):
    """5 s of a tone in noise (channel, time), up to a whole block."""
    noise = np.random.default_rng(1).standard_normal((channels, 5 * FS // block * block))
    tone = np.sin(2 * np.pi * 1000 / FS * np.arange(noise.shape[1]))
    return (0.02 * noise + 0.1 * tone).astype(np.float32)


def least_s(function):
    """What a call gives, and the least CPU time of several."""
    times = []
    for _ in range(5):
        before = time.process_time()
        result = function()
        times.append(time.process_time() - before)
    return result, min(times)


def test_frames_and_speed(model, made, record):
    """5 s of a tone in noise; C takes no longer than Python with the same kernels."""
    folder, _ = made
    channels = MODELS[model]
    stage = model_for(model, FS, channels)
    lead = (1, channels) if stage.as_fused().axes == 2 else (channels,)
    library = Library(compiled(folder, model, HOST, folder / "model.so"))
    sound = sound_of(channels, library.info.block)
    sound[:, FS : 2 * FS] *= 1e-5
    blocks = torch.from_numpy(sound).reshape(*lead, -1).split(library.info.block, -1)
    live = Stream(stage, lead)

    def heard():
        live.reset()
        return [live(block) for block in blocks]

    with torch.inference_mode():
        heard()
        outputs, python_s = least_s(heard)
    frames, c_s = least_s(lambda: Instance(library).process(sound)[0])
    right = np.concatenate([columns_of(one, frames.shape[1]) for one in outputs])
    known = np.isfinite(right)  # what a reading has not yet, or of silence, is no number
    np.testing.assert_array_equal(np.isfinite(frames), known)
    difference = worst(np.where(known, frames, 0), np.where(known, right, 0))
    c_us, python_us = (one / sound.shape[1] * 480 * 1e6 for one in (c_s, python_s))
    record(
        f"{model} in C ({HOST}) and in Python, 5 s of a tone in noise with a near-silence",
        f"frames differ by {difference:.2g}; {c_us:.0f} and {python_us:.0f} us per 10 ms",
    )
    assert difference < 1e-6
    assert c_s < 1.25 * python_s
    for step in (1, 1000):
        part = Instance(library).whole(sound[:, :FS], step)
        np.testing.assert_array_equal(part, frames[: len(part)])


@pytest.mark.parametrize("model", FRAMES)
def test_webassembly_has_the_frames_of_c(model, tmp_path, record):
    """5 s of sound in Node, in pieces as an AudioWorklet gives them; then its state in C."""
    packaged(tmp_path, model, HOST, WASM)
    block = json.loads((tmp_path / f"{model}.json").read_text())["block"]
    sound = sound_of(FRAMES[model], block)
    (tmp_path / "sound").write_bytes(sound.tobytes())
    (tmp_path / "program.js").write_text(IN_NODE)
    command = ["node", "program.js", f"{model}.wasm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one = Instance(Library(compiled(tmp_path, model, HOST, tmp_path / "model.so")))
    frames = one.whole(sound, FS)
    difference = worst(np.fromfile(tmp_path / "frames", np.float32).reshape(frames.shape), frames)
    size = (tmp_path / f"{model}.wasm").stat().st_size
    record(
        f"{model} as WebAssembly in Node, 5 s of a tone in noise",
        f"frames differ by {difference:.2g}; {float(done.stdout):.0f} us per 10 ms; "
        f"{size / 1e3:.0f} kB",
    )
    assert difference < 4e-7
    other = Instance(one.library)
    assert other.load((tmp_path / "state").read_bytes()) == 0
    again = sound[:, :FS]
    assert worst(other.whole(again, FS), one.whole(again, FS)) < 4e-7


def test_published_values(model, made, tmp_path, record):
    """In C, and in the AudioWorklet of a browser."""
    folder, _ = made
    instance = Instance(Library(compiled(folder, model, HOST, folder / "published.so")))
    whole = None
    with contextlib.ExitStack() as pages:
        if model in FRAMES:
            packaged(tmp_path, model, WASM)
            whole = partial(in_browser, pages.enter_context(Browser()), tmp_path, model)
        found = []
        for trial in checks(model, MODELS[model]):
            found += assert_published(trial, instance, whole)
    values = {(one.sound, one.reading.what) for one in found}
    record(
        f"{model} in C{' and in an AudioWorklet' * (whole is not None)}: values of the self-test",
        f"{len(values)} values, {sum(one.passed for one in found)} of {len(found)} readings pass",
    )
    assert len(values) >= 4


def test_the_first_program_of_the_page(tmp_path):
    """As it is typed, of a tone of 1 kHz and 40 dB at both ears, which is 1 sone by definition."""
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (typed,) = re.findall(r"^```\n(amt-stream export moore2016 .+?)^```$", page, re.M | re.S)
    t = np.arange(FS) / FS
    tone = np.sqrt(2) * 2e-5 * 10 ** (40 / 20) * np.sin(2000 * np.pi * t) / 20
    (tmp_path / "moore").mkdir()
    sound = np.stack([tone, tone], 1)
    soundfile.write(tmp_path / "moore" / "sound.wav", sound, FS, subtype="FLOAT")
    where = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    lines = typed.replace("x86-64-v3", HOST)
    done = subprocess.run(
        ["sh", "-ec", lines], cwd=tmp_path, env=where, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert title.startswith("time_s,stl_sone,ltl_sone")
    assert float(rows[-1].split(",")[1]) == pytest.approx(1.0, abs=0.05)


def test_a_clap_plug_in_has_its_frames(model, made, tmp_path):
    """After blocks of its own length; levels that are not known are at the end of their range."""
    folder, _ = made
    one = Instance(Library(compiled(folder, model, HOST, tmp_path / "model.so")))
    block = one.about.block
    sound = sound_of(MODELS[model], block)[:, : 90 * block]
    _, values = heard(
        host_of(folder, tmp_path / "host"), plugin_of(folder, model, tmp_path), sound, block
    )
    frames = one.whole(sound, FS)[one.about.frames_per_block - 1 :: one.about.frames_per_block]
    least = [0 if column.unit in ("sone", "phon") else -200 for column in one.about.columns]
    expected = np.where(np.isfinite(frames), frames, least)
    np.testing.assert_array_equal(values[:, :-1], expected)


def numbers_of(said):
    """What the example prints (frame, column)."""
    return np.loadtxt(said.decode().splitlines(), delimiter=",", skiprows=1, ndmin=2)


def test_windows_has_its_frames_and_macos_its_library(model, made, tmp_path, record):
    """As the page says; the program for Windows runs in Wine."""
    folder, channels = made[0], MODELS[model]
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^cd zwicker\n(python -m ziglang [^`]+)", page, re.MULTILINE)
    request = Request(model, FS, channels, 0.01, ("x86-64-windows", "aarch64-macos"))
    files = build_library(request)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    lines = shown.replace("zwicker", model).replace("python ", f"{sys.executable} ")
    subprocess.run(["sh", "-ec", lines], cwd=tmp_path, check=True)
    for name, begin, symbol in (
        (f"{model}.clap", b"MZ", b"clap_entry"),
        (f"lib{model}.dylib", b"\xcf\xfa\xed\xfe", b"_amt_process"),
    ):
        content = (tmp_path / name).read_bytes()
        assert content.startswith(begin)
        assert symbol in content
    sound = sound_of(channels, json.loads(files[f"{model}.json"])["block"]).T.tobytes()
    here = compiled(folder, model, HOST, folder / "meter", main="example.c")
    wine = os.environ | {"WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    said = [
        subprocess.run(one, cwd=tmp_path, input=sound, capture_output=True, check=True, env=wine)
        for one in ([here], ["wine", "meter.exe"])
    ]
    right, found = (numbers_of(one.stdout) for one in said)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(right))
    known = np.isfinite(right)
    difference = worst(np.where(known, found, 0), np.where(known, right, 0))
    record(f"{model} in C for Windows, in Wine", f"frames differ by {difference:.2g} from Linux")
    assert difference < 2e-6


def test_it_recovers_from_the_largest_samples(model, made):
    folder, _ = made
    recovers(Library(compiled(folder, model, HOST, folder / "largest.so")))


def test_two_builds_are_equal(model, made):
    _, files = made
    assert build_library(Request(model, FS, MODELS[model], 0.01, (HOST,))) == files


def test_two_threads_share_nothing(model, made):
    folder, _ = made
    (folder / "threads.c").write_text(THREADS)
    options = "-fsanitize=thread", "-g", "-pthread"
    program = compiled(folder, model, HOST, folder / "threads", *options, main="threads.c")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
