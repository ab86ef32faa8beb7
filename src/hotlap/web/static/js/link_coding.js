// Inputs in few bytes, for links that hold a whole replay: what is likely after what was just done takes a part of a
// bit. An adaptive binary range coder, and two models: of keys, and of inputs on the grid of replays.

import { SCALES } from './replay_inputs.js';

const TOP = 2 ** 32;
const MAX_DIGITS = 11;
const MANY = 60; // decisions after which a context forgets as fast as it learns

/** A context: how often the bit was 1, learning fast at first. */
class Context {
  constructor() {
    Object.assign(this, { share: 0.5, count: 1.5 });
  }

  get chance() {
    return Math.min(0.9995, Math.max(0.0005, this.share));
  }

  learn(bit) {
    this.share += (bit - this.share) / this.count;
    this.count = Math.min(MANY, this.count + 1);
  }
}

class Coder {
  constructor() {
    this.contexts = new Map();
    Object.assign(this, { low: 0, range: TOP - 1 });
  }

  context(key) {
    if (!this.contexts.has(key)) this.contexts.set(key, new Context());
    return this.contexts.get(key);
  }

  /** Where the interval is divided: below is 1. */
  divide(context) {
    return Math.floor(this.range * context.chance);
  }
}

class Encoder extends Coder {
  constructor() {
    super();
    this.bytes = [];
  }

  bit(key, bit) {
    const context = this.context(key);
    const bound = this.divide(context);
    if (bit) this.range = bound;
    else {
      this.low += bound;
      this.range -= bound;
    }
    context.learn(bit ? 1 : 0);
    if (this.low >= TOP) this.carry();
    while (this.range < 2 ** 24) {
      this.bytes.push(Math.floor(this.low / 2 ** 24));
      this.low = (this.low % 2 ** 24) * 256;
      this.range *= 256;
    }
    return bit;
  }

  carry() {
    this.low -= TOP;
    let at = this.bytes.length - 1;
    for (; this.bytes[at] === 255; at -= 1) this.bytes[at] = 0;
    this.bytes[at] += 1;
  }

  /** The bytes; missing ones at the end are read as 0. */
  end() {
    // A number of the interval with as many zeros at its end as there are.
    for (let size = 2 ** 32; size >= 1; size /= 256) {
      const value = Math.ceil(this.low / size) * size;
      if (value >= this.low + this.range) continue;
      this.low = value;
      if (this.low >= TOP) this.carry();
      break;
    }
    for (let k = 3; k >= 0; k -= 1) this.bytes.push(Math.floor(this.low / 256 ** k) % 256);
    while (this.bytes.at(-1) === 0) this.bytes.pop();
    return Uint8Array.from(this.bytes);
  }
}

class Decoder extends Coder {
  constructor(bytes) {
    super();
    Object.assign(this, { bytes, at: 0, code: 0 });
    for (let k = 0; k < 4; k += 1) this.code = this.code * 256 + this.next();
  }

  next() {
    this.at += 1;
    return this.bytes[this.at - 1] ?? 0;
  }

  bit(key) {
    const context = this.context(key);
    const bound = this.divide(context);
    const bit = this.code < bound ? 1 : 0;
    if (bit) this.range = bound;
    else {
      this.code -= bound;
      this.range -= bound;
    }
    context.learn(bit);
    while (this.range < 2 ** 24) {
      this.code = this.code * 256 + this.next();
      this.range *= 256;
    }
    return bit;
  }

  /** No byte is left over. Missing ones are zeros, so that a link cut short drives another lap, and is refused. */
  get isWhole() {
    return this.at >= this.bytes.length;
  }
}

/** A whole number; small ones are short. `value` is given to an encoder only. */
function codeNumber(coder, key, value) {
  if (!coder.bit(`${key}0`, Number(value !== 0))) return 0;
  const isUp = coder.bit(`${key}s`, Number(value > 0));
  const size = Math.abs(value);
  let digits = 1;
  while (digits < MAX_DIGITS && coder.bit(`${key}d${digits}`, Number(size >= 2 ** digits))) digits += 1;
  let found = 1;
  for (let k = digits - 2; k >= 0; k -= 1) {
    const place = k > digits - 4 ? `${digits},${found}` : 'low';
    found = 2 * found + coder.bit(`${key}b${place}`, Math.floor(size / 2 ** k) % 2);
  }
  return isUp ? found : -found;
}

const digitsOf = (value) => 32 - Math.clz32(value); // of a whole number, in base 2
const sizeOf = (value) => Math.sign(value) * Math.min(4, digitsOf(Math.abs(value)));
const ageOf = (ticks) => Math.min(8, digitsOf(ticks + 1));

/** Whether every second tick repeats the one before, as with a gamepad. */
function isHeld(rows) {
  for (let k = 3; k < rows.length; k += 1) if (Math.floor(k / 3) % 2 && rows[k] !== rows[k - 3]) return false;
  return true;
}

/** Code the ticks of a drive: each column's difference to the tick before, after what it did in the last two. */
function codeInputs(coder, numTicks, rows) {
  const found = new Float32Array(3 * numTicks);
  const last = SCALES.map(() => ({ value: 0, step: 0, before: 0 }));
  const isPaired = coder.bit('held', Number(rows && isHeld(rows)));
  for (let tick = 0; tick < numTicks; tick += 1) {
    if (isPaired && tick % 2) {
      found.copyWithin(3 * tick, 3 * tick - 3, 3 * tick);
      continue;
    }
    SCALES.forEach((scale, k) => {
      const one = last[k];
      const edge = one.value === 0 ? 0 : Math.abs(one.value) === scale ? 2 : 1;
      const key = `${k},${sizeOf(one.step)},${sizeOf(one.step - one.before)},${edge}:`;
      const wanted = rows ? Math.round(rows[3 * tick + k] * scale) - one.value - one.step : 0;
      const step = one.step + codeNumber(coder, key, wanted);
      if (Math.abs(one.value + step) > scale) throw new Error('The inputs of this replay are damaged.');
      last[k] = { value: one.value + step, step, before: one.step };
      found[3 * tick + k] = (one.value + step) / scale;
    });
  }
  return found;
}

/** Code the keys of a drive, tick by tick: which change, after how long they were as they are. */
function codeKeys(coder, numTicks, keys) {
  const found = [];
  const last = { turn: 0, gas: 0, brake: 0 };
  const age = { turn: 0, gas: 0, brake: 0 };
  for (let tick = 0; tick < numTicks; tick += 1) {
    for (const name of ['gas', 'brake', 'turn']) {
      const wanted = keys ? Number(keys[tick][name]) : 0;
      const key = `${name},${last[name]},${ageOf(age[name])}`;
      const isOther = coder.bit(`${key}?`, Number(wanted !== last[name]));
      age[name] = isOther ? 0 : age[name] + 1;
      if (!isOther) continue;
      if (name !== 'turn') last[name] = 1 - last[name];
      else {
        const [low, high] = [-1, 0, 1].filter((one) => one !== last.turn);
        last.turn = coder.bit(`turn,${last.turn}!`, Number(wanted === high)) ? high : low;
      }
    }
    found.push({ turn: last.turn, gas: last.gas === 1, brake: last.brake === 1 });
  }
  return found;
}

function encode(code, numTicks, values) {
  const coder = new Encoder();
  code(coder, numTicks, values);
  return coder.end();
}

function decode(code, numTicks, bytes) {
  const coder = new Decoder(bytes);
  const found = code(coder, numTicks, null);
  if (!coder.isWhole) throw new Error('The inputs of this replay do not fit its length.');
  return found;
}

/** Inputs, three a tick and on the replay's grid, as bytes. */
export const packInputs = (actions) => encode(codeInputs, actions.length / 3, actions);
export const unpackInputs = (bytes, numTicks) => decode(codeInputs, numTicks, bytes);

/** Keys, {turn: -1 to 1, gas, brake} a tick, as bytes. */
export const packKeys = (keys) => encode(codeKeys, keys.length, keys);
export const unpackKeys = (bytes, numTicks) => decode(codeKeys, numTicks, bytes);
