// A person's inputs: keys, gamepad and touch, smoothed into analogue controls and put on the replay's grid.

import { quantise } from './replay.js';

const KEYS = {
  ArrowLeft: 'left',
  KeyA: 'left',
  ArrowRight: 'right',
  KeyD: 'right',
  ArrowUp: 'gas',
  KeyW: 'gas',
  ArrowDown: 'brake',
  KeyS: 'brake',
  Space: 'brake',
};
const DEAD_ZONE = 0.08;

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

const towards = (value, target, step) =>
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
    const speed = Math.hypot(forward, left);
    const isLess = Math.abs(keys.turn) < Math.abs(this.turn) || keys.turn * this.turn < 0;
    this.turn = towards(this.turn, keys.turn, (isLess ? CENTRE_RATE : WHEEL_RATE) * seconds);
    const isRolling = forward > SLOW_MPS;
    const rear = isRolling ? Math.atan2(left - car.rear_m * yawRate, forward) : 0;
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

export class Controls {
  constructor(car) {
    this.held = new Set();
    this.smoother = new KeySmoother(car);
    this.padSteer = 0;
    window.addEventListener('keydown', (event) => this.key(event, true));
    window.addEventListener('keyup', (event) => this.key(event, false));
    window.addEventListener('blur', () => this.held.clear());
  }

  reset() {
    this.smoother.reset();
    this.padSteer = 0;
  }

  key(event, isDown) {
    const action = KEYS[event.code];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.closest?.('input, select, textarea, dialog');
    if (isDown && isTyping) return;
    if (this.isActive) event.preventDefault();
    this.hold(`key:${event.code}`, action, isDown);
  }

  hold(source, action, isDown) {
    if (isDown) this.held.add(`${action}|${source}`);
    else this.held.delete(`${action}|${source}`);
  }

  isHeld(action) {
    for (const one of this.held) if (one.startsWith(`${action}|`)) return true;
    return false;
  }

  /** A button of the page that acts like a key while it is touched. */
  bindButton(element, action) {
    const release = () => {
      this.hold(element.id, action, false);
      element.classList.remove('held');
    };
    element.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
      element.classList.add('held');
      this.hold(element.id, action, true);
    });
    for (const name of ['pointerup', 'pointercancel', 'lostpointercapture']) element.addEventListener(name, release);
  }

  gamepad() {
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad?.connected) continue;
      const axis = pad.axes[0] ?? 0;
      const pressed = (index) => pad.buttons[index]?.value ?? 0;
      const steer =
        Math.abs(axis) < DEAD_ZONE ? 0 : Math.sign(axis) * ((Math.abs(axis) - DEAD_ZONE) / (1 - DEAD_ZONE)) ** 1.5;
      const sides = pressed(15) - pressed(14);
      const [gas, brake] = [Math.max(pressed(7), pressed(0)), Math.max(pressed(6), pressed(1))];
      if (steer || sides || gas || brake) return { steer: steer || sides, throttle: gas, brake };
    }
    return null;
  }

  /** The controls for the next tick, from what is held and from the car's motion. */
  read(motion, seconds) {
    const pad = this.gamepad();
    if (pad) {
      this.padSteer = towards(this.padSteer, pad.steer, 8 * seconds);
      return quantise(this.padSteer, pad.throttle, pad.brake);
    }
    const turn = Number(this.isHeld('right')) - Number(this.isHeld('left'));
    return quantise(
      ...this.smoother.update({ turn, gas: this.isHeld('gas'), brake: this.isHeld('brake') }, motion, seconds),
    );
  }
}

/** The pilot of a person's car: reads the controls and keeps the inputs for a replay. */
export class HumanPilot {
  constructor(controls, seconds) {
    this.controls = controls;
    this.seconds = seconds;
    this.begin();
  }

  begin() {
    this.inputs = [];
    this.controls.reset();
  }

  act(world, car) {
    const { read } = world;
    const motion = {
      forward: read.forward_mps(car),
      left: read.left_mps(car),
      yawRate: read.yaw_radps(car),
      isOff: read.offTrack(car) !== 0,
    };
    const action = this.controls.read(motion, this.seconds);
    world.setAction(car, ...action);
    this.inputs.push(...action);
  }
}
