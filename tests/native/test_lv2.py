"""Zwicker's model as an LV2 plug-in, in lilv, the library of LV2 hosts."""

import ctypes
import ctypes.util
import os
import re
import subprocess

import numpy as np
import pytest
import soundfile

from tests.native.library import FS, HOST, ZWICKER, compiled, worst

URI = "urn:amt-stream:zwicker-1-48000"
IN, OUT, GAIN, VALUE = range(4)
CONNECT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)
DO = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Descriptor(ctypes.Structure):
    """`LV2_Descriptor`"""

    _fields_ = (
        ("uri", ctypes.c_char_p),
        ("instantiate", ctypes.c_void_p),
        ("connect_port", CONNECT),
        ("activate", DO),
        ("run", RUN),
    )


class LilvInstance(ctypes.Structure):
    _fields_ = (("descriptor", ctypes.POINTER(Descriptor)), ("handle", ctypes.c_void_p))


def plugin_in(bundle, folder, model):
    """Compile the plug-in of a model into a folder that hosts read."""
    compiled(folder, model, HOST, bundle / f"{model}.so", "-fvisibility=hidden", "lv2.c")
    (bundle / "manifest.ttl").write_bytes((folder / f"{model}.ttl").read_bytes())


@pytest.fixture(scope="module")
def bundles(folder, tmp_path_factory):
    """A folder of LV2 bundles, with that of the model."""
    bundle = tmp_path_factory.mktemp("lv2") / "zwicker.lv2"
    bundle.mkdir()
    plugin_in(bundle, folder, "zwicker")
    return bundle.parent


@pytest.fixture(scope="module")
def plugin(bundles):
    """lilv, and the plug-in as it found it."""
    lilv = ctypes.CDLL(ctypes.util.find_library("lilv-0"))
    for name in ("world_new", "new_uri", "world_get_all_plugins", "plugins_get_by_uri"):
        getattr(lilv, f"lilv_{name}").restype = ctypes.c_void_p
    lilv.lilv_plugin_instantiate.restype = ctypes.POINTER(LilvInstance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LV2_PATH", str(bundles))
        world = ctypes.c_void_p(lilv.lilv_world_new())
        lilv.lilv_world_load_all(world)
    found = ctypes.c_void_p(lilv.lilv_world_get_all_plugins(world))
    uri = ctypes.c_void_p(lilv.lilv_new_uri(world, URI.encode()))
    plugin = ctypes.c_void_p(lilv.lilv_plugins_get_by_uri(found, uri))
    assert plugin
    assert lilv.lilv_plugin_get_num_ports(plugin) == VALUE + len(ZWICKER) + 1
    return lilv, plugin


def test_its_values_are_those_of_python(plugin, sound, right):
    """In blocks of 480 samples, after each of which the value is that of the last frame."""
    lilv, found = plugin
    instance = lilv.lilv_plugin_instantiate(found, ctypes.c_double(FS), None)
    one = instance.contents
    of, handle = one.descriptor.contents, one.handle
    x, y = np.zeros((2, 480), np.float32)
    gain, value = np.float32([2.0]), np.full(len(ZWICKER) + 1, -1, np.float32)
    ports = [(IN, x), (OUT, y), (GAIN, gain)]
    for port, array in (*ports, *((VALUE + k, value[k:]) for k in range(len(value)))):
        of.connect_port(handle, port, array.ctypes.data)
    of.activate(handle)
    values = []
    for block in sound[0].reshape(-1, 480):
        x[:] = block / 2
        of.run(handle, 480)
        np.testing.assert_array_equal(y, x)
        values.append(value.copy())
    *values, invalid = np.array(values).T
    assert worst(np.transpose(values), right[4::5]) < 4e-7
    assert not invalid.any()


def test_values_are_there_before_the_first_frame_and_go_with_the_sound(plugin):
    lilv, found = plugin
    one = lilv.lilv_plugin_instantiate(found, ctypes.c_double(FS), None).contents
    of, handle = one.descriptor.contents, one.handle
    x, gain = np.full(480, 0.1, np.float32), np.float32([1.0])
    for port, array in ((IN, x), (OUT, x), (GAIN, gain)):
        of.connect_port(handle, port, array.ctypes.data)

    def values(samples):
        """In another place of the host's memory each time."""
        value = np.full(len(ZWICKER) + 1, -1, np.float32)
        for k in range(len(value)):
            of.connect_port(handle, VALUE + k, value[k:].ctypes.data)
        of.run(handle, samples)
        return value

    of.activate(handle)
    assert not values(0).any()
    assert not values(479).any()
    heard = values(480)
    assert heard[0] > 0
    np.testing.assert_array_equal(values(0), heard)
    of.activate(handle)
    assert not values(1).any()


def test_invalid_samples_are_counted_and_are_no_reading(plugin):
    lilv, found = plugin
    one = lilv.lilv_plugin_instantiate(found, ctypes.c_double(FS), None).contents
    of, handle = one.descriptor.contents, one.handle
    x, gain = np.full(480, 0.1, np.float32), np.float32([1.0])
    value = np.full(len(ZWICKER) + 1, -1, np.float32)
    ports = [(IN, x), (OUT, x), (GAIN, gain)]
    for port, array in (*ports, *((VALUE + k, value[k:]) for k in range(len(value)))):
        of.connect_port(handle, port, array.ctypes.data)
    of.activate(handle)
    counted = 0
    for wrong in ({5: np.nan}, {5: np.inf, 7: 1e30}):
        x[:] = 0.1
        of.run(handle, 480)
        assert value[:2].all()
        x[[*wrong]] = [*wrong.values()]
        of.run(handle, 480)
        counted += len(wrong)
        assert not value[:-1].any()
        assert value[-1] == counted
    x[:] = 0.1
    for no_gain in (np.nan, 0.0, -1.0, 1e30):
        gain[:] = no_gain
        of.run(handle, 480)
        counted += 480
        assert not value[:-1].any()
        assert value[-1] == counted
    gain[:] = 1.0
    of.run(handle, 480)
    assert value[:2].all()
    of.activate(handle)
    of.run(handle, 480)
    assert value[-1] == 0


def test_hosts_know_the_range_of_each_control(bundles):
    """Without one, GStreamer takes 0 to 1."""
    known = os.environ | {"LV2_PATH": str(bundles)}
    said = subprocess.run(["lv2info", URI], env=known, capture_output=True, text=True, check=True)
    ports = said.stdout.split("Port ")[VALUE:]
    controls = [port for port in ports if "#ControlPort" in port]
    assert len(controls) == 1 + len(ZWICKER) + 1
    for port in controls:
        least, most = re.findall(r"(?:Minimum|Maximum): +(\S+)", port)
        assert float(least) >= 0
        assert float(most) >= 1e4


def test_it_refuses_another_rate(plugin):
    lilv, found = plugin
    assert not lilv.lilv_plugin_instantiate(found, ctypes.c_double(44100), None)


def test_a_host_passes_a_sound_through_it(bundles, sound, tmp_path):
    soundfile.write(tmp_path / "in.wav", sound[0], FS, subtype="FLOAT")
    command = ["lv2apply", "-i", "in.wav", "-o", "out.wav", "-c", "gain", "20", URI]
    known = os.environ | {"LV2_PATH": str(bundles)}
    done = subprocess.run(
        command, cwd=tmp_path, env=known, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(
        soundfile.read(tmp_path / "out.wav", dtype="float32")[0], sound[0]
    )
