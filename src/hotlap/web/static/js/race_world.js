// Several cars of one race that meet: contact, slipstream, order, finish, all computed by sim.wasm.

import { PolicyPilot, World } from './engine.js';

const ARRAYS = { f4: 'f32', i4: 'i32', u4: 'i32' };
const MAX_RACE_TICKS = 60 * 60 * 20;

/** What became of a car; the simulator's numbers. */
export const STATUS = { racing: 0, finished: 1, retired: 2 };

export class RaceWorld extends World {
  /** `slots` has each car's place on the grid, from 0. */
  constructor(engine, track, numCars, laps, slots) {
    super(engine, track, numCars);
    const { description } = engine;
    const count = description.num_race_observations;
    const size = (name) => description.records[name].size;
    this.slots = slots;
    this.numObservations = count;
    const race = { num_cars: numCars, laps, start: description.race_starts.grid, max_ticks: MAX_RACE_TICKS };
    Object.assign(this.at, {
      num_observations: count,
      obs: this.take(numCars * count * 4),
      final_obs: this.take(numCars * count * 4),
      race: this.put(this.pack('race_rules', race)),
      poses: this.take(numCars * size('pose')),
      entrants: this.take(numCars * size('entrant')),
      final_entrants: this.take(numCars * size('entrant')),
    });
    this.view();
    this.entrant = Object.fromEntries(
      Object.keys(description.records.entrant.fields).map((name) => [name, this.racer('entrant', name)]),
    );
    this.shown = Object.fromEntries(
      ['arc_m', 'lateral_m', 'on_road', 'vx_mps', 'vy_mps'].map((name) => [name, this.racer('pose', name)]),
    );
  }

  view() {
    super.view();
    if (this.numObservations)
      this.obs = new Float32Array(this.memory.buffer, this.at.obs, this.numCars * this.numObservations);
  }

  /** A function that reads a field of a car's part in the race. */
  racer(record, name) {
    const { size, fields } = this.records[record];
    const [type, offset] = fields[name];
    const first = (record === 'pose' ? this.at.poses : this.at.entrants) + offset;
    return (car) => this[ARRAYS[type]][(first + car * size) >> 2];
  }

  /** Put all cars on the grid. */
  reset() {
    const { size, fields } = this.records.entrant;
    this.slots.forEach((slot, car) => {
      this.i32[(this.at.entrants + car * size + fields.slot[1]) >> 2] = slot;
    });
    this.u8[this.at.mask] = 1;
    this.call('reset_races');
  }

  step() {
    const bad = this.call('step_races');
    if (bad >= 0) throw new Error(`the action of car ${bad} is not finite`);
  }

  get isOver() {
    return this.entrant.is_over(0) !== 0;
  }
}

/** A policy for some cars of a race, each with a limit on its throttle. */
export class RacePilot {
  constructor(world, policy, firstCar, limits) {
    const { description } = world.engine;
    this.world = world;
    this.firstCar = firstCar;
    this.limits = limits;
    this.pilot = new PolicyPilot(world, policy, firstCar, limits.length);
    // What the race shows of a car begins with what a car alone sees, and ends with the others.
    const seen = policy.num_observations;
    if (seen === description.num_observations || seen === description.num_race_observations) {
      this.pilot.observes = false;
      this.pilot.values.obs = world.at.obs + 4 * world.numObservations * firstCar;
      this.pilot.values.num_observations = world.numObservations;
    }
  }

  begin() {
    this.pilot.begin();
  }

  act() {
    this.pilot.act();
    this.limits.forEach((limit, k) => {
      const at = 3 * (this.firstCar + k) + 1;
      this.world.actions[at] = Math.min(this.world.actions[at], limit);
    });
  }
}
