// Many cars of one policy, started anywhere on the track; a car that stands still starts again.

import { KINDS, SPEEDS, speedBand } from './colours.js';
import { PolicyPilot, World } from './engine.js';

const MAX_EPISODE_TICKS = 3600;

export class Swarm {
  constructor(engine, track, policy, numCars, seed) {
    this.engine = engine;
    this.numCars = numCars;
    this.world = new World(engine, track, numCars);
    const rules = { ...engine.description.rules, start: 1, max_ticks: MAX_EPISODE_TICKS };
    this.world.at.rules = this.world.put(this.world.pack('rules', rules));
    this.world.at.autoreset = 1;
    this.world.view();
    this.pilot = new PolicyPilot(this.world, policy, 0, numCars);
    this.world.scatter(seed);
    this.poses = new Float32Array(3 * numCars);
    this.shown = new Float32Array(3 * numCars);
    this.bands = new Uint8Array(numCars);
    this.look();
    this.before = this.poses.slice();
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
    context.fillStyle = KINDS.model;
    for (let k = 0; k < this.poses.length; k += 3) {
      const [x, y] = project(this.poses[k], this.poses[k + 1]);
      context.fillRect(x - dpr, y - dpr, 2 * dpr, 2 * dpr);
    }
  }

  target() {
    return null;
  }
}
