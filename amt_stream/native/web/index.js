// The package: models in any program of JavaScript, and as nodes of Web Audio.
export { Model } from "./model.js";

export async function meter(context, module, { gain = 1, onframes } = {}) {
  await context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
  const node = new AudioWorkletNode(context, "amt-stream", { processorOptions: { module, gain } });
  node.connect(context.destination); // without sound, but a node that leads nowhere may not run
  if (onframes) node.port.onmessage = ({ data: { frames } }) => { if (frames) onframes(frames); };
  return node;
}
