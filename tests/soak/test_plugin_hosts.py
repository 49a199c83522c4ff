"""LV2 plug-ins in hosts of other makers: ffmpeg, GStreamer, and jalv with JACK."""

import os
import subprocess

import numpy as np
import pytest

from tests.native.library import FS, HOST, exported
from tests.native.test_lv2 import plugin_in
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.soak

MODELS = {"bs1770": 2, "zwicker": 1}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return request.param


@pytest.fixture(scope="module")
def hosted(model, tmp_path_factory):
    """The name of the plug-in, and an environment in which hosts have it."""
    home = tmp_path_factory.mktemp(model)
    bundle = home / "lv2" / f"{model}.lv2"
    (home / "made").mkdir()
    bundle.mkdir(parents=True)
    exported(home / "made", model, MODELS[model], HOST)
    plugin_in(bundle, home / "made", model)
    known = {"LV2_PATH": str(home / "lv2"), "GST_REGISTRY": str(home / "registry")}
    return f"urn:amt-stream:{model}-{MODELS[model]}-{FS}", os.environ | known


def passed(command, environment, sound, folder):
    """The sound that a host writes to out.f32, of that in in.f32 (time, channel)."""
    (folder / "in.f32").write_bytes(sound.tobytes())
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return np.fromfile(folder / "out.f32", np.float32).reshape(sound.shape)


def noise(channels):
    return (0.1 * np.random.default_rng(2).standard_normal((FS, channels))).astype(np.float32)


def test_ffmpeg_passes_a_sound_through_it(model, hosted, tmp_path):
    uri, known = hosted
    raw = ["-f", "f32le", "-ar", str(FS), "-ac", str(MODELS[model])]
    plugin = f"lv2=p={uri.replace(':', chr(92) * 2 + ':')}:c=gain=2"
    command = ["ffmpeg", "-v", "error", *raw, "-i", "in.f32", "-af", plugin, *raw, "out.f32"]
    sound = noise(MODELS[model])
    np.testing.assert_array_equal(passed(command, known, sound, tmp_path), sound)


@pytest.mark.parametrize("size", [7, 4096])
def test_gstreamer_passes_a_sound_through_it(model, hosted, tmp_path, size):
    uri, known = hosted
    channels = MODELS[model]
    form = f"format=pcm pcm-format=f32le sample-rate={FS} num-channels={channels}"
    command = [
        *("gst-launch-1.0", "-q", "filesrc", "location=in.f32", f"blocksize={size * 4 * channels}"),
        *("!", "rawaudioparse", *form.split(), "!", uri.replace(":", "-"), "gain=2"),
        *("!", "filesink", "location=out.f32"),
    ]
    sound = noise(channels)
    np.testing.assert_array_equal(passed(command, known, sound, tmp_path), sound)


@pytest.fixture
def jack():
    """The environment of clients of a sound server without a device."""
    name = f"test{os.getpid()}"
    command = ["jackd", "-n", name, "--no-realtime", "-d", "dummy", "-r", str(FS), "-p", "64"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            subprocess.run(["jack_wait", "-s", name, "-w", "-t", "30"], check=True)
            yield {"JACK_DEFAULT_SERVER": name}
        finally:
            server.terminate()


def test_jalv_shows_numbers_only(model, hosted, jack):
    """Of silence, whose levels are not known, and with a gain out of its range."""
    uri, known = hosted
    command = ["timeout", f"{PATIENCE_S:.0f}", "stdbuf", "-oL", "jalv", uri]
    with subprocess.Popen(
        command, env=known | jack, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        print("set gain 1e30", file=host.stdin, flush=True)
        values = {"invalid": 0.0}
        while not values["invalid"]:
            print("monitors", file=host.stdin, flush=True)
            assert host.poll() is None
            for line in host.stdout:
                name, value = line.removeprefix("> ").split(" = ") if " = " in line else ("", "0")
                values[name] = float(value)
                if name == "invalid":
                    break
        host.communicate("exit\n", timeout=PATIENCE_S)
    assert len(values) > 10
    assert np.isfinite([*values.values()]).all()
