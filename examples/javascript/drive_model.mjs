// Drive a trained model over the bridge from Node.js (18 or later) with onnxruntime-node: run `npm install` here once.
//
// Start a bridge with `hotlap bridge`, export the model with `hotlap export RUN --format onnx --out driver.onnx`, then:
// node drive_model.mjs driver.onnx [ws://127.0.0.1:9876]
//
// The lap times are those of `hotlap evaluate RUN`, to the last bit.

import { readFileSync } from 'node:fs';

import { InferenceSession, Tensor } from 'onnxruntime-node';

import { Bridge } from './drive.mjs';

const NUM_LAPS = 2; // the first from standing, the second flying
const MAX_TICKS = 60 * 60 * 10;
const [VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES] = [0, 1, 2, 5]; // kinds of Protocol Buffers fields
const METADATA = 14; // the field of an ONNX file with its metadata, pairs of key (1) and value (2)

// The fields [number, content] of a Protocol Buffers message; content is null where it is a number.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let [value, scale] = [0, 1];
    for (; bytes[at] & 128; scale *= 128) value += (bytes[at++] & 127) * scale;
    return value + bytes[at++] * scale;
  };
  while (at < bytes.length) {
    const tag = varint();
    const [number, kind] = [Math.floor(tag / 8), tag & 7];
    if (kind === BYTES) {
      const size = varint();
      yield [number, bytes.subarray(at, (at += size))];
    } else {
      if (kind === VARINT) varint();
      else at += { [EIGHT_BYTES]: 8, [FOUR_BYTES]: 4 }[kind];
      yield [number, null];
    }
  }
}

// onnxruntime-node does not tell a model's metadata, so it is read from the file.
function readMetadata(bytes) {
  const pairs = [...fields(bytes)].filter(([number]) => number === METADATA);
  return Object.fromEntries(pairs.map(([, pair]) => [...fields(pair)].map(([, text]) => text.toString())));
}

// An exported model: it decides every `actionRepeat` ticks, from the last `stack` observations.
class Model {
  static async load(path) {
    const model = new Model();
    const bytes = readFileSync(path);
    const told = readMetadata(bytes);
    [model.track, model.observation] = [told.track ?? 'track-01', told.observation]; // one of many tracks names none
    [model.actionRepeat, model.stack] = [Number(told.action_repeat), Number(told.stack)];
    model.session = await InferenceSession.create(bytes, { intraOpNumThreads: 1 }); // the network is small
    return model;
  }

  // Steer, throttle and brake for the next `actionRepeat` ticks.
  async decide(observation) {
    const { length } = observation;
    this.seen ??= new Float32Array(this.stack * length); // oldest first, zeros before the start
    this.seen.copyWithin(0, length);
    this.seen.set(observation, this.seen.length - length);
    const input = new Tensor('float32', this.seen, [1, this.seen.length]);
    const { action } = await this.session.run({ observation: input });
    return Array.from(action.data);
  }
}

async function main(path, url) {
  const model = await Model.load(path);
  const bridge = await Bridge.connect(url);
  const config = { episode: { maxSteps: MAX_TICKS } };
  const { track: trackId, observation } = model;
  let reply = await bridge.ask({ type: 'reset', trackId, observation, config });
  const lapTimes = [];
  let [done, tick, action] = [false, 0, null];
  while (!done && lapTimes.length < NUM_LAPS) {
    if (tick % model.actionRepeat === 0) action = await model.decide(reply.observation);
    reply = await bridge.ask({ type: 'step', action });
    tick += 1;
    done = reply.terminated || reply.truncated;
    if (reply.info.lapTime !== undefined) lapTimes.push(reply.info.lapTime);
  }
  await bridge.ask({ type: 'close' });
  bridge.close();
  if (lapTimes.length < NUM_LAPS) throw new Error(`no flying lap: the car got stuck after ${tick} ticks`);
  console.log(`${trackId}: standing lap ${lapTimes[0]} s, flying lap ${lapTimes[1]} s`);
}

main(process.argv[2] ?? 'driver.onnx', process.argv[3] ?? 'ws://127.0.0.1:9876').catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
