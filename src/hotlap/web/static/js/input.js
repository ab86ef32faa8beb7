// A person's inputs: keys, gamepad and touch, smoothed into analogue controls and put on the replay's grid.

import { quantise } from './replay.js';

const KEYS = {
  ArrowLeft: 'left', KeyA: 'left', ArrowRight: 'right', KeyD: 'right', ArrowUp: 'gas', KeyW: 'gas', ArrowDown: 'brake', KeyS: 'brake', Space: 'brake',
};
// Per second. A key is all or nothing; the wheel and the pedals move as a quick person moves them.
const STEER_RATE = 3.2;
const CENTRE_RATE = 5.5;
const COUNTER_RATE = 7.0;
const GAS_RATE = 5.0;
const BRAKE_RATE = 7.0;
const RELEASE_RATE = 10.0;
// More lock than this only scrubs the front tyres, more brake locks the wheels; a slide may be caught with all of it.
const KEY_LOCK = 0.72;
const KEY_BRAKE = 0.70;
const SLOW_MPS = 9;
const SLIDE_RAD = 0.10;
const DEAD_ZONE = 0.08;

const towards = (value, target, step) => (value < target ? Math.min(target, value + step) : Math.max(target, value - step));

export class Controls {
  constructor() {
    this.held = new Set();
    this.reset();
    window.addEventListener('keydown', (event) => this.key(event, true));
    window.addEventListener('keyup', (event) => this.key(event, false));
    window.addEventListener('blur', () => this.held.clear());
  }

  reset() {
    Object.assign(this, { steer: 0, throttle: 0, brake: 0 });
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
    const release = () => { this.hold(element.id, action, false); element.classList.remove('held'); };
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
      const steer = Math.abs(axis) < DEAD_ZONE ? 0 : Math.sign(axis) * ((Math.abs(axis) - DEAD_ZONE) / (1 - DEAD_ZONE)) ** 1.5;
      const sides = pressed(15) - pressed(14);
      const [gas, brake] = [Math.max(pressed(7), pressed(0)), Math.max(pressed(6), pressed(1))];
      if (steer || sides || gas || brake) return { steer: steer || sides, throttle: gas, brake };
    }
    return null;
  }

  /** The controls for the next tick, from what is held and from the car's pose and yaw rate (rad/s). */
  read(pose, yawRate, seconds) {
    const pad = this.gamepad();
    if (pad) {
      this.steer = towards(this.steer, pad.steer, 8 * seconds);
      this.throttle = pad.throttle;
      this.brake = pad.brake;
      return quantise(this.steer, this.throttle, this.brake);
    }
    const wanted = Number(this.isHeld('right')) - Number(this.isHeld('left'));
    const slide = pose.speed > 5 ? Math.atan2(pose.left, Math.max(pose.forward, 1)) : 0;
    // Yaw is positive to the left and steering positive to the right: equal signs turn against the rotation.
    const isCounter = wanted !== 0 && Math.sign(yawRate) === wanted && Math.abs(slide) > 0.5 * SLIDE_RAD;
    const slow = Math.max(0, 1 - pose.speed / SLOW_MPS);
    const lock = isCounter ? 1 : KEY_LOCK + (1 - KEY_LOCK) * slow;
    const isReturning = wanted === 0 || Math.sign(this.steer) === -wanted;
    const rate = isCounter ? COUNTER_RATE : isReturning ? CENTRE_RATE : STEER_RATE;
    this.steer = towards(this.steer, wanted * lock, rate * seconds);

    let gas = this.isHeld('gas') ? 1 : 0;
    if (gas && Math.abs(slide) > SLIDE_RAD) gas = Math.max(0.25, 1 - 5 * (Math.abs(slide) - SLIDE_RAD));
    this.throttle = towards(this.throttle, gas, (gas > this.throttle ? GAS_RATE : RELEASE_RATE) * seconds);
    const cornering = Math.min(1, Math.abs(this.steer) / KEY_LOCK);
    const brake = this.isHeld('brake') ? KEY_BRAKE * (1 - 0.35 * cornering) : 0;
    this.brake = towards(this.brake, brake, (brake > this.brake ? BRAKE_RATE : RELEASE_RATE) * seconds);
    if (this.brake > 0.05) this.throttle = Math.min(this.throttle, gas && !this.isHeld('brake') ? 1 : 0);
    return quantise(this.steer, this.throttle, this.brake);
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
    const [forward, left] = [read.forward_mps(car), read.left_mps(car)];
    const pose = { forward, left, speed: Math.hypot(forward, left) };
    const action = this.controls.read(pose, read.yaw_radps(car), this.seconds);
    world.setAction(car, ...action);
    this.inputs.push(...action);
  }
}
