// A person's inputs: keys, gamepad and touch, smoothed into analogue controls and put on the replay's grid.

import { carMotion, KeySmoother, towards } from './key_pilot.js';
import { quantise } from './replay_inputs.js';

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
const PAD_TICKS = 2; // between two looks at a gamepad: half as many inputs to remember
const PAD_STEER_STEPS = 63.5; // every second of the replay's steps, and every fifth: a thumb is not finer
const PAD_PEDAL_STEPS = 51;
const AT_REST = { steer: 0, throttle: 0, brake: 0 };

export class Controls {
  constructor(car) {
    this.held = new Set();
    this.smoother = new KeySmoother(car);
    this.reset();
    window.addEventListener('keydown', (event) => this.key(event, true));
    window.addEventListener('keyup', (event) => this.key(event, false));
    window.addEventListener('blur', () => this.held.clear());
  }

  reset() {
    this.smoother.reset();
    Object.assign(this, { padSteer: 0, padInput: null, ticks: 0, keys: null });
  }

  key(event, isDown) {
    const action = KEYS[event.code];
    if (!action || (isDown && (event.ctrlKey || event.metaKey || event.altKey))) return;
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
    this.keys = null;
    this.ticks += 1;
    if (this.padInput && this.ticks % PAD_TICKS === 0) return this.padInput;
    const pad = this.gamepad() || (this.padInput && !this.held.size ? AT_REST : null);
    if (pad) {
      this.padSteer = towards(this.padSteer, pad.steer, 8 * PAD_TICKS * seconds);
      const round = (value, steps) => Math.round(value * steps) / steps;
      this.padInput = quantise(
        round(this.padSteer, PAD_STEER_STEPS),
        round(pad.throttle, PAD_PEDAL_STEPS),
        round(pad.brake, PAD_PEDAL_STEPS),
      );
      return this.padInput;
    }
    this.padInput = null;
    const turn = Number(this.isHeld('right')) - Number(this.isHeld('left'));
    this.keys = { turn, gas: this.isHeld('gas'), brake: this.isHeld('brake') };
    return quantise(...this.smoother.update(this.keys, motion, seconds));
  }
}

/** The pilot of a person's car: reads the controls and keeps the inputs, and the keys behind them, for a replay. */
export class HumanPilot {
  constructor(controls, seconds) {
    this.controls = controls;
    this.seconds = seconds;
    this.begin();
  }

  begin() {
    this.inputs = [];
    this.keys = [];
    this.controls.reset();
  }

  act(world, car) {
    const action = this.controls.read(carMotion(world, car), this.seconds);
    world.setAction(car, ...action);
    this.inputs.push(...action);
    this.keys.push(this.controls.keys);
  }

  /** The keys of every tick, or null where a gamepad drove. */
  get allKeys() {
    return this.keys.every(Boolean) ? this.keys : null;
  }
}
