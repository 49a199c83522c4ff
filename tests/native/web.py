"""A model as WebAssembly in the AudioWorklet of a real browser."""

import contextlib
import functools
import http.server
import json
import threading

import numpy as np

OFFLINE = """
(async (model, channels) => {
  const { meter } = await import("/index.js");
  const module = await WebAssembly.compileStreaming(fetch(`/${model}.wasm`));
  const sound = new Float32Array(await (await fetch("/sound.f32")).arrayBuffer());
  const length = sound.length / channels;
  const context = new OfflineAudioContext(channels, length, 48000);
  const got = [];
  const node = await meter(context, module, { onframes: (frames) => got.push(...frames) });
  const buffer = context.createBuffer(channels, length, 48000);
  for (let k = 0; k < channels; k += 1) {
    buffer.copyToChannel(sound.subarray(k * length, (k + 1) * length), k);
  }
  const source = new AudioBufferSourceNode(context, { buffer });
  source.connect(node);
  source.start();
  await context.startRendering();
  node.port.addEventListener("message", () => { window.frames_ = got; }, { once: true });
  node.port.postMessage({ save: true });
})(%s).catch((error) => { window.failed_ = error.message; });
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a server of a folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def in_browser(browser, folder, model, sound):
    """All numbers of the frames of a sound (channel, time), by the package in a folder."""
    (folder / "sound.f32").write_bytes(np.ascontiguousarray(sound, np.float32).tobytes())
    with served(folder) as address:
        browser.open(f"{address}/package.json")
        browser.evaluate(OFFLINE % json.dumps([model, len(sound)])[1:-1])
        browser.until("window.frames_ || window.failed_")
        assert browser.evaluate("window.failed_") is None
        return np.array(browser.evaluate("window.frames_"), np.float32)
