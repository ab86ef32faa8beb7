// Replays: encoded and decoded as docs/web-api.md describes, re-simulated to the bit, and as text for links.

import { World } from './engine.js';
import { KeyPilot } from './key_pilot.js';
import { packInputs, packKeys, unpackInputs, unpackKeys } from './link_coding.js';
import { CODING, hex, MAX_TICKS, packRuns, unhex, unpackRuns } from './replay_inputs.js';

export { fromText, MAX_TICKS, toText } from './replay_inputs.js';

const HEAD_BYTES = 40;

/** `replay`: road, physics, lap, lapTime, seed, actions (Float32Array, three a tick, quantised). */
export async function encodeReplay(replay) {
  return withHead(replay, CODING.runs, replay.actions.length / 3, await packRuns(replay.actions));
}

/** The same for a link, in fewer bytes and only until the end of the lap: by `keys`, where only keys were pressed. */
export function encodeForLink(replay, keys, numTicks) {
  return keys
    ? withHead(replay, CODING.keys, numTicks, packKeys(keys.slice(0, numTicks)))
    : withHead(replay, CODING.inputs, numTicks, packInputs(replay.actions.subarray(0, 3 * numTicks)));
}

function withHead(replay, coding, numTicks, body) {
  const head = new DataView(new ArrayBuffer(HEAD_BYTES));
  const [edition, digest] = replay.physics.split('-');
  new Uint8Array(head.buffer).set([...'HLR1'].map((c) => c.charCodeAt(0)));
  head.setUint8(4, coding);
  head.setUint16(6, Number(edition), true);
  new Uint8Array(head.buffer).set(unhex(digest), 8);
  new Uint8Array(head.buffer).set(unhex(replay.road), 14);
  head.setBigUint64(22, BigInt(replay.seed ?? 0), true);
  head.setUint32(30, numTicks, true);
  head.setFloat32(34, replay.lapTime, true);
  head.setUint16(38, replay.lap, true);
  return join(new Uint8Array(head.buffer), body);
}

/** A replay; one of keys has `keys` in place of `actions`, which `driveKeys` makes of them. */
export async function decodeReplay(bytes) {
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEAD_BYTES || String.fromCharCode(...bytes.subarray(0, 4)) !== 'HLR1') {
    throw new Error('This is not a replay. Was the link cut off?');
  }
  const [coding, start] = [bytes[4], bytes[5]];
  const numTicks = head.getUint32(30, true);
  if (!Object.values(CODING).includes(coding) || start !== 0 || numTicks < 1 || numTicks > MAX_TICKS) {
    throw new Error('This replay is damaged or of a newer version.');
  }
  return {
    physics: `${head.getUint16(6, true)}-${hex(bytes.subarray(8, 14))}`,
    road: hex(bytes.subarray(14, 22)),
    seed: head.getBigUint64(22, true),
    lapTime: head.getFloat32(34, true),
    lap: head.getUint16(38, true),
    ...(await unpackBody(bytes.subarray(HEAD_BYTES), coding, numTicks)),
  };
}

/** What a body holds: `actions`, three a tick, or `keys`. */
export async function unpackBody(body, coding, numTicks) {
  if (coding === CODING.keys) return { keys: unpackKeys(body, numTicks), actions: null };
  if (coding === CODING.inputs) return { actions: unpackInputs(body, numTicks) };
  return { actions: await unpackRuns(body, coding, numTicks) };
}

export function join(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

/** A replay of keys with the inputs that they gave; any other as it is. */
export function driveKeys(engine, track, replay) {
  if (!replay.keys || replay.actions) return replay;
  checkRoad(engine, track, replay);
  let pilot = null;
  recordRun(engine, track, () => (pilot = new KeyPilot(replay.keys, engine)), Infinity);
  return { ...replay, actions: Float32Array.from(pilot.inputs) };
}

function checkRoad(engine, track, replay) {
  if (replay.physics !== engine.physics) {
    throw new Error(`This replay was driven with physics ${replay.physics}; the page has ${engine.physics}.`);
  }
  if (replay.road !== track.road) throw new Error('This replay was driven on another road.');
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
  checkRoad(engine, track, replay);
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
