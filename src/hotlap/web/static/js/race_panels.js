// The panels of a race before it and in between: the challenge, the lights, the pause.

import { aboutTrack, find, lapText, make } from './format.js';
import { ghostWords } from './race_ghosts.js';
import { showOptions } from './race_options.js';

const LIGHTS = 3;

/** Whom one is up against, and the button that starts. */
export function showStart(race) {
  const isTouch = matchMedia('(pointer: coarse)').matches;
  find('#overlay').replaceChildren(
    make(
      'div',
      { class: 'panel grid-start' },
      make('h1', { text: title(race) }),
      make('p', { text: task(race) }),
      make('button', {
        class: 'button main',
        'data-action': 'start',
        text: 'Start',
        onclick: () => race.countdown(),
      }),
      make('p', {
        text: isTouch
          ? 'Steer on the left, brake and gas on the right.'
          : 'Arrow keys or WASD, gamepad too. R restarts, Esc pauses.',
      }),
    ),
  );
  find('[data-action="start"]').focus({ preventScroll: true });
}

/** The car on the line while the lap to beat is being driven. */
export function showWaiting(race, ghosts, { name }) {
  if (race.app.view !== 'race' || race.phase !== 'idle') return;
  race.ghost = null;
  showOptions(race, ghosts);
  race.line();
  find('#overlay').replaceChildren(
    make('div', { class: 'panel grid-start', id: 'waiting' }, make('p', { text: `${name} drives the lap to beat …` })),
  );
}

function title(race) {
  if (race.hasRivals) return `You and ${race.rivals.numRivals} on the grid`;
  return race.ghost ? `Beat ${ghostWords(race.ghost)}` : race.app.track.name;
}

function task(race) {
  const { track } = race.app;
  const best = race.ghost?.run.best;
  if (race.hasRivals) return race.rivals.laps === 1 ? 'One lap.' : `${race.rivals.laps} laps.`;
  return best ? `The lap to beat is ${lapText(best.time)}.` : aboutTrack(track);
}

/** Lights one after the other, then green, and the race goes. */
export function showLights(race, seconds) {
  const lights = make(
    'div',
    { class: 'lights', role: 'status', 'aria-label': 'Countdown' },
    ...Array.from({ length: LIGHTS }, () => make('i')),
  );
  find('#overlay').replaceChildren(lights);
  let lit = 0;
  const next = () => {
    if (race.phase !== 'countdown' || !lights.isConnected) return;
    if (lit < LIGHTS) {
      lights.children[lit].classList.add('on');
      lit += 1;
      race.app.sound.beep(440);
      race.timer = setTimeout(next, 1000 * seconds);
      return;
    }
    lights.classList.add('go');
    race.app.sound.beep(880, 0.4);
    race.go();
    setTimeout(() => lights.remove(), 700);
  };
  race.timer = setTimeout(next, 1000 * seconds);
}

export function showPaused(race) {
  find('#overlay').replaceChildren(
    make(
      'div',
      { class: 'panel grid-start' },
      make('h1', { text: 'Paused' }),
      make(
        'div',
        { class: 'row' },
        make('button', { class: 'button main', text: 'Go on', onclick: () => race.pause() }),
        make('button', { class: 'button', text: 'Restart', onclick: () => race.restart() }),
        make('button', { class: 'button', text: 'Leave', onclick: () => race.prepare() }),
      ),
    ),
  );
  find('#overlay button').focus();
}
