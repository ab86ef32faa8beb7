// Many cars of one policy, started anywhere on the track; a car that stands still starts again.

import { KINDS, SPEEDS, speedBand } from './colours.js';
import { PolicyPilot, World } from './engine.js';

const MAX_EPISODE_TICKS = 3600;

const UNTRAINED_REPEAT = 4; // ticks that a decision is held

/** Decides as a network does before it has learned anything: by chance. */
class UntrainedPilot {
  constructor(world, numCars) {
    Object.assign(this, { world, numCars, tick: 0 });
  }

  act() {
    if (this.tick % UNTRAINED_REPEAT === 0)
      for (let car = 0; car < this.numCars; car += 1) this.world.setAction(car, chance(-1), chance(0), chance(0));
    this.tick += 1;
  }
}

/** A normal number, clipped to 1 and a lower limit as an action is. */
function chance(low) {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return Math.max(low, Math.min(1, normal));
}

export class Swarm {
  /** `policy` is null for cars that have not learned anything. */
  constructor(engine, track, policy, numCars, seed) {
    this.engine = engine;
    this.numCars = numCars;
    this.world = new World(engine, track, numCars);
    this.world.scatter(seed);
    const { rules, starts } = engine.description;
    // After `scatter`, which leaves the start on the line: cars that start again do so anywhere too.
    const anywhere = { ...rules, start: starts.random, max_ticks: MAX_EPISODE_TICKS };
    this.world.at.rules = this.world.put(this.world.pack('rules', anywhere));
    this.world.at.autoreset = 1;
    this.world.view();
    this.pilot = policy ? new PolicyPilot(this.world, policy, 0, numCars) : new UntrainedPilot(this.world, numCars);
    this.poses = new Float32Array(3 * numCars);
    this.shown = new Float32Array(3 * numCars);
    this.bands = new Uint8Array(numCars);
    this.look();
    this.before = this.poses.slice();
  }

  /** Let the same cars drive on with another policy; false where that needs others. */
  teach({ numbers, num_numbers: count }) {
    const { values } = this.pilot;
    if (values?.num_numbers !== count) return false;
    this.world.f32.set(numbers, values.numbers >> 2);
    return true;
  }

  look() {
    const { read } = this.world;
    for (let car = 0; car < this.numCars; car += 1) {
      this.poses[3 * car] = read.x_m(car);
      this.poses[3 * car + 1] = read.y_m(car);
      this.poses[3 * car + 2] = read.yaw_rad(car);
      this.bands[car] = speedBand(read.rawSpeed(car), this.engine.topSpeed);
    }
  }

  advance() {
    this.before.set(this.poses);
    this.pilot.act();
    this.world.step();
    this.look();
  }

  draw(context, camera, fraction, drawSwarm) {
    const { before, poses, shown } = this;
    for (let k = 0; k < poses.length; k += 3) {
      const isReset = Math.abs(poses[k] - before[k]) + Math.abs(poses[k + 1] - before[k + 1]) > 10;
      const part = isReset ? 1 : fraction;
      shown[k] = before[k] + part * (poses[k] - before[k]);
      shown[k + 1] = before[k + 1] + part * (poses[k + 1] - before[k + 1]);
      shown[k + 2] = poses[k + 2];
    }
    drawSwarm(context, camera, shown, this.numCars, (car) => SPEEDS[this.bands[car]]);
  }

  drawDots(context, project, dpr) {
    context.fillStyle = KINDS.champion;
    for (let k = 0; k < this.poses.length; k += 3) {
      const [x, y] = project(this.poses[k], this.poses[k + 1]);
      context.fillRect(x - dpr, y - dpr, 2 * dpr, 2 * dpr);
    }
  }

  target() {
    return null;
  }
}
