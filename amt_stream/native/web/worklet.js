// The processor "amt-stream" of an AudioWorklet; `meter` in index.js makes its node.
import { Model } from "./model.js";

class Meter extends AudioWorkletProcessor {
  constructor({ processorOptions: { module, gain } }) {
    super();
    this.model = new Model(module);
    const { fs, model } = this.model.info;
    if (sampleRate !== fs) throw new Error(`${model} is made for ${fs} Hz, not ${sampleRate} Hz`);
    this.model.gain = gain;
    this.port.onmessage = ({ data: { gain, reset, save, load } }) => {
      if (gain) this.model.gain = gain;
      if (reset) this.model.reset();
      if (load) this.model.load(load);
      if (save) this.port.postMessage({ state: this.model.save() });
    };
  }

  process([input]) {
    if (!input.length) return true;
    const channels = Array.from(
      { length: this.model.info.channels }, (_, k) => input[Math.min(k, input.length - 1)]);
    const frames = this.model.process(channels);
    if (frames.length) this.port.postMessage({ frames }, [frames.buffer]);
    return true;
  }
}

registerProcessor("amt-stream", Meter);
