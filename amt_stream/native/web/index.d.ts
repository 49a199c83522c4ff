/** What a model is. Frame n stands for the time n * frame_s - latency_s. */
export interface Info {
  /** Its name in amt_stream, such as "zwicker". */
  readonly model: string;
  /** The amt_stream that made it. */
  readonly version: string;
  /** "pascal" or "full scale", of samples times the gain. */
  readonly input_unit: string;
  /** Samples per second of a channel. */
  readonly fs: number;
  readonly channels: number;
  /** Samples of a channel that are calculated together. */
  readonly block: number;
  readonly frames_per_block: number;
  /** The numbers of a frame. */
  readonly columns: readonly { readonly name: string; readonly unit: string }[];
  readonly frame_s: number;
  readonly latency_s: number;
  /** Seconds until the start from silence no longer matters. */
  readonly settle_s: number;
  /** Seconds after the end of a sound, until no column rises any more. */
  readonly tail_s: number;
  /** Bytes of an instance, and of a saved state. */
  readonly bytes: number;
  readonly state_bytes: number;
}

/** A limit, with either `above` or `below`, in the unit of the column. */
export interface LimitRules {
  /** Red above it. */
  above?: number;
  /** Red below it: a lower limit. */
  below?: number;
  /** Amber from here on, before the limit. */
  amber?: number;
  /** How far a value must return before the state improves, and for how many seconds. */
  hysteresis?: number;
  hold_s?: number;
  /** Whether only the last value counts, as for a programme. */
  at_end?: boolean;
}

export type LimitState = "green" | "amber" | "red" | "unknown" | "uncalibrated";

/** A limit of a column, judged frame by frame. */
export interface Limit {
  /**
   * The state at each of these frames, as `process` gives them; each block in turn. Say whether
   * their sound was clipped, is calibrated, and was all heard.
   */
  take(
    frames: Float32Array,
    sound?: { clipped?: boolean; calibrated?: boolean; heard?: boolean },
  ): LimitState[];
  /** What all frames so far come to; `worst` and its time are NaN without a value. */
  result(): {
    state: LimitState;
    verdict: "kept" | "exceeded" | "not known";
    /** How often it turned red. */
    times: number;
    worst: number;
    worst_s: number;
    counted_s: number;
    /** Of that, lost, uncalibrated, or clipped and not red. */
    unjudged_s: number;
  };
}

/** A running model: one sound, measured from its first sample on. */
export class Model {
  /** module: a compiled MODEL.wasm, which imports nothing. */
  constructor(module: WebAssembly.Module);
  readonly info: Info;
  /** Calibration: what a sample of 1.0 is in `info.input_unit`; 1 at first. */
  gain: number;
  /** Samples since the start or reset that were NaN or beyond 1e12 after the gain; they count as 0. */
  readonly invalid: number;
  /**
   * Takes samples of each channel, of any one length, and gives the frames that they complete, one
   * after the other, each with a number for each of `info.columns`. Frames are the same however a
   * sound is cut. Throws RangeError for other channels, TypeError for arrays of integers.
   */
  process(channels: readonly Float32Array[]): Float32Array;
  /**
   * Watches a column of the next frames. Throws RangeError for a column that the model lacks, and
   * for rules that cannot be.
   */
  limit(column: string, rules: LimitRules): Limit;
  /** Forgets the sound; the gain stays. */
  reset(): void;
  /** The state, from which the same model continues in C, Python or WebAssembly. */
  save(): Uint8Array;
  /** Continues from a saved state. Throws for one that does not fit, with nothing changed. */
  load(state: Uint8Array): void;
}

/** What is known of the sound since the frames before. */
export interface Sound {
  /** How many samples of a channel in a row were exactly 0: a microphone that gives 0.5 s is off. */
  zeros: number;
  /** How many samples followed one at the same end of range of a converter: they were louder. */
  clipped: number;
}

/**
 * A node that measures the sound it is given; it has no output that sounds. What gives no sound, or
 * is not connected yet, is silence. Of one channel, a model of more hears the same in all.
 * Throws RangeError for a gain that is none, and for a context of another sampling rate than the
 * model's.
 *
 * node.port takes { gain }, { reset: true }, { load: state } and { save: true }, which it answers by
 * { state }, and what it refuses by { error }.
 */
export function meter(
  context: BaseAudioContext,
  module: WebAssembly.Module,
  options?: { gain?: number; onframes?: (frames: Float32Array, sound: Sound) => void },
): Promise<AudioWorkletNode>;
