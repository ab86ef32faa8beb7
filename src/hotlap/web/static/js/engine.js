// The simulator in the page: sim.wasm, the arrays it works on, and policies that drive in it.
// Every offset comes from sim.json; no physics is written here.

import { packRecord, WasmMemory } from './wasm_memory.js';

let loading = null;

/** The compiled module and its description, loaded once. */
export function loadEngine() {
  loading ??= Promise.all([
    WebAssembly.compileStreaming ? compile('sim.wasm') : compileBytes('sim.wasm'),
    fetch('sim.json').then((answer) => answer.json()),
  ]).then(([module, description]) => new Engine(module, description));
  return loading;
}

async function compile(url) {
  const answer = await fetch(url);
  // Some web hosts do not know the media type of WebAssembly; then the bytes are compiled.
  const type = answer.headers.get('Content-Type') || '';
  return type.startsWith('application/wasm')
    ? WebAssembly.compileStreaming(answer)
    : WebAssembly.compile(await answer.arrayBuffer());
}

async function compileBytes(url) {
  return WebAssembly.compile(await (await fetch(url)).arrayBuffer());
}

const READERS = { f4: 'f32', i4: 'i32', b1: 'u8' };

export class Engine {
  constructor(module, description) {
    this.module = module;
    this.description = description;
    this.ticksPerSecond = description.ticks_per_second;
    this.topSpeed = description.car.top_speed_mps;
    this.numGates = description.rules.num_gates;
  }

  get physics() {
    return this.description.physics;
  }
}

/** N cars on one track. Cars do not meet. */
export class World extends WasmMemory {
  constructor(engine, track, numCars) {
    super(engine.module, 'the simulator');
    Object.assign(this, { engine, track, numCars });
    const { description } = engine;
    this.records = description.records;
    const count = description.num_observations;
    const size = (name) => description.records[name].size;
    this.at = {
      tracks: this.put(track.records.tracks),
      num_tracks: 1,
      nodes: this.put(track.records.nodes),
      num_nodes: track.numNodes,
      portals: this.put(track.records.portals),
      num_portals: track.numPortals,
      cars: this.put(this.pack('car', description.car)),
      num_car_records: 1,
      rules: this.put(this.pack('rules', description.rules)),
      num_cars: numCars,
      states: this.take(numCars * size('state')),
      obs: this.take(numCars * count * 4),
      rewards: this.take(numCars * 4),
      terminated: this.take(numCars),
      truncated: this.take(numCars),
      infos: this.take(numCars * size('info')),
      final_obs: this.take(numCars * count * 4),
      final_infos: this.take(numCars * size('info')),
      mask: this.take(numCars),
      actions: this.take(numCars * description.num_actions * 4),
      num_action_columns: description.num_actions,
      autoreset: 0,
      repeat: 1,
    };
    this.view();
  }

  /** Typed views of the memory; they are void after it has grown. */
  view() {
    const { buffer } = this.memory;
    this.f32 = new Float32Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.u8 = new Uint8Array(buffer);
    const { num_observations: count, num_actions: num } = this.engine.description;
    this.actions = new Float32Array(buffer, this.at.actions, this.numCars * num);
    this.obs = new Float32Array(buffer, this.at.obs, this.numCars * count);
  }

  pack(record, values) {
    return packRecord(this.records[record], values);
  }

  call(name, overrides) {
    const values = overrides ? { ...this.at, ...overrides } : this.at;
    return this.instance.exports[name](...this.engine.description.functions[name].map((key) => values[key]));
  }

  /** Put cars on the start line: one, or all without an index. */
  reset(car = null) {
    const { mask } = this.at;
    this.u8.fill(car === null ? 1 : 0, mask, mask + this.numCars);
    if (car !== null) this.u8[mask + car] = 1;
    this.call('reset');
  }

  /** Start cars anywhere on the track at a feasible speed, each by its own seed. */
  scatter(seed) {
    const { size, fields } = this.records.state;
    const view = new DataView(this.memory.buffer);
    for (let car = 0; car < this.numCars; car += 1) {
      view.setBigUint64(this.at.states + car * size + fields.seed[1], BigInt(seed + car), true);
    }
    const { starts } = this.engine.description;
    const start = this.at.rules + this.records.rules.fields.start[1];
    view.setInt32(start, starts.random, true);
    this.reset();
    view.setInt32(start, starts.line, true);
  }

  /** One tick of every car with its action. */
  step() {
    const bad = this.call('step');
    if (bad >= 0) throw new Error(`the action of car ${bad} is not finite`);
  }

  setAction(car, steer, throttle, brake) {
    this.actions[3 * car] = steer;
    this.actions[3 * car + 1] = throttle;
    this.actions[3 * car + 2] = brake;
  }

  /** A function that reads a field of a car's record quickly. */
  reader(record, name) {
    const { size, fields } = this.records[record];
    const [type, offset] = fields[name];
    const array = READERS[type];
    const first = record === 'state' ? this.at.states : this.at.infos;
    if (array === 'u8') return (car) => this.u8[first + car * size + offset];
    const [begin, stride] = [(first + offset) >> 2, size >> 2];
    return (car) => this[array][begin + car * stride];
  }

  get read() {
    this.readers ??= Object.fromEntries([
      ...[
        'x_m',
        'y_m',
        'yaw_rad',
        'forward_mps',
        'left_mps',
        'yaw_radps',
        'steer',
        'throttle',
        'brake',
        'arc_m',
        'lateral_m',
        'lap',
        'gate',
        'node',
        'tick',
        'lap_spoiled',
        'lap_start_tick',
        'lap_start_share',
        'clock_runs',
      ].map((name) => [name, this.reader('state', name)]),
      ...['rawSpeed', 'wallContact', 'lapTime', 'lapClean', 'offTrack'].map((name) => [
        name,
        this.reader('info', name),
      ]),
    ]);
    return this.readers;
  }

  /** Where a car is and how it moves: x, y (m), yaw (rad), speeds (m/s), and what its driver does. */
  pose(car) {
    const { read } = this;
    const [yaw, forward, left] = [read.yaw_rad(car), read.forward_mps(car), read.left_mps(car)];
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
    return {
      x: read.x_m(car),
      y: read.y_m(car),
      yaw,
      forward,
      left,
      steer: read.steer(car),
      throttle: read.throttle(car),
      brake: read.brake(car),
      speed: Math.hypot(forward, left),
      vx: forward * cos - left * sin,
      vy: forward * sin + left * cos,
    };
  }

  /** Seconds since the car's lap began. */
  lapClock(car) {
    const { read } = this;
    if (!read.clock_runs(car)) return 0;
    return Math.max(
      0,
      (read.tick(car) - read.lap_start_tick(car) - read.lap_start_share(car)) / this.engine.ticksPerSecond,
    );
  }
}

/** A policy file, see docs/web-api.md. */
export function parsePolicy(buffer) {
  const { header, body } = parseHeader(buffer, 'HLP1');
  return { ...header, numbers: new Float32Array(buffer.slice(body, body + 4 * header.num_numbers)) };
}

/** The JSON header of one of our binary files, and where its body begins. */
export function parseHeader(buffer, magic) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== magic) {
    throw new Error(`this is not a ${magic} file`);
  }
  const length = new DataView(buffer).getUint32(4, true);
  return { header: JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))), body: 8 + length };
}

/** A policy in a world's memory that decides for a range of its cars. */
export class PolicyPilot {
  constructor(world, policy, firstCar = 0, numCars = 1) {
    const { description } = world.engine;
    if (policy.physics && policy.physics !== description.physics) {
      throw new Error(`this model was trained with physics ${policy.physics}; the page has ${description.physics}.`);
    }
    this.world = world;
    this.repeat = policy.action_repeat;
    const layer = world.records.layer;
    const layers = new Uint8Array(layer.size * policy.layers.length);
    policy.layers.forEach((one, k) => layers.set(world.pack('layer', one), k * layer.size));
    const widths = policy.layers.flatMap((one) => [one.num_inputs, one.num_outputs]);
    const numSeen = policy.num_observations;
    const numHistory = policy.num_stack * numSeen;
    this.values = {
      shape: world.put(
        world.pack('policy', {
          num_observations: numSeen,
          num_stack: policy.num_stack,
          num_fourier: policy.num_fourier,
          num_inputs: policy.num_inputs,
          activation: policy.activation,
          is_squashed: Number(policy.is_squashed),
          clip: policy.clip ?? Infinity,
        }),
      ),
      layers: world.put(layers),
      num_layers: policy.layers.length,
      numbers: world.put(policy.numbers),
      num_numbers: policy.numbers.length,
      history: world.take(4 * numHistory * numCars),
      num_history: numHistory,
      work: world.take(8 * Math.max(...widths)),
      num_work: 2 * Math.max(...widths),
      num_cars: numCars,
      obs: world.at.obs + 4 * description.num_observations * firstCar,
      num_observations: description.num_observations,
      actions: world.at.actions + 4 * description.num_actions * firstCar,
    };
    // The world observes what every policy sees; the road ahead is observed only for a policy that sees it.
    this.observes = numSeen > description.num_observations;
    if (this.observes) {
      this.values.obs = world.take(4 * numSeen * numCars);
      this.values.num_observations = numSeen;
      this.values.states = world.at.states + world.records.state.size * firstCar;
    }
    this.numBytes = 4 * numHistory * numCars;
    world.view();
    this.begin();
  }

  begin() {
    this.world.u8.fill(0, this.values.history, this.values.history + this.numBytes);
    this.tick = 0;
  }

  /** Write the next actions; a decision is held for `repeat` ticks. */
  act() {
    if (this.tick % this.repeat === 0) {
      if (this.observes) this.world.call('observe', this.values);
      this.world.call('decide', this.values);
    }
    this.tick += 1;
  }
}
