// The package: models in any program of JavaScript, and as nodes of Web Audio.
import { Model } from "./model.js";

export { Model };

export async function meter(context, module, { gain = 1, onframes } = {}) {
  // What it refuses, a worklet cannot say.
  const model = new Model(module, await WebAssembly.instantiate(module, {})), { fs } = model.info;
  model.gain = gain;
  if (context.sampleRate !== fs) {
    throw new RangeError(
      `${model.info.model} is made for ${fs} Hz, and the context has ${context.sampleRate} Hz: `
      + `make it with sampleRate: ${fs}`);
  }
  await context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
  const node = new AudioWorkletNode(context, "amt-stream", { processorOptions: { module, gain } });
  node.connect(context.destination); // without sound, but a node that leads nowhere may not run
  if (onframes) {
    node.port.onmessage = ({ data: { frames, ...sound } }) => { if (frames) onframes(frames, sound); };
  }
  return node;
}
