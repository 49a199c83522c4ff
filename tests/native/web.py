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


IN_PAGE = """
(async () => {
  const { meter } = await import("/index.js");
  const module = await WebAssembly.compileStreaming(fetch("/zwicker.wasm"));
  const offline = (fs = 48000) => new OfflineAudioContext(1, 48000, fs);
  const said = async (call) => {
    try { await call(); return "accepted"; } catch ({ message }) { return message; }
  };
  const refused = [
    await said(() => meter(offline(44100), module)),
    await said(() => meter(offline(), module, { gain: -1 })),
  ];
  const context = offline(), got = [];
  let clipped = 0, zeros = 0;
  const node = await meter(context, module, { onframes: (frames, sound) => {
    got.push(...frames);
    clipped += sound.clipped;
    zeros = Math.max(zeros, sound.zeros);
  } });
  const errors = [];
  node.port.addEventListener("message", ({ data }) => { if (data.error) errors.push(data.error); });
  node.port.postMessage({ gain: 0 });
  node.port.postMessage({ load: new Uint8Array(3) });
  const loud = context.createBuffer(1, 128, 48000);
  loud.getChannelData(0).fill(1, 0, 100);
  for (const when of [12800, 38400]) {
    const source = new AudioBufferSourceNode(context, { buffer: loud });
    source.connect(node);
    source.start(when / 48000);
  }
  await context.startRendering();
  node.port.addEventListener("message", () => {
    window.said_ = { refused, errors, clipped, zeros, frames: got };
  }, { once: true });
  node.port.postMessage({ save: true });
})().catch((error) => { window.failed_ = error.message; });
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
