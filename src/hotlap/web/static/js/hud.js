// The instruments over the picture: speed, pedals, times, the delta to a ghost, and sectors.

import { deltaText, lapText, make, percentText, setText } from './format.js';

const DELTA_SPAN_S = 2;

export class Hud {
  constructor(element) {
    this.element = element;
    this.speed = make('b', { text: '0' });
    this.gas = make('u');
    this.stop = make('u');
    this.wheel = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    this.wheel.setAttribute('viewBox', '0 0 64 64');
    this.wheel.innerHTML =
      '<g><circle cx="32" cy="32" r="25"/><path d="M8 34h16M40 34h16M32 40v16"/>' +
      '<circle cx="32" cy="34" r="7" fill="currentColor" stroke="none"/>' +
      '<path d="M28 7h8" stroke="#ffc640" stroke-width="6"/></g>';
    const wheelBox = make('div', { class: 'wheel' });
    wheelBox.append(this.wheel);
    const value = (name, isNow = false) => {
      this[name] = make('b', { class: isNow ? 'now' : null });
      return this[name];
    };
    this.labels = {};
    const label = (name, text) => (this.labels[name] = make('span', { text }));
    this.dash = make(
      'div',
      { class: 'panel dash' },
      make('div', { class: 'speed' }, this.speed, make('small', { text: 'km/h' })),
      make('div', { class: 'pedals' }, make('i', { class: 'stop' }, this.stop), make('i', { class: 'gas' }, this.gas)),
      wheelBox,
      make(
        'div',
        { class: 'times' },
        label('lap', 'Lap'),
        value('time', true),
        label('last', 'Last'),
        value('last'),
        label('best', 'Best'),
        value('best'),
        label('gap', 'To optimum'),
        value('gap'),
      ),
    );
    this.deltaValue = make('b');
    this.deltaBar = make('u');
    this.deltaName = make('small');
    this.sectors = [0, 1, 2].map((k) => make('span', { text: `S${k + 1}` }));
    this.delta = make(
      'div',
      { class: 'panel delta' },
      this.deltaName,
      this.deltaValue,
      make('div', { class: 'track' }, this.deltaBar, make('s')),
      make('div', { class: 'sectors' }, ...this.sectors),
    );
    this.delta.hidden = true;
    element.replaceChildren(this.dash, this.delta);
  }

  /** `lap`: number, clock, last, best (s or null), optimum (s or null). */
  show(pose, lap) {
    setText(this.speed, String(Math.round(pose.speed * 3.6)));
    this.gas.style.transform = `scaleY(${pose.throttle.toFixed(2)})`;
    this.stop.style.transform = `scaleY(${pose.brake.toFixed(2)})`;
    this.wheel.style.transform = `rotate(${(pose.steer * 110).toFixed(0)}deg)`;
    setText(this.labels.lap, lap.isClean ? `Lap ${lap.number}` : `Lap ${lap.number} · off`);
    setText(this.time, lapText(lap.clock));
    setText(this.last, lapText(lap.last ?? NaN));
    setText(this.best, lapText(lap.best ?? NaN));
    setText(this.gap, lap.best && lap.optimum ? percentText(lap.best / lap.optimum - 1) : '–');
  }

  /** The delta to a ghost: negative is ahead. */
  showDelta(seconds, name) {
    this.delta.hidden = name === null;
    if (name === null) return;
    setText(this.deltaName, name);
    const isKnown = Number.isFinite(seconds);
    setText(this.deltaValue, isKnown ? deltaText(seconds) : '0.00');
    const colour = !isKnown || seconds === 0 ? 'var(--night-text)' : seconds < 0 ? 'var(--gain)' : 'var(--loss)';
    this.deltaValue.style.color = colour;
    this.deltaBar.style.background = colour;
    const fraction = isKnown ? Math.max(-1, Math.min(1, -seconds / DELTA_SPAN_S)).toFixed(3) : 0;
    this.deltaBar.style.transform = `scaleX(${fraction})`;
  }

  showSector(index, seconds, difference) {
    const element = this.sectors[index];
    setText(
      element,
      difference === null
        ? `S${index + 1} ${seconds.toFixed(2)}`
        : `S${index + 1} ${seconds.toFixed(2)} ${deltaText(difference)}`,
    );
    element.className = difference === null ? '' : difference <= 0 ? 'better' : 'worse';
  }

  clearSectors() {
    this.sectors.forEach((element, k) => {
      setText(element, `S${k + 1}`);
      element.className = '';
    });
  }
}
