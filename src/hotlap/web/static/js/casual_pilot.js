// The casual driver among others in a race of the page: late, careful, with eyes for other cars. The same habits as the
// package's casual driver (drivers/casual.py and drivers/eyes.py), with noise of its own. The server drives it again
// to the bit (web/rival_kernels.py): what changes here changes there.

import { lengthOf, makeNoise, turn } from './exact_maths.js';

/** Raised whenever it drives differently: replays of races name it. */
export const CASUAL_VERSION = 2;
const GRAVITY_MPS2 = 9.81;
const HABITS = {
  reactionS: 0.25,
  lookAheadM: 7,
  lookAheadS: 0.8,
  brakeEarlyS: 0.4,
  understeer: 0.0012, // s²/m: extra steering per squared speed
  throttlePerMps: 0.35,
  brakePerMps: 0.15,
  maxBrake: 0.6,
  liftPerSteer: 0.5,
  steerNoise: 0.03,
  pedalNoise: 0.05,
  noiseKept: 0.9459594689067654, // a tick: exp(-1 / 18), a memory of 0.3 s
};
const EYES = {
  sightM: 45,
  besideM: 7,
  clearanceM: 2.9,
  edgeM: 1.2,
  bendEdgeM: 1.8,
  followM: 7,
  followS: 0.12,
  followPerS: 0.9,
  creepMps: 3,
  keenMps: 0.3,
  moveMps: 2.2,
  bendRadpm: 0.02,
  settleMps: 1,
  driftPerM: 0.15, // slower by this fraction for each metre beyond where it means to drive,
  maxDrift: 0.3, // at most
  grassMps: 0.8, // off the road it gains speed this gently
  lostCosine: 0.8, // of the angle to the road's direction: a car that points further away is lost,
  lostMps: 3.5, // turns this slowly
  turnM: 5.5, // on a circle of this radius
  runoffM: 4, // beside the road
  standingMps: 1, // a car this slow stands: one may leave the road to pass it,
  aroundM: 1, // by this much
  patienceTicks: 528, // how long it waits behind a car that stands, before it
  crawlMps: 2.2, // goes on however near that is
};
const BEND_AHEAD_S = [0, 0.25, 0.5, 0.75, 1];
const BRAKE_AHEAD = [0, 1 / 3, 2 / 3, 1];

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Speeds (m/s) at every node that use a share of the grip, with brakes before bends and power after them. */
export function speedProfile(track, car, gripShare) {
  const { numNodes: count, stepM, curvature } = track;
  const grip = gripShare * car.friction * GRAVITY_MPS2;
  const squared = Float64Array.from(curvature, (bend) =>
    Math.min(grip / Math.max(Math.abs(bend), 1e-9), car.top_speed_mps * car.top_speed_mps),
  );
  const spare = (k) => {
    const across = squared[k] * curvature[k];
    return Math.sqrt(Math.max(grip * grip - across * across, 0));
  };
  for (let k = 2 * count; k > 0; k -= 1) {
    const [here, before] = [k % count, (k - 1) % count];
    const limit = squared[here] + 2 * stepM * (spare(here) + car.drag_per_m * squared[here]);
    squared[before] = Math.min(squared[before], limit);
  }
  for (let k = 0; k < 2 * count; k += 1) {
    const [here, after] = [k % count, (k + 1) % count];
    const power = car.power_w / car.mass_kg / Math.sqrt(Math.max(squared[here], 1));
    const drive = Math.min(power, car.drive_force_n / car.mass_kg, 0.6 * spare(here));
    const limit = squared[here] + 2 * stepM * Math.max(drive - car.drag_per_m * squared[here], 0);
    squared[after] = Math.min(squared[after], limit);
  }
  return squared.map(Math.sqrt);
}

export class CasualPilot {
  /** `gripShare` of the grip is used in bends: 0.7 is the casual driver's. */
  constructor(world, car, gripShare = 0.7) {
    const { track, engine } = world;
    Object.assign(this, { world, car, track, traits: engine.description.car, tickS: 1 / engine.ticksPerSecond });
    this.speeds = speedProfile(track, this.traits, gripShare);
    this.delay = Math.round(HABITS.reactionS * engine.ticksPerSecond);
  }

  begin() {
    this.noise = makeNoise(this.car + 1);
    Object.assign(this, { seen: [], shake: [0, 0], side: 0, waited: 0, lock: 0 });
    this.offset = this.world.read.lateral_m(this.car);
  }

  node(arc) {
    return Math.floor(arc / this.track.stepM) % this.track.numNodes;
  }

  act(world, car) {
    const { read } = world;
    this.seen.push({
      x: read.x_m(car),
      y: read.y_m(car),
      yaw: read.yaw_rad(car),
      speed: lengthOf(read.forward_mps(car), read.left_mps(car)),
      yawRate: read.yaw_radps(car),
      arc: read.arc_m(car),
    });
    if (this.seen.length > this.delay + 1) this.seen.shift();
    const fresh = Math.sqrt(1 - HABITS.noiseKept * HABITS.noiseKept);
    this.shake = this.shake.map((value) => HABITS.noiseKept * value + fresh * this.noise());
    world.setAction(car, ...this.decide(this.seen[0]));
  }

  /** What it does, from what it saw one reaction time ago: people anticipate. */
  decide({ x, y, yaw, speed, yawRate, arc }) {
    const distance = HABITS.reactionS * speed;
    const [sine, cosine] = turn(yaw + 0.5 * HABITS.reactionS * yawRate);
    const later = arc + distance;
    const target = Math.min(...BRAKE_AHEAD.map((k) => this.speeds[this.node(later + k * HABITS.brakeEarlyS * speed)]));
    let bend = 0;
    for (const seconds of BEND_AHEAD_S) {
      const there = this.track.curvature[this.node(later + seconds * speed)];
      if (Math.abs(there) > Math.abs(bend)) bend = there;
    }
    const most = this.look(target, bend);
    const steer =
      this.steering(x + distance * cosine, y + distance * sine, yaw + HABITS.reactionS * yawRate, speed, later) +
      HABITS.steerNoise * this.shake[0];
    const error = Math.min(target, most) - speed;
    const shake = HABITS.pedalNoise * this.shake[1];
    const lift = this.lock ? 1 : 1 - HABITS.liftPerSteer * Math.min(Math.abs(steer), 1);
    return [
      this.lock || clamp(steer, -1, 1),
      error > 0 ? Math.min(Math.max(error * HABITS.throttlePerMps + shake, 0), lift) : 0,
      error < -0.5 ? clamp(-error * HABITS.brakePerMps + shake, 0, HABITS.maxBrake) : 0,
    ];
  }

  /** The arc through a point ahead, left of the centreline by the offset, as a steering input (positive right). */
  steering(x, y, yaw, speed, arc) {
    const { track, traits } = this;
    const goal = this.node(arc + HABITS.lookAheadM + HABITS.lookAheadS * speed);
    const dx = track.centre.x[goal] - x - track.tangentY[goal] * this.offset;
    const dy = track.centre.y[goal] - y + track.tangentX[goal] * this.offset;
    const [sine, cosine] = turn(yaw);
    const left = dy * cosine - dx * sine;
    const angle =
      ((2 * left) / Math.max(dx * dx + dy * dy, 1)) *
      (traits.front_m + traits.rear_m + HABITS.understeer * speed * speed);
    const share = 1 / (1 + speed * speed * traits.per_steering_scale2);
    return -angle / (traits.steering_fast_rad + (traits.steering_slow_rad - traits.steering_fast_rad) * share);
  }

  /** Where across the road to drive because of others, and how fast at most. */
  look(target, bend) {
    const { world, car, track } = this;
    const others = this.others();
    const [own, speed] = [world.read.lateral_m(car), lengthOf(world.shown.vx_mps(car), world.shown.vy_mps(car))];
    const inWay = others.filter(
      (one) => one.gap > 0 && one.gap < EYES.sightM && Math.abs(one.across - own) < EYES.clearanceM,
    );
    const blocker = inWay.reduce((nearest, one) => (!nearest || one.gap < nearest.gap ? one : nearest), null);
    const sharp = Math.min(Math.abs(bend) / EYES.bendRadpm, 1);
    const node = world.read.node(car);
    const [leftEdge, rightEdge] = [track.left, track.right].map((edge) =>
      lengthOf(edge.x[node] - track.centre.x[node], edge.y[node] - track.centre.y[node]),
    );
    const isStanding = blocker !== null && blocker.speed < EYES.standingMps;
    const inner = EYES.edgeM + EYES.bendEdgeM * sharp;
    const isNarrow = (across) => Math.abs(across) + (across > 0 ? rightEdge : leftEdge) - inner - EYES.clearanceM <= 0;
    const margin = isStanding && isNarrow(blocker.across) ? -EYES.aroundM : inner;
    const [left, right] = [Math.max(leftEdge - margin, 0), Math.max(rightEdge - margin, 0)];
    const isKeen = blocker !== null && target > blocker.speed + EYES.keenMps;
    const wanted = clamp(
      this.keepClear(this.pass(isKeen, blocker?.across ?? 0, left, right), own, others),
      -right,
      left,
    );
    const calm = 1 / (1 + (2 * Math.abs(bend)) / EYES.bendRadpm);
    const most = (this.side || blocker ? EYES.moveMps : EYES.settleMps) * calm * this.tickS;
    this.offset += clamp(wanted - this.offset, -most, most);
    const inside = target * Math.sqrt(clamp(1 - bend * this.offset, 0.5, 1)); // the inside is sharper
    const possible = this.stayOnRoad(inside, Math.abs(own) - (own > 0 ? leftEdge : rightEdge), speed);
    const isHeld = blocker !== null && Math.abs(blocker.across - own) < 0.85 * EYES.clearanceM;
    this.waited = isHeld && isStanding && speed < EYES.standingMps ? this.waited + 1 : Math.max(this.waited - 1, 0);
    this.findWay(own, speed, node, leftEdge, rightEdge);
    if (this.lock) return EYES.lostMps;
    if (!isHeld) return possible;
    const allowed = blocker.speed + EYES.followPerS * (blocker.gap - EYES.followM - EYES.followS * speed);
    const creep = this.side && blocker.gap > EYES.besideM - 1 ? EYES.creepMps : 0;
    const crawl = this.waited > EYES.patienceTicks ? EYES.crawlMps : 0;
    return Math.min(possible, Math.max(allowed, creep, crawl));
  }

  /** Slower the further it drifts towards the grass; on it, no more than a little faster than now. */
  stayOnRoad(possible, out, speed) {
    const slower = possible * (1 - clamp(EYES.driftPerM * (out + EYES.edgeM), 0, EYES.maxDrift));
    return out > 0 ? Math.min(slower, Math.max(speed + EYES.grassMps, EYES.lostMps)) : slower;
  }

  /** Turn a car that points away from the road's direction: the short way, or backwards where a wall is near. */
  findWay(own, speed, node, leftEdge, rightEdge) {
    const { world, car, track } = this;
    const [sine, cosine] = turn(world.read.yaw_rad(car));
    const [alongX, alongY] = [track.tangentX[node], track.tangentY[node]];
    const [ahead, leftward] = [alongX * cosine + alongY * sine, alongX * sine - alongY * cosine];
    if (ahead >= EYES.lostCosine) {
      this.lock = 0;
    } else if (!this.lock || ahead >= 0 || speed < EYES.standingMps) {
      const facing = leftward > 0 ? 1 : -1;
      const room = (facing > 0 ? leftEdge : rightEdge) - facing * own + EYES.runoffM;
      const hasRoom = ahead > 0 || EYES.turnM * (1 - ahead) < room;
      this.lock = hasRoom ? facing : -facing;
    }
  }

  /** The other cars on the road: gap along it, place across it, speed. */
  others() {
    const { world, car, track } = this;
    const { shown } = world;
    const [here, length] = [shown.arc_m(car), track.length_m];
    const list = [];
    for (let other = 0; other < world.numCars; other += 1) {
      if (other === car || !shown.on_road(other)) continue;
      let gap = shown.arc_m(other) - here;
      gap -= length * Math.floor(gap / length + 0.5);
      const speed = lengthOf(shown.vx_mps(other), shown.vy_mps(other));
      list.push({ gap, across: shown.lateral_m(other), speed });
    }
    return list;
  }

  /** Beside the car in the way, on the side with more room; a side once chosen is kept while there is room on it. */
  pass(isKeen, across, left, right) {
    const [roomLeft, roomRight] = [left - (across + EYES.clearanceM), right + (across - EYES.clearanceM)];
    const better = roomLeft > roomRight ? 1 : -1;
    const kept = this.side > 0 ? roomLeft : roomRight;
    const side = this.side && kept > 0 ? this.side : better;
    this.side = isKeen && Math.max(roomLeft, roomRight) > 0 ? side : 0;
    return this.side ? across + this.side * EYES.clearanceM : 0;
  }

  /** Do not move into a car beside. */
  keepClear(wanted, own, others) {
    let [lowest, highest] = [-Infinity, Infinity];
    for (const one of others) {
      if (Math.abs(one.gap) >= EYES.besideM) continue;
      if (one.across > own) highest = Math.min(highest, one.across - EYES.clearanceM);
      else lowest = Math.max(lowest, one.across + EYES.clearanceM);
    }
    return lowest > highest ? (lowest + highest) / 2 : clamp(wanted, lowest, highest);
  }
}
