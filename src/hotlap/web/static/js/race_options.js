// The panel beside a race: the ladder of opponents, the laps, the braking line, and one's own best.

import { driverColour, KINDS, MEDALS } from './colours.js';
import { find, lapText, make } from './format.js';
import { lapOf, listRungs, numBeaten } from './race_ladder.js';
import { formatButtons } from './rivals_panels.js';
import { bestOn, remember } from './storage.js';

const dot = (colour) => {
  const mark = make('span', { class: 'dot' });
  mark.style.background = colour;
  return mark;
};

/** Show the choice of ghost, laps and braking line, and the ladder. */
export function showOptions(race, ghosts) {
  const own = bestOn(race.app.track.road, race.app.engine.physics);
  find('#side').replaceChildren(
    make(
      'div',
      { class: 'panel stack' },
      formatButtons(race),
      ladder(race),
      make(
        'p',
        { class: 'own-best' },
        dot(KINDS.human),
        'Your best ',
        make('b', { class: 'num', text: own ? lapText(own.time) : '–' }),
      ),
      ghostField(race, ghosts),
      lapsField(race),
      lineField(race),
    ),
  );
}

/** The opponents one after the other: beaten, next, to come. */
function ladder(race) {
  const { app } = race;
  const beaten = numBeaten(app);
  const items = listRungs(app).map((rung, k) => {
    const driver = app.drivers.find((one) => one.id === rung.id);
    const state = k < beaten ? 'beaten' : k === beaten ? 'next' : 'later';
    const lap = lapOf(race, rung);
    return make(
      'li',
      { class: state, 'aria-current': rung.id === race.wanted ? 'true' : null },
      make(
        'button',
        { 'data-rung': rung.id, onclick: () => race.challenge(rung.id) },
        make('span', { class: 'mark', text: { beaten: '✓', next: '▶', later: '' }[state] }),
        dot(rung.medal ? MEDALS[rung.medal] : driverColour(driver)),
        make('span', { text: rung.name }),
        make('time', { text: lap === null ? '' : lapText(lap) }),
      ),
    );
  });
  if (!items.length) return make('p', { text: 'No driver has driven this road yet. Set a time!' });
  return make(
    'div',
    {},
    make('h2', { text: 'Beat them all' }),
    make('ol', { class: 'ladder', id: 'ladder' }, ...items),
  );
}

function ghostField(race, ghosts) {
  const select = make(
    'select',
    { id: 'ghost', onchange: (event) => race.challenge(event.target.value) },
    ...ghosts.map((one) => make('option', { value: one.id, text: one.name })),
  );
  select.value = race.wanted;
  return make('label', { class: 'field' }, 'Ghost', select);
}

function lapsField(race) {
  const select = make(
    'select',
    {
      id: 'laps',
      onchange: (event) => {
        race.numLaps = Number(event.target.value);
        remember('laps', race.numLaps);
        race.prepare();
      },
    },
    ...[1, 2, 3, 5].map((count) =>
      make('option', { value: count, text: count === 1 ? '1, standing start' : `${count}, the first from standing` }),
    ),
  );
  select.value = race.numLaps;
  return make('label', { class: 'field' }, 'Laps', select);
}

function lineField(race) {
  const line = make('input', {
    type: 'checkbox',
    onchange: (event) => {
      race.useLine = event.target.checked;
      remember('braking-line', race.useLine);
    },
  });
  line.checked = race.useLine;
  return make('label', { class: 'check' }, line, 'Braking line');
}
