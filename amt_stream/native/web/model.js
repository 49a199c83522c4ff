// A model as WebAssembly: the functions of amt.h, for one sound.

const MOST = 1024; // samples of a channel in one call
const INFO = { // places in amt_info, on a processor of 32 bits
  model: 4, version: 8, input_unit: 12, fs: 16, channels: 20, block: 24, columns: 28,
  frames_per_block: 32, frame_s: 40, latency_s: 48, settle_s: 56, tail_s: 64, bytes: 72,
  state_bytes: 80,
};
const TEXTS = ["model", "version", "input_unit"], LONG = ["bytes", "state_bytes"];
const STATES = ["green", "amber", "red", "unknown", "uncalibrated"];
const VERDICTS = ["kept", "exceeded", "not known"];
const LIMIT = 8 * (12 + 27), RULES = 40, RESULT = 48; // bytes of amt_limit and its like
const CLIPPED = 1, UNCALIBRATED = 2, UNHEARD = 4;
const KINDS = ["Float32Array", "Float64Array"];
const ALIGNMENT = 64, PAGE = 65536, OTHER = -2;
const up = (n) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;

export class Model {
  #c; #at; #end; #places; #pointers; #used; #frames; #room; #state; #gain = 1;
  #forgotten = 0; // invalid samples of sound that was reset or replaced by a state

  constructor(module, instance = new WebAssembly.Instance(module, {})) {
    this.#c = instance.exports;
    if (!this.#c.amt_about) throw new TypeError("the module is not a model of amt-stream");
    this.#c._initialize?.();
    this.info = this.#info();
    const { channels, columns, block, frames_per_block, bytes, state_bytes } = this.info;
    this.#room = (Math.floor(MOST / block) + 1) * frames_per_block;
    this.#end = up(this.#c.__heap_base.value);
    const memory = this.#place(bytes);
    this.#places = Array.from({ length: channels }, () => this.#place(4 * MOST));
    this.#pointers = this.#place(4 * channels);
    this.#used = this.#place(4);
    this.#frames = this.#place(4 * this.#room * columns.length);
    this.#state = this.#place(state_bytes);
    new Uint32Array(this.#c.memory.buffer, this.#pointers, channels).set(this.#places);
    this.#at = this.#c.amt_create(memory);
  }

  get gain() { return this.#gain; }

  set gain(gain) {
    if (!(gain > 0 && gain < Infinity)) throw new RangeError(`gain is ${gain}: give a number above 0`);
    this.#gain = gain;
    this.#c.amt_set_gain(this.#at, gain);
  }

  get invalid() { return Number(this.#c.amt_invalid(this.#at)); }

  process(channels) {
    const n = channels[0]?.length;
    if (channels.length !== this.info.channels || channels.some((one) => one.length !== n)) {
      throw new RangeError(`${channels.length} channels: give ${this.info.channels} of one length`);
    }
    for (const { [Symbol.toStringTag]: kind } of channels) {
      if (!KINDS.includes(kind)) {
        throw new TypeError(`a channel is of ${kind ?? "another type"}: give a Float32Array`);
      }
    }
    const parts = [];
    for (let from = 0; from < n; from += MOST) {
      parts.push(this.#part(channels.map((one) => one.subarray(from, from + MOST))));
    }
    if (parts.length === 1) return parts[0];
    const whole = new Float32Array(parts.reduce((sum, one) => sum + one.length, 0));
    parts.reduce((at, one) => { whole.set(one, at); return at + one.length; }, 0);
    return whole;
  }

  limit(column, { above, below, amber = NaN, hysteresis = 0, hold_s = 0, at_end = false }) {
    const place = this.info.columns.findIndex(({ name }) => name === column);
    if (place < 0) throw new RangeError(`${this.info.model} has no column ${column}`);
    if ((above === undefined) === (below === undefined)) throw new RangeError("give above or below");
    const at = this.#place(LIMIT), rules = this.#place(RULES + RESULT), result = rules + RULES;
    const view = () => new DataView(this.#c.memory.buffer);
    [above ?? below, amber, hysteresis, hold_s].forEach(
      (number, k) => view().setFloat64(rules + 8 * k, number, true));
    [below !== undefined, at_end].forEach((is, k) => view().setInt32(rules + 32 + 4 * k, is, true));
    if (this.#c.amt_limit_begin(at, place, rules)) throw new RangeError("a rule is below 0, or no number");
    const width = this.info.columns.length;
    const invalid = () => this.#forgotten + this.invalid;
    let before = invalid();
    return {
      take: (frames, { clipped = false, calibrated = true, heard = true } = {}) => {
        const now = frames.length ? invalid() : before, lost = !heard || now > before;
        before = now;
        const known = CLIPPED * clipped + UNCALIBRATED * !calibrated + UNHEARD * lost;
        return Array.from({ length: frames.length / width }, (_, k) =>
          STATES[this.#c.amt_limit_take(at, frames[k * width + place], known)]);
      },
      result: () => {
        this.#c.amt_limit_result(at, result);
        const told = view(), number = (k) => told.getFloat64(result + 8 * k, true);
        return {
          state: STATES[told.getInt32(result, true)],
          verdict: VERDICTS[told.getInt32(result + 4, true)],
          times: Number(told.getBigInt64(result + 8, true)),
          worst: number(2), worst_s: number(3), counted_s: number(4), unjudged_s: number(5),
        };
      },
    };
  }

  reset() {
    this.#forgotten += this.invalid;
    this.#c.amt_reset(this.#at);
  }

  save() {
    this.#c.amt_save(this.#at, this.#state);
    return new Uint8Array(this.#c.memory.buffer).slice(this.#state, this.#state + this.info.state_bytes);
  }

  load(state) {
    const fits = state.length === this.info.state_bytes;
    if (fits) new Uint8Array(this.#c.memory.buffer).set(state, this.#state);
    const before = this.invalid, status = fits ? this.#c.amt_load(this.#at, this.#state, BigInt(state.length)) : 0;
    this.#forgotten += before - this.invalid;
    if (status === OTHER) throw new Error(`the state is not one of this ${this.info.model}`);
    if (!fits || status) throw new Error("the state is damaged: save it again");
  }

  #place(size) {
    const at = this.#end;
    this.#end += up(size);
    const missing = this.#end - this.#c.memory.buffer.byteLength;
    if (missing > 0) this.#c.memory.grow(Math.ceil(missing / PAGE));
    return at;
  }

  #part(channels) {
    const floats = new Float32Array(this.#c.memory.buffer);
    channels.forEach((one, k) => floats.set(one, this.#places[k] / 4));
    const n = channels[0].length;
    const count = this.#c.amt_process(this.#at, this.#pointers, n, this.#frames, this.#room, this.#used);
    if (count < 0) throw new Error(`${this.info.model}: its calculation failed, status ${count}`);
    const from = this.#frames / 4;
    return floats.slice(from, from + count * this.info.columns.length);
  }

  #info() {
    const view = new DataView(this.#c.memory.buffer), at = this.#c.amt_about();
    const read = (name, place) => TEXTS.includes(name) ? this.#text(view.getUint32(place, true))
      : LONG.includes(name) ? Number(view.getBigUint64(place, true))
      : name.endsWith("_s") ? view.getFloat64(place, true) : view.getInt32(place, true);
    const info = Object.fromEntries(
      Object.entries(INFO).map(([name, place]) => [name, read(name, at + place)]));
    const columns = this.#c.amt_columns();
    info.columns = Array.from({ length: info.columns }, (_, k) => {
      const [name, unit] = [0, 4].map((part) => this.#text(view.getUint32(columns + 8 * k + part, true)));
      return { name, unit };
    });
    return info;
  }

  // TextDecoder is missing where an AudioWorklet runs.
  #text(at) {
    const bytes = new Uint8Array(this.#c.memory.buffer);
    return String.fromCharCode(...bytes.subarray(at, bytes.indexOf(0, at)));
  }
}
