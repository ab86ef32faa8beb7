// What was learned in this tab as a model file that `hotlap evaluate` accepts: a zip, without compression, of a
// manifest and two safetensors. Equal models give equal bytes.

import { crc32, sha256 } from './digests.js';

/** The bytes of a model file; `about` has seed, step, track and the digest of its road. */
export function modelFile(learn, { weights, statistics }, about) {
  const { model } = learn;
  const step = about.step;
  const card = { ...model.card, seed: about.seed, step, track: about.track, track_digest: about.road };
  const members = new Map([
    ['normalizer.safetensors', safetensors(normalizerArrays(learn, statistics))],
    ['policy.safetensors', safetensors(policyArrays(learn, weights))],
  ]);
  const digests = Object.fromEntries([...members].map(([name, bytes]) => [name, sha256(bytes)]));
  const manifest = { format: 'hotlap-archive', format_version: 2, about: { card, step }, members: digests };
  members.set('manifest.json', new TextEncoder().encode(asciiJson(manifest)));
  return zip(members);
}

/** The weights by stable-baselines3's names: [shape, values]. */
function policyArrays({ model, size }, weights) {
  const arrays = {};
  for (const [name, [shape, values]] of Object.entries(model.fixed)) arrays[name] = [shape, Float32Array.from(values)];
  for (const [name, [first, rows, columns]] of Object.entries(model.places)) {
    if (columns) {
      const values = new Float32Array(rows * columns);
      for (let row = 0; row < rows; row += 1)
        values.set(weights.subarray(first + row * size, first + row * size + columns), row * columns);
      arrays[name] = [[rows, columns], values];
    } else arrays[name] = [[rows], weights.slice(first, first + rows)];
  }
  arrays.log_std = [[model.log_std.length], Float32Array.from(model.log_std, (place) => weights[place])];
  return arrays;
}

/** Mean and variance of the observations. */
function normalizerArrays({ statistics: places, num_observations: numSeen }, statistics) {
  const count = statistics[places.count];
  const mean = new Float64Array(numSeen);
  const variance = new Float64Array(numSeen);
  for (let k = 0; k < numSeen; k += 1) {
    mean[k] = statistics[places.sums + k] / count;
    variance[k] = Math.max(statistics[places.squares + k] / count - mean[k] * mean[k], 0);
  }
  return { obs_mean: [[numSeen], mean], obs_var: [[numSeen], variance], obs_count: [[], Float64Array.of(count)] };
}

/** Arrays in the format safetensors, sorted by name. */
function safetensors(arrays) {
  const header = {};
  let end = 0;
  const names = Object.keys(arrays).sort();
  for (const name of names) {
    const [shape, values] = arrays[name];
    const dtype = values instanceof Float64Array ? 'F64' : 'F32';
    header[name] = { dtype, shape, data_offsets: [end, end + values.byteLength] };
    end += values.byteLength;
  }
  let text = JSON.stringify(header);
  text += ' '.repeat((8 - (text.length % 8)) % 8);
  const bytes = new Uint8Array(8 + text.length + end);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(new TextEncoder().encode(text), 8);
  for (const name of names) {
    const values = arrays[name][1];
    const first = 8 + text.length + header[name].data_offsets[0];
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), first);
  }
  return bytes;
}

/** JSON with sorted keys, as the package writes it; what is not ASCII is escaped. */
function asciiJson(value) {
  const sorted = (one) =>
    one && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(
          Object.keys(one)
            .sort()
            .map((key) => [key, sorted(one[key])]),
        )
      : one;
  return JSON.stringify(sorted(value)).replace(
    /[\u0080-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A zip whose members are stored as they are, dated 1980-01-01. */
function zip(members) {
  const [parts, directory] = [[], []];
  let offset = 0;
  for (const [name, bytes] of members) {
    const label = new TextEncoder().encode(name);
    const sizes = [crc32(bytes), bytes.length, bytes.length].flatMap(fourBytes);
    const names = [label.length & 255, label.length >> 8, 0, 0];
    parts.push(Uint8Array.from([0x50, 0x4b, 3, 4, 20, 0, 0, 0, 0, 0, 0, 0, 33, 0, ...sizes, ...names]));
    parts.push(label, bytes);
    directory.push(
      Uint8Array.from([
        ...[0x50, 0x4b, 1, 2, 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 33, 0],
        ...sizes,
        ...names,
        ...[0, 0, 0, 0, 0, 0],
        ...fourBytes(0o600 << 16),
        ...fourBytes(offset),
      ]),
      label,
    );
    offset += 30 + label.length + bytes.length;
  }
  const size = directory.reduce((sum, one) => sum + one.length, 0);
  const count = [members.size, 0];
  const end = [0x50, 0x4b, 5, 6, 0, 0, 0, 0, ...count, ...count, ...fourBytes(size), ...fourBytes(offset), 0, 0];
  return join([...parts, ...directory, Uint8Array.from(end)]);
}

const fourBytes = (value) => [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, (value >>> 24) & 255];

function join(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
