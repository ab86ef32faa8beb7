// Replays: encoded and decoded as docs/web-api.md describes, re-simulated to the bit, and as text for links.

import { World } from './engine.js';

export const STEER_STEPS = 127;
export const PEDAL_STEPS = 255;
export const MAX_TICKS = 36000;
const HEAD_BYTES = 40;
const MAX_RUN = 255;
const RUN_BYTES = { 0: 4, 1: 13 };

/** A person's input on the grid that a replay holds. */
export function quantise(steer, throttle, brake) {
  const limit = (value, low) => Math.min(1, Math.max(low, value));
  return [
    Math.fround(Math.round(limit(steer, -1) * STEER_STEPS) / STEER_STEPS),
    Math.fround(Math.round(limit(throttle, 0) * PEDAL_STEPS) / PEDAL_STEPS),
    Math.fround(Math.round(limit(brake, 0) * PEDAL_STEPS) / PEDAL_STEPS),
  ];
}

const hex = (bytes) => [...bytes].map((one) => one.toString(16).padStart(2, '0')).join('');
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));

async function pipe(bytes, transform) {
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** `replay`: road, physics, lap, lapTime, seed, actions (Float32Array, three a tick, quantised). */
export async function encodeReplay(replay) {
  const numTicks = replay.actions.length / 3;
  const head = new DataView(new ArrayBuffer(HEAD_BYTES));
  const [edition, digest] = replay.physics.split('-');
  new Uint8Array(head.buffer).set([...'HLR1'].map((c) => c.charCodeAt(0)));
  head.setUint16(6, Number(edition), true);
  new Uint8Array(head.buffer).set(unhex(digest), 8);
  new Uint8Array(head.buffer).set(unhex(replay.road), 14);
  head.setBigUint64(22, BigInt(replay.seed ?? 0), true);
  head.setUint32(30, numTicks, true);
  head.setFloat32(34, replay.lapTime, true);
  head.setUint16(38, replay.lap, true);
  const steps = [STEER_STEPS, PEDAL_STEPS, PEDAL_STEPS];
  const runs = [];
  for (let tick = 0; tick < numTicks; tick += 1) {
    const row = steps.map((scale, k) => Math.round(replay.actions[3 * tick + k] * scale));
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
  const packed = await pipe(body, new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(HEAD_BYTES + packed.length);
  bytes.set(new Uint8Array(head.buffer));
  bytes.set(packed, HEAD_BYTES);
  return bytes;
}

export async function decodeReplay(bytes) {
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEAD_BYTES || String.fromCharCode(...bytes.subarray(0, 4)) !== 'HLR1') {
    throw new Error('This is not a replay. Was the link cut off?');
  }
  const [encoding, start] = [bytes[4], bytes[5]];
  const numTicks = head.getUint32(30, true);
  if (!(encoding in RUN_BYTES) || start !== 0 || numTicks < 1 || numTicks > MAX_TICKS) {
    throw new Error('This replay is damaged or of a newer version.');
  }
  const replay = {
    physics: `${head.getUint16(6, true)}-${hex(bytes.subarray(8, 14))}`,
    road: hex(bytes.subarray(14, 22)),
    seed: head.getBigUint64(22, true),
    lapTime: head.getFloat32(34, true),
    lap: head.getUint16(38, true),
    actions: new Float32Array(3 * numTicks),
  };
  let body;
  try {
    body = await pipe(bytes.subarray(HEAD_BYTES), new DecompressionStream('deflate-raw'));
  } catch {
    throw new Error('The inputs of this replay are damaged. Was the link cut off?');
  }
  const numRuns = body.length / RUN_BYTES[encoding];
  const columns = encoding === 1 ? new Float32Array(body.slice(numRuns).buffer) : body.subarray(numRuns);
  const row = [0, 0, 0];
  let tick = 0;
  for (let run = 0; run < numRuns; run += 1) {
    for (let k = 0; k < 3; k += 1) {
      const value = columns[k * numRuns + run];
      row[k] = encoding === 1 ? value : (row[k] + value) & 255;
    }
    const steer = row[0] > STEER_STEPS ? row[0] - 256 : row[0];
    const action = encoding === 1 ? row : [steer / STEER_STEPS, row[1] / PEDAL_STEPS, row[2] / PEDAL_STEPS];
    for (let k = 0; k < body[run] && tick < numTicks; k += 1, tick += 1) replay.actions.set(action, 3 * tick);
  }
  if (!Number.isInteger(numRuns) || tick !== numTicks)
    throw new Error('The inputs of this replay do not fit its length.');
  return replay;
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

/** A pilot that repeats a replay's inputs; `isDone` after the last. */
export class ReplayPilot {
  constructor(replay) {
    this.replay = replay;
    this.begin();
  }

  begin() {
    this.tick = 0;
  }

  get isDone() {
    return 3 * this.tick >= this.replay.actions.length;
  }

  act(world, car) {
    const at = Math.min(3 * this.tick, this.replay.actions.length - 3);
    world.setAction(car, ...this.replay.actions.subarray(at, at + 3));
    this.tick += 1;
  }
}

/** Drive a replay to its end; its laps, and an error if it does not drive the lap it claims, to the bit. */
export function verifyReplay(engine, track, replay) {
  if (replay.physics !== engine.physics) {
    throw new Error(`This replay was driven with physics ${replay.physics}; the page has ${engine.physics}.`);
  }
  if (replay.road !== track.road) throw new Error('This replay was driven on another road.');
  const run = recordRun(engine, track, () => new ReplayPilot(replay), Infinity);
  const claimed = run.laps[replay.lap - 1];
  if (!claimed || claimed.time !== replay.lapTime) {
    throw new Error('This replay does not drive the lap it claims, so it is refused.');
  }
  return run;
}

/** Drive one car for some laps from the line: laps, sectors, the time at every metre; its poses go to `poses`. */
export function recordRun(engine, track, makePilot, numLaps, maxTicks = MAX_TICKS, poses = null) {
  const world = new World(engine, track, 1);
  const pilot = makePilot(world);
  world.reset();
  const run = new Run(world, 0);
  while (run.laps.length < numLaps && run.tick < maxTicks && !pilot.isDone) {
    pilot.act(world, 0);
    world.step();
    run.add();
    poses?.push(world.pose(0));
  }
  return run;
}

/** What is known of one car's drive: laps, sector times, and the tick at which each metre was reached. */
export class Run {
  constructor(world, car) {
    Object.assign(this, {
      world,
      car,
      tick: 0,
      laps: [],
      sectors: [],
      metreTicks: [0],
      lastGate: 0,
      sectorTick: 0,
      spoiled: false,
    });
    this.sectorGates = [1, 2].map((k) => Math.round((k * world.engine.numGates) / 3)).concat(0);
  }

  /** To be called after every tick of the world. */
  add() {
    const { read, track, engine } = this.world;
    this.tick += 1;
    const lapTime = read.lapTime(this.car);
    if (Number.isFinite(lapTime)) {
      this.laps.push({ time: lapTime, clean: Boolean(read.lapClean(this.car)), tick: this.tick });
    }
    const gate = read.gate(this.car);
    if (gate !== this.lastGate && this.sectorGates.includes(gate)) {
      this.sectors.push({
        index: this.sectorGates.indexOf(gate),
        lap: this.laps.length + (gate ? 1 : 0),
        seconds: (this.tick - this.sectorTick) / engine.ticksPerSecond,
      });
      this.sectorTick = this.tick;
    }
    this.lastGate = gate;
    const before = this.progress ?? 0;
    this.progress = this.progressNow();
    const moved = this.progress - before;
    // A car moves about a metre a tick; more is a car that was turned round at the line.
    if (moved <= 0 || moved > 0.5 * track.length_m) return;
    for (let metre = this.metreTicks.length; metre <= this.progress; metre += 1) {
      this.metreTicks.push(this.tick - Math.min(1, (this.progress - metre) / moved));
    }
  }

  /** Metres from the start line over all laps; a little before the line counts as none. */
  progressNow() {
    const { read, track } = this.world;
    const lap = read.lap(this.car) - 1;
    const arc = read.arc_m(this.car);
    const gates = this.world.engine.numGates;
    const isBefore = read.gate(this.car) < gates / 2 && arc > 0.75 * track.length_m;
    return lap * track.length_m + (isBefore ? 0 : arc);
  }

  /** Seconds from the start to a metre, or null if it was never reached. */
  secondsAt(metre) {
    const whole = Math.floor(metre);
    const tick = this.metreTicks[whole];
    if (tick === undefined) return null;
    const next = this.metreTicks[whole + 1] ?? tick;
    return (tick + (metre - whole) * (next - tick)) / this.world.engine.ticksPerSecond;
  }

  get best() {
    return bestLap(this.laps);
  }
}

/** A clean lap if there is any, then the fastest. */
export function bestLap(laps) {
  return laps.reduce(
    (best, lap) =>
      !best || (lap.clean && !best.clean) || (lap.clean === best.clean && lap.time < best.time) ? lap : best,
    null,
  );
}
