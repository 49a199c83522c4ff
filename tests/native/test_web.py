"""Zwicker's model as WebAssembly, in Node and in a real browser: the frames of Python."""

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from amt_stream.native import NativeModel
from amt_stream.native.web_files import npm_archive
from tests.native.library import FS, ZWICKER, Instance, units_of, worst
from tests.native.web import IN_PAGE, in_browser, served
from tests.service.browser import Browser

ROOT = Path(__file__).parents[2]

MEASURE = """
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Model } from "amt-stream";
const wasm = readFileSync(fileURLToPath(import.meta.resolve("amt-stream/zwicker.wasm")));
const model = new Model(await WebAssembly.compile(wasm));
const file = (name) => new Float32Array(Uint8Array.from(readFileSync(name)).buffer);
const write = (name, x) => writeFileSync(name, Buffer.from(x.buffer, x.byteOffset, x.byteLength));
const [from, ...steps] = process.argv.slice(2).map(Number);
if (from) model.load(new Uint8Array(readFileSync("state")));
const sound = file("sound");
const frames = [];
for (let at = from, k = 0; at < sound.length; at += steps[k % steps.length], k += 1) {
  frames.push(...model.process([sound.subarray(at, at + steps[k % steps.length])]));
}
write("frames", Float32Array.from(frames));
write("state", model.save());
console.log(JSON.stringify({ ...model.info, invalid: model.invalid }));
"""

REFUSE = """
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Model } from "amt-stream";
const wasm = readFileSync(fileURLToPath(import.meta.resolve("amt-stream/zwicker.wasm")));
const model = new Model(await WebAssembly.compile(wasm));
const other = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
const two = [new Float32Array(3), new Float32Array(3)];
const state = model.save();
const wrong = state.slice(), foreign = state.slice();
wrong[100] ^= 1;
foreign[8] ^= 1;
const calls = [() => model.process(two), () => model.process([]),
  () => model.process([new Int16Array(3)]), () => model.process([[0, 0, 0]]),
  () => new Model(other), () => { model.gain = 0; },
  () => model.load(wrong), () => model.load(foreign), () => model.load(state.slice(1))];
for (const call of calls) {
  try { call(); console.log("accepted"); } catch (error) { console.log(error.message); }
}
model.process([new Float32Array(700).fill(NaN)]);
console.log(model.invalid);
model.reset();
console.log(Buffer.compare(Buffer.from(model.save()), Buffer.from(state)));
"""


@pytest.fixture
def work(web, tmp_path):
    """A folder in which the package is installed, as npm unpacks it."""
    package = npm_archive({path.name: path.read_bytes() for path in web.iterdir()})
    modules = tmp_path / "node_modules"
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        archive.extractall(modules, filter="data")
    (modules / "package").rename(modules / "amt-stream")
    return tmp_path


def node(work, program, *arguments):
    (work / "program.mjs").write_text(program)
    command = ["node", "program.mjs", *map(str, arguments)]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(work, sound, start, *steps):
    (work / "sound").write_bytes(sound.tobytes())
    info = json.loads(node(work, MEASURE, start, *steps))
    return np.fromfile(work / "frames", np.float32).reshape(-1, len(ZWICKER)), info


def test_the_program_of_the_page_runs(work):
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```js\n(.+?)```", page, re.DOTALL)
    samples = "const samples = new Float32Array(4800).fill(0.01);\n"
    assert "name: 'n', unit: 'sone'" in node(work, samples + program)


@pytest.mark.cases(2)
@pytest.mark.parametrize("steps", [(1, 480, 1000), (128,), (FS,)])
def test_its_frames_in_node_are_those_of_python(work, sound, right, steps):
    frames, info = measured(work, sound, 0, *steps)
    assert worst(frames, right) < 4e-7
    assert info["invalid"] == 0


def test_it_says_what_the_library_says(work, web, library, sound):
    _, info = measured(work, sound[:, :10], 0, 10)
    native = library.info
    names = info.keys() & native.__dict__.keys() - {"columns"}
    assert len(names) == 12
    assert {name: info[name] for name in names} == {name: getattr(native, name) for name in names}
    assert info["columns"] == units_of(ZWICKER)


def test_a_state_goes_on_from_c_to_webassembly_to_python(own_cache, work, library, sound, right):
    first = Instance(library)
    begin = first.whole(sound[:, :10001], 333)
    (work / "state").write_bytes(first.save())
    middle, _ = measured(work, sound[:, :30007], 10001, 777)
    last = NativeModel("zwicker", channels=1)
    last.load((work / "state").read_bytes())
    frames = np.concatenate([begin, middle, last(sound.T[30007:])])
    assert worst(frames, right) < 4e-7


def test_what_does_not_fit_is_refused(work):
    assert node(work, REFUSE).splitlines() == [
        "2 channels: give 1 of one length",
        "0 channels: give 1 of one length",
        "a channel is of Int16Array: give a Float32Array",
        "a channel is of another type: give a Float32Array",
        "the module is not a model of amt-stream",
        "gain is 0: give a number above 0",
        "the state is damaged: save it again",
        "the state is not one of this zwicker",
        "the state is damaged: save it again",
        "700",
        "0",
    ]


def test_the_module_is_small_and_imports_nothing(web, work):
    program = (
        'import { readFileSync } from "node:fs";'
        'const wasm = readFileSync("node_modules/amt-stream/zwicker.wasm");'
        "console.log(WebAssembly.Module.imports(new WebAssembly.Module(wasm)).length);"
    )
    assert node(work, program) == "0\n"
    module = (web / "zwicker.wasm").read_bytes()
    assert len(module) <= 64_000
    assert len(gzip.compress(module)) <= 30_000
    assert not any(word in module for word in (b"/home", b"/work", b"/tmp", b".py"))


def test_an_audio_worklet_gives_the_frames_of_python(web, tmp_path, sound, right):
    shutil.copytree(web, tmp_path / "web")
    with Browser() as browser:
        frames = in_browser(browser, tmp_path / "web", "zwicker", sound)
    assert worst(frames.reshape(right.shape), right) < 4e-7


def test_a_worklet_hears_pauses_and_says_what_it_refuses(web, tmp_path, library):
    """Two short sounds, before, between and after which nothing plays."""
    shutil.copytree(web, tmp_path / "web")
    with Browser() as browser, served(tmp_path / "web") as address:
        browser.open(f"{address}/package.json")
        browser.evaluate(IN_PAGE)
        browser.until("window.said_ || window.failed_")
        assert browser.evaluate("window.failed_") is None
        said = browser.evaluate("window.said_")
    right = Instance(library).whole(pauses(), FS)
    assert worst(np.array(said["frames"], np.float32).reshape(-1, len(ZWICKER)), right) < 4e-7
    assert said["refused"] == [
        "zwicker is made for 48000 Hz, and the context has 44100 Hz: make it with "
        "sampleRate: 48000",
        "gain is -1: give a number above 0",
    ]
    assert said["errors"] == [
        "gain is 0: give a number above 0",
        "the state is damaged: save it again",
    ]
    assert said["clipped"] == 2 * 99
    assert 25600 - 128 <= said["zeros"] <= 25600


def pauses():
    sound = np.zeros((1, FS), np.float32)
    sound[0, 12800:12900] = sound[0, 38400:38500] = 1
    return sound


def test_the_page_measures_the_microphone_from_a_file(web):
    """The microphone of the browser beeps once a second, at full scale."""
    state = "document.getElementById('state').textContent"
    with Browser(width=400, height=700) as browser:
        browser.open((web / "zwicker.html").as_uri())
        assert "idle" in browser.evaluate(state)
        browser.evaluate("document.getElementById('start').click()")
        browser.until("Number(document.querySelector('#numbers b').textContent) > 0.5")
        words = r"(┳ clipped · )?(◐ settling · )?▨ uncalibrated"
        assert re.fullmatch(words, browser.evaluate(state))
        browser.evaluate(
            "document.getElementById('gain').value = '2,5';"
            "document.getElementById('gain').dispatchEvent(new Event('change'))"
        )
        browser.until(f"{state} === '┳ clipped'")
        browser.evaluate("document.getElementById('start').click()")
        assert browser.evaluate(state) == "□ stopped"
