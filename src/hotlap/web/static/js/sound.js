// The engine's sound, made of oscillators; muted at first, and the choice is remembered.

import { recall, remember } from './storage.js';

const GEARS = [0, 14, 24, 34, 45, 80]; // m/s at which the next gear begins

export class Sound {
  constructor() {
    this.isOn = recall('sound', false);
  }

  toggle() {
    this.isOn = !this.isOn;
    remember('sound', this.isOn);
    if (!this.isOn) this.silence();
    return this.isOn;
  }

  start() {
    if (this.context) return;
    const Context = window.AudioContext || window.webkitAudioContext;
    if (!Context) return;
    this.context = new Context();
    const { context } = this;
    this.gain = context.createGain();
    this.gain.gain.value = 0;
    this.filter = context.createBiquadFilter();
    this.filter.type = 'lowpass';
    this.voices = [
      ['sawtooth', 1, 0.5],
      ['square', 0.5, 0.32],
      ['triangle', 2, 0.2],
    ].map(([type, ratio, level]) => {
      const [voice, volume] = [context.createOscillator(), context.createGain()];
      voice.type = type;
      volume.gain.value = level;
      voice.connect(volume).connect(this.filter);
      voice.start();
      return { voice, ratio };
    });
    this.filter.connect(this.gain).connect(context.destination);
  }

  /** To be called once a frame with the speed (m/s) and the throttle. */
  update(speed, throttle) {
    if (!this.isOn) return;
    this.start();
    if (!this.context) return;
    if (this.context.state === 'suspended') this.context.resume().catch(() => {});
    const gear = Math.max(
      0,
      GEARS.findIndex((limit, k) => speed < (GEARS[k + 1] ?? Infinity)),
    );
    const [low, high] = [GEARS[gear], GEARS[gear + 1] ?? 90];
    const revs = 0.42 + 0.58 * Math.min(1, (speed - (gear ? 0.45 * low : 0)) / (high - (gear ? 0.45 * low : 0)));
    const now = this.context.currentTime;
    for (const { voice, ratio } of this.voices) voice.frequency.setTargetAtTime(ratio * (48 + 150 * revs), now, 0.04);
    this.filter.frequency.setTargetAtTime(350 + 1500 * revs * (0.4 + 0.6 * throttle), now, 0.05);
    this.gain.gain.setTargetAtTime(0.03 + 0.06 * throttle, now, 0.06);
  }

  silence() {
    if (this.context) this.gain.gain.setTargetAtTime(0, this.context.currentTime, 0.05);
  }

  /** A short tone: of the countdown, a sector or a lap. */
  beep(frequency, seconds = 0.12) {
    if (!this.isOn) return;
    this.start();
    if (!this.context) return;
    const { context } = this;
    const [voice, volume] = [context.createOscillator(), context.createGain()];
    voice.frequency.value = frequency;
    volume.gain.setValueAtTime(0.12, context.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + seconds);
    voice.connect(volume).connect(context.destination);
    voice.start();
    voice.stop(context.currentTime + seconds);
  }
}
