// The processor "amt-stream" of an AudioWorklet; `meter` in index.js makes its node.
import { Model } from "./model.js";

const END = 32767 / 32768; // of a converter's range

class Meter extends AudioWorkletProcessor {
  constructor({ processorOptions: { module, gain } }) {
    super();
    this.model = new Model(module);
    const { fs, model, channels } = this.model.info;
    if (sampleRate !== fs) throw new Error(`${model} is made for ${fs} Hz, not ${sampleRate} Hz`);
    this.model.gain = gain;
    this.zeros = new Array(channels).fill(0);
    this.last = new Array(channels).fill(0);
    this.clipped = 0;
    this.port.onmessage = ({ data }) => {
      try { this.#obey(data); } catch ({ message }) { this.port.postMessage({ error: message }); }
    };
  }

  #obey({ gain, reset, save, load }) {
    if (gain !== undefined) this.model.gain = gain;
    if (reset) this.model.reset();
    if (load) this.model.load(load);
    if (save) this.port.postMessage({ state: this.model.save() });
  }

  // Exact zeros of a microphone are no sound, and neighbors at the same end of range were louder.
  #look(sound, k) {
    let last = this.last[k], zeros = this.zeros[k];
    for (const x of sound) {
      zeros = x === 0 ? zeros + 1 : 0;
      if (Math.min(x, last) >= END || Math.max(x, last) <= -END) this.clipped += 1;
      last = x;
    }
    [this.last[k], this.zeros[k]] = [last, zeros];
  }

  process([input], [output]) {
    const sound = input.length ? input : output.slice(0, 1); // nothing is connected: silence
    const channels = this.zeros.map((_, k) => sound[Math.min(k, sound.length - 1)]);
    channels.forEach((one, k) => this.#look(one, k));
    const frames = this.model.process(channels);
    if (frames.length) {
      this.port.postMessage(
        { frames, zeros: Math.max(...this.zeros), clipped: this.clipped }, [frames.buffer]);
      this.clipped = 0;
    }
    return true;
  }
}

registerProcessor("amt-stream", Meter);
