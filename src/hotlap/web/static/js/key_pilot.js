// Keys become steering and pedals, with the same bits in every browser: so a drive can be kept as its keys.

import { lengthOf, slopeAngle } from './exact_maths.js';
import { quantise } from './replay_inputs.js';

// How keys become analogue controls. A key is all or nothing; these are rates per second.
const WHEEL_RATE = 5.0;
const CENTRE_RATE = 8.0;
const GAS_RATE = 5.0;
const BRAKE_RATE = 8.0;
const RELEASE_RATE = 10.0;
// A held key asks for a bend at this fraction of the grip, and steers as much as that takes; no key asks for none. So
// the same key is right at every speed, and letting go of it straightens the car.
const GRIP_FRACTION = 1.0;
const GRAVITY_MPS2 = 9.81;
const UNDERSTEER_RAD = 0.042; // the front slides more than the rear
const YAW_GAIN_S = 0.2;
const SLOW_MPS = 4; // below, a key simply turns the wheel
const SLOW_LOCK = 0.8;
const KEY_BRAKE = 0.62; // more would lock the wheels on a straight,
const CORNER_BRAKE = 0.48; // and less than this in a corner would not
const REAR_SLIP_RAD = 0.068; // from here on the gas gives way, and the wheels are turned into the slide
const REAR_GAIN = 8;
const SLIDE_GAIN = 2.6;

export const towards = (value, target, step) =>
  value < target ? Math.min(target, value + step) : Math.max(target, value - step);

/** Smooths keys into steering and pedals, with what a driver feels of the car. */
export class KeySmoother {
  /** `car` are the car's parameters in sim.json. */
  constructor(car) {
    this.car = car;
    this.reset();
  }

  reset() {
    Object.assign(this, { turn: 0, steer: 0, throttle: 0, brake: 0 });
  }

  /** `keys`: turn (-1 left to 1 right), gas, brake; `motion`: forward, left (m/s), yawRate (rad/s), isOff (road). */
  update(keys, motion, seconds) {
    const { car } = this;
    const { forward, left, yawRate } = motion;
    const speed = lengthOf(forward, left);
    const isLess = Math.abs(keys.turn) < Math.abs(this.turn) || keys.turn * this.turn < 0;
    this.turn = towards(this.turn, keys.turn, (isLess ? CENTRE_RATE : WHEEL_RATE) * seconds);
    const isRolling = forward > SLOW_MPS;
    const rear = isRolling ? slopeAngle((left - car.rear_m * yawRate) / forward) : 0;
    // The wheels' angle at full lock, by which the simulator scales the steering input.
    const lock =
      car.steering_fast_rad +
      (car.steering_slow_rad - car.steering_fast_rad) / (1 + speed * speed * car.per_steering_scale2);
    const grip = car.friction * (motion.isOff ? car.runoff_grip : 1);
    // A yaw rate; left is positive.
    const bend = (-this.turn * GRIP_FRACTION * grip * GRAVITY_MPS2) / Math.max(speed, SLOW_MPS);
    const slide = Math.max(0, Math.abs(rear) - REAR_SLIP_RAD) * Math.sign(rear);
    const angle =
      ((car.front_m + car.rear_m) * bend) / Math.max(speed, SLOW_MPS) -
      UNDERSTEER_RAD * this.turn +
      YAW_GAIN_S * (bend - yawRate) +
      SLIDE_GAIN * slide;
    const fraction = Math.min(1, Math.max(0, (speed - SLOW_MPS) / SLOW_MPS));
    this.steer = Math.max(-1, Math.min(1, (fraction * -angle) / lock + (1 - fraction) * this.turn * SLOW_LOCK));

    let gas = keys.gas ? (motion.isOff ? 0.6 : 1) : 0;
    if (isRolling && Math.abs(rear) > REAR_SLIP_RAD)
      gas *= Math.max(0.15, 1 - REAR_GAIN * (Math.abs(rear) - REAR_SLIP_RAD));
    const brake = keys.brake
      ? (motion.isOff ? car.runoff_grip : 1) *
        (KEY_BRAKE + (CORNER_BRAKE - KEY_BRAKE) * Math.min(1, Math.abs(this.turn) + 6 * Math.abs(rear)))
      : 0;
    this.throttle = towards(
      this.throttle,
      keys.brake ? 0 : gas,
      (gas > this.throttle ? GAS_RATE : RELEASE_RATE) * seconds,
    );
    this.brake = towards(this.brake, brake, (brake > this.brake ? BRAKE_RATE : RELEASE_RATE) * seconds);
    return [this.steer, this.throttle, this.brake];
  }
}

/** What a driver feels of its car. */
export function carMotion({ read }, car) {
  return {
    forward: read.forward_mps(car),
    left: read.left_mps(car),
    yawRate: read.yaw_radps(car),
    isOff: read.offTrack(car) !== 0,
  };
}

/** A pilot that presses the keys of a drive again; `isDone` after the last, and `inputs` has what they gave. */
export class KeyPilot {
  constructor(keys, engine) {
    this.keys = keys;
    this.seconds = 1 / engine.ticksPerSecond;
    this.smoother = new KeySmoother(engine.description.car);
    this.begin();
  }

  begin() {
    this.inputs = [];
    this.smoother.reset();
  }

  get isDone() {
    return this.inputs.length >= 3 * this.keys.length;
  }

  act(world, car) {
    const keys = this.keys[this.inputs.length / 3];
    const action = quantise(...this.smoother.update(keys, carMotion(world, car), this.seconds));
    world.setAction(car, ...action);
    this.inputs.push(...action);
  }
}
