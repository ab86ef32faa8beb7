// The inputs of a drive: put on the grid that a replay holds, and packed as the body of a replay.

import { pipe } from './packed_file.js';

export const STEER_STEPS = 127;
export const PEDAL_STEPS = 255;
export const MAX_TICKS = 36000;
export const SCALES = [STEER_STEPS, PEDAL_STEPS, PEDAL_STEPS];
/** How a body is coded: runs on the grid, runs of float32; and in links only, inputs or keys by a range coder. */
export const CODING = { runs: 0, exact: 1, inputs: 2, keys: 3 };
const RUN_BYTES = { [CODING.runs]: 4, [CODING.exact]: 13 };
const MAX_RUN = 255;

/** A person's input on the grid that a replay holds. */
export function quantise(steer, throttle, brake) {
  const limit = (value, low) => Math.min(1, Math.max(low, value));
  return [
    Math.fround(Math.round(limit(steer, -1) * STEER_STEPS) / STEER_STEPS),
    Math.fround(Math.round(limit(throttle, 0) * PEDAL_STEPS) / PEDAL_STEPS),
    Math.fround(Math.round(limit(brake, 0) * PEDAL_STEPS) / PEDAL_STEPS),
  ];
}

export const hex = (bytes) => [...bytes].map((one) => one.toString(16).padStart(2, '0')).join('');
export const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));

/** Runs of equal inputs, deflated; `actions` has three a tick, quantised. */
export async function packRuns(actions) {
  const runs = [];
  for (let tick = 0; tick < actions.length / 3; tick += 1) {
    const row = SCALES.map((scale, k) => Math.round(actions[3 * tick + k] * scale));
    const last = runs.at(-1);
    if (last && last.length < MAX_RUN && row.every((value, k) => value === last.row[k])) last.length += 1;
    else runs.push({ row, length: 1 });
  }
  const body = new Uint8Array(4 * runs.length);
  runs.forEach((run, index) => {
    body[index] = run.length;
    run.row.forEach((value, k) => {
      body[(k + 1) * runs.length + index] = (value - (index ? runs[index - 1].row[k] : 0)) & 255;
    });
  });
  return pipe(body, new CompressionStream('deflate-raw'));
}

/** The inputs in a body of runs, three a tick. */
export async function unpackRuns(packed, coding, numTicks) {
  let body;
  try {
    body = await pipe(packed, new DecompressionStream('deflate-raw'));
  } catch {
    throw new Error('The inputs of this replay are damaged. Was the link cut off?');
  }
  const actions = new Float32Array(3 * numTicks);
  const isExact = coding === CODING.exact;
  const numRuns = body.length / RUN_BYTES[coding];
  const columns = isExact ? new Float32Array(body.slice(numRuns).buffer) : body.subarray(numRuns);
  const row = [0, 0, 0];
  let tick = 0;
  for (let run = 0; run < numRuns; run += 1) {
    for (let k = 0; k < 3; k += 1) {
      const value = columns[k * numRuns + run];
      row[k] = isExact ? value : (row[k] + value) & 255;
    }
    const steer = row[0] > STEER_STEPS ? row[0] - 256 : row[0];
    const action = isExact ? row : [steer / STEER_STEPS, row[1] / PEDAL_STEPS, row[2] / PEDAL_STEPS];
    for (let k = 0; k < body[run] && tick < numTicks; k += 1, tick += 1) actions.set(action, 3 * tick);
  }
  if (!Number.isInteger(numRuns) || tick !== numTicks)
    throw new Error('The inputs of this replay do not fit its length.');
  return actions;
}

export function toText(bytes) {
  let text = '';
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function fromText(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  } catch {
    throw new Error('This link is damaged. Was it cut off?');
  }
}
